"""The work of a run by its settings and its images, and the ImageNet edition's grids."""

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import timm
import torch
import yaml
from ruamel.yaml import YAML
from torch import nn
from torchvision import models

from cleanset.classes import imagenet
from cleanset.planning.work import Passes, Work
from cleanset.plumbing.files import sha256
from cleanset.plumbing.yaml_files import read_yaml
from cleanset.scoring.parts import NOTHING, FinishedPart
from cleanset.studies.training.experiments import pairs
from cleanset.studies.training.finished import FinishedFold, FinishedRun
from cleanset.studies.training.loop import Outcome, train
from cleanset.studies.training.params import TrainingParams, grid_runs, read_training_params
from cleanset.studies.training.planning import run_work
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.start import only_start
from cleanset.studies.training.state import FINISHED_FILE, StateFolder
from tests.studies.training.finished_study import record_of

pytestmark = pytest.mark.slow


WORK = Work(name="one", model="timm:a", stage="train@one")


def rows(count: int, masked: int = 0) -> pd.DataFrame:
    """Images, the first ones with a mask."""
    masks = ["mask.png"] * masked + [None] * (count - masked)
    return pd.DataFrame({"file": [*map(str, range(count))], "mask": masks, "left_out": None})


def counted(part: FinishedPart = NOTHING, folder: Path = Path("missing"), **settings: Any) -> Work:
    """A run on three folds of 80 images, batches of 8, five epochs; 100 images to validate on, 35 to test on."""
    given = {"network": {"name": "a"}, "epochs": 5, "batch": 8, "folds": 3} | settings
    run = Run.model_validate(given)
    data = SimpleNamespace(
        training=rows(83, 16),
        validation=rows(100, 4),
        left_out=rows(35, 5),
        study=SimpleNamespace(folder=folder),
        params=SimpleNamespace(data=SimpleNamespace(images="images")),
    )
    return run_work(WORK, run, data, part)  # type: ignore[arg-type]


def test_passes_of_epochs() -> None:
    """50 steps of 8 images, five validations of 100, and the tests of 35, three times."""
    found = counted()
    assert found.passes == Passes(forward=3 * (50 * 8 + 5 * 100 + 35), backward=3 * 50 * 8)
    assert (found.images, found.is_bound) == (3 * 50 * 8, False)


def test_bytes_are_those_of_the_images(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for number in range(83):
        (tmp_path / "images" / str(number)).write_bytes(bytes(10 + number % 2))
    size = 83 * 10 + 41
    assert counted(folder=tmp_path).bytes_read == size * 3 * 50 * 8 // 83


def test_passes_of_steps() -> None:
    """25 steps are two and a half epochs of ten: on three folds 75 steps, eight validations."""
    found = counted(epochs=None, steps=25)
    assert found.passes == Passes(forward=3 * 25 * 8 + 8 * 100 + 3 * 35, backward=3 * 25 * 8)


@pytest.mark.parametrize(
    ("settings", "of_image", "of_validation"),
    [
        ({"recipe": "augmix"}, Passes(forward=3, backward=3), 1),
        ({"recipe": "augmix_mixing"}, Passes(forward=1, backward=1), 1),
        ({"recipe": "noise", "trained_on": ["noise", "speckle_noise"]}, Passes(forward=1, backward=1), 1),
        # three steps of the ascent, and once more as found; also validated unchanged
        ({"recipe": "adversarial"}, Passes(forward=4, backward=4), 1 + 4),
        ({"recipe": "madry", "epochs": 5, "batch": 8, "augmentation": "none"}, Passes(forward=9, backward=8), 1 + 9),
    ],
)
def test_passes_of_recipes(settings: dict[str, Any], of_image: Passes, of_validation: int) -> None:
    found = counted(**settings)
    assert found.of_image == of_image
    assert found.besides.forward == 3 * (5 * 100 * of_validation + 35)


def test_images_of_a_scenario() -> None:
    """Those with a mask: 16 to train on in two batches, 4 to validate on, 5 to test on, and all unchanged."""
    found = counted(scenario="image_r", test=["image_r", "original"], trained_on=["contrast"])
    assert found.images == 3 * 5 * 2 * 8
    assert found.besides == Passes(forward=3 * (5 * 4 + 5 + 35), backward=0)


def test_finished_epochs_are_not_counted() -> None:
    """12 of 15 epochs, in 96 seconds: three are left, of 80 images each."""
    found = counted(FinishedPart(images=960, seconds=96.0))
    assert (found.images, found.left, found.seconds) == (1200, 240, 24)
    assert found.passes == Passes(forward=240 + 3 * 100 + 3 * 35, backward=240)


def test_early_stopping_ends_a_run_earlier() -> None:
    assert counted(early_stopping=2).is_bound
    assert counted(recipe="adversarial", adversarial={"eps": "4/255", "warm_up_epochs": 2}).is_bound


def test_a_fold_that_waits_for_its_stage_has_ended(tmp_path: Path) -> None:
    """Its state is removed at its end."""
    folder = StateFolder(tmp_path, {})
    assert (folder.has_ended(), folder.finished_part()) == (False, NOTHING)
    (tmp_path / FINISHED_FILE).write_text('{"settings": {}, "files": {}}')
    assert (folder.has_ended(), folder.finished_part()) == (True, NOTHING)


@dataclass
class SmallTask:
    """A task of two steps an epoch."""

    name: str = "one, fold_01"
    steps_per_epoch: int = 2
    chosen_by: str = "loss"
    network: nn.Module = field(default_factory=lambda: nn.Linear(1, 1))

    def batches(self, epoch: int) -> list[int]:
        return [1, 2]

    def loss(self, network: nn.Module, batch: int, epoch: int) -> Outcome:
        return Outcome(network(torch.ones(32, 1)).sum(), 32)

    def validate(self, epoch: int) -> dict[str, float]:
        return {}


def test_a_start_keeps_an_epoch(tmp_path: Path) -> None:
    """With the seconds of its images; the training continues after it."""
    run = Run.model_validate({"network": {"name": "a"}, "epochs": 3, "batch": 8})
    state = StateFolder(tmp_path, {})
    with only_start():
        train(SmallTask(), run, state)
    found = state.finished_part()
    assert found.images == 16
    assert found.seconds > 0
    assert [row["epoch"] for row in train(SmallTask(), run, state).history] == [1, 2, 3]


@pytest.fixture(scope="session")
def of_imagenet(repository: Path) -> TrainingParams:
    """The params of the ImageNet edition."""
    return read_training_params(repository / "imagenet" / "studies" / "training" / "params.yaml", imagenet())


def test_the_grids_of_the_papers(of_imagenet: TrainingParams) -> None:
    counts = {name: len(grid_runs(of_imagenet.grids, of_imagenet.runs, name)) for name in of_imagenet.grids}
    assert counts == {
        "ex1": 7, "ex1_further": 6, "ex2": 13 + 7 * 8 + 7, "ex1_as_coded": 13, "ex2_as_coded": 13 + 7 * 8, "ex3": 7,
        "adversarial": 6, "madry": 2, "augmix": 3,
    }  # fmt: skip
    covered = {run for name in of_imagenet.grids for run in grid_runs(of_imagenet.grids, of_imagenet.runs, name)}
    assert set(of_imagenet.runs) - covered == {"noise_resnet50"}


def test_a_digest_of_the_runs_of_the_papers(of_imagenet: TrainingParams) -> None:
    """163 runs with all their settings: a change of a default would train them again."""
    settings = {name: run.model_dump(mode="json") for name, run in of_imagenet.runs.items()}
    assert len(settings) == 163
    for name, each in settings.items():
        robust = each["folds"] == 0
        assert each["validation"] == ("set_aside" if robust else "as_written")
        assert each["augmix"]["severity"] == (1 if name.startswith("augmix") else 3)
        stops = name.startswith("as_written") and not name.endswith("_original")
        assert each["early_stopping"] == (10 if stops else None), name
        assert each["keep"] == ("best" if name.startswith("as_written") else "last")
    assert sha256(json.dumps(settings, sort_keys=True).encode()) == (
        "b12bb866bb774d21f64d60800e110acc2f0bb79db99caa77ab6f968c5b5a43ec"
    )


@pytest.mark.long
def test_each_run_has_its_stage(repository: Path, of_imagenet: TrainingParams) -> None:
    folder = repository / "imagenet" / "studies" / "training"
    listed = subprocess.check_output(["dvc", "stage", "list", "--name-only"], cwd=folder, text=True).split()
    assert {of_imagenet.stage(name) for name in of_imagenet.runs} == set(listed) - {"data", "summary"}
    assert of_imagenet.stage("as_coded_resnet50_image_g") == "train_each@as_coded-resnet50-image_g"
    assert of_imagenet.stage("noise_resnet50") == "train@noise_resnet50"


@pytest.mark.parametrize("edition", [".", "imagenet"])
def test_dvc_reads_the_runs_as_cleanset_does(repository: Path, edition: str) -> None:
    """DVC resolves merge keys by ruamel.yaml."""
    path = repository / edition / "studies" / "training" / "params.yaml"
    assert YAML(typ="safe").load(path) == read_yaml(path, "", merges=True)


def test_each_network_and_its_weights_exist(of_imagenet: TrainingParams) -> None:
    networks = {
        (run.network.name, run.network.pretrained)
        for run in of_imagenet.runs.values()
        if run.network.source == "torchvision"
    }
    assert len({name.partition(".")[0] for name, _ in networks}) == 12
    assert timm.is_model(of_imagenet.runs["as_coded_resnet101_v2_original"].network.name)
    published = of_imagenet.runs["as_written_resnet101_v2_original"].network.name
    assert published in timm.list_pretrained("resnetv2_101*")
    for network, pretrained in networks:
        name, _, weights = network.partition(".")
        assert name in models.list_models(module=models)
        assert pretrained == bool(weights)
        if weights:
            assert weights in models.get_model_weights(name).__members__


def test_each_ex2_is_paired_with_its_ex1(of_imagenet: TrainingParams) -> None:
    """Runs of the grids differ from those with originals only in the scenario."""
    for grid, tested in (("ex2", 8), ("ex2_as_coded", 8)):
        runs = [_unfinished(name, of_imagenet) for name in grid_runs(of_imagenet.grids, of_imagenet.runs, grid)]
        found = pairs(runs)
        assert len(found) == 7
        assert {len(pair.ex2) for pair in found} == {tested}
        assert all(pair.ex1.name.endswith("_original") for pair in found)
        like_ex2 = "_stopped" if grid == "ex2" else "_original"
        assert all(pair.baseline.name.endswith(like_ex2) for pair in found)


def _unfinished(name: str, params: TrainingParams) -> FinishedRun:
    fold = FinishedFold("fold_01", record_of(), pd.DataFrame(), pd.DataFrame())
    return FinishedRun(name, params.runs[name], [fold])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": "imagenet_9"}, r"unknown list 'imagenet_9'; expected ximagenet_12, or a list of wnids"),
        ({"test": "table_9"}, r"unknown list 'table_9'; expected table_2, table_6, or a list of scenarios"),
    ],
)
def test_lists_that_there_are_not(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Run.model_validate({"network": {"name": "a"}, "epochs": 1} | changed, context=imagenet())


@pytest.mark.parametrize("edition", [".", "imagenet"])
def test_every_name_in_the_pipeline_is_a_key_of_the_params(repository: Path, edition: str) -> None:
    """DVC stops at a name that it cannot resolve, whichever stage is asked for."""
    study = repository / edition / "studies" / "training"
    text = (study / "dvc.yaml").read_text()
    params = yaml.safe_load((study / "params.yaml").read_text())
    sections = re.findall(r"\$\{data\.(\w+)\}", text)
    assert {"images", "masks"} <= set(sections) <= set(params["data"])
    keys = [key for line in re.findall(r"- params\.yaml: \[(.*)\]", text) for key in re.findall(r"\w+", line)]
    assert {"data", "runs", "measures"} <= set(keys) - {"item", "run"} <= set(params)
