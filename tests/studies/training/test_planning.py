"""The plan of a run from measured steps that are written down, and the ImageNet edition's grids."""

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
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
from cleanset.files import sha256
from cleanset.planning import clock
from cleanset.planning.work import Cost, Passes, PlannedWork, Work
from cleanset.scoring.devices import Device
from cleanset.studies.training import planning
from cleanset.studies.training.experiments import pairs
from cleanset.studies.training.finished import FinishedFold, FinishedRun
from cleanset.studies.training.fold_data import some_left_out
from cleanset.studies.training.loop import Outcome, train
from cleanset.studies.training.params import TrainingParams, grid_runs, read_training_params
from cleanset.studies.training.planning import RunSteps, StepTimes, planned_run
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.state import FINISHED_FILE, StateFolder
from cleanset.yaml_files import read_yaml
from tests.studies.training.finished_study import record_of

pytestmark = pytest.mark.slow


MEASURED = StepTimes(
    step=0.5,
    validation=4.0,
    opening=2.0,
    steps_per_epoch=10,
    passes=Passes(forward=32, backward=24),
    validated=100,
    testing=3.0,
    tested=70,
)
WORK = Work(name="one", model="timm:a", stage="train@one")


def planned(*, finished_epochs: int = 0, **settings: Any) -> PlannedWork:
    """A run on three folds, whose process starts in 7 s."""
    given = {"network": {"name": "a"}, "epochs": 5, "batch": 8, "folds": 3} | settings
    return planned_run(WORK, Run.model_validate(given), MEASURED, start=7.0, finished_epochs=finished_epochs)


def test_seconds_of_epochs() -> None:
    """50 steps of .5 s, 5 validations of 4 s and tests of 3 s, three times."""
    found = planned()
    assert found.cost == Cost(start=7 + 3 * 2, device=3 * (50 * 0.5 + 5 * 4 + 3), gpu=None)
    assert found.work.passes == Passes(forward=3 * (50 * 32 + 5 * 100 + 70), backward=3 * 50 * 24)
    assert (found.work.images, found.work.bound) == (3 * 50 * 8, "exact")


def test_images_of_all_devices_are_counted() -> None:
    """One of two devices is measured, on its half of each batch; one alone validates and tests."""
    found = planned(devices=2).work
    assert found.passes == Passes(forward=3 * (2 * 50 * 32 + 5 * 100 + 70), backward=3 * 2 * 50 * 24)
    assert found.images == 3 * 50 * 8


def test_seconds_of_steps() -> None:
    """25 steps are two and a half epochs: three validations."""
    found = planned(epochs=None, steps=25).cost
    assert found is not None
    assert found.device == 3 * (25 * 0.5 + 3 * 4 + 3)


def test_finished_epochs_are_not_counted() -> None:
    """12 of 15 epochs."""
    found = planned(finished_epochs=12)
    assert (found.work.images, found.work.finished, found.work.left) == (1200, 960, 240)
    assert found.work.passes.backward == 720
    assert found.cost is not None
    assert found.cost.device == pytest.approx(0.2 * 3 * 48)


def test_a_fold_that_waits_for_its_stage_has_ended(tmp_path: Path) -> None:
    """Its state is removed at its end: its epochs are all of the run's, the last one begun and not full."""
    folder = StateFolder(tmp_path, {})
    assert (folder.has_ended(), folder.finished_epochs()) == (False, 0)
    (tmp_path / FINISHED_FILE).write_text('{"settings": {}, "files": {}}')
    assert (folder.has_ended(), folder.finished_epochs()) == (True, 0)
    run = Run.model_validate({"network": {"name": "a"}, "steps": 25, "batch": 8})
    assert RunSteps.of(run, 10) == RunSteps(folds=1, steps=25, epochs=3)


def test_folds_that_have_ended_are_not_opened() -> None:
    """One of three folds is left: its images are read, and two thirds of the epochs are done."""
    run = Run.model_validate({"network": {"name": "a"}, "epochs": 5, "batch": 8, "folds": 3})
    found = planned_run(WORK, run, MEASURED, start=7.0, finished_epochs=10, ended_folds=2).cost
    assert found is not None
    assert found.start == 9
    assert found.device == pytest.approx(48)


@dataclass
class ClockedTask:
    """A task whose parts take known seconds of a clock: 3 to read, 2 a step, 5 a validation, 4 a tested image."""

    seconds: float = 0.0
    testing_processes: int = 4
    name: str = "one, fold_01"
    steps_per_epoch: int = 2
    chosen_by: str = "loss"
    network: nn.Module = field(default_factory=lambda: nn.Linear(1, 1))
    epochs: list[str] = field(default_factory=list)

    def batches(self, epoch: int) -> list[int]:
        self.seconds += 3 if epoch == 1 else 0
        return [1, 2]

    def loss(self, network: nn.Module, batch: int, epoch: int) -> Outcome:
        self.seconds += 2
        self.epochs.append(f"loss {epoch}")
        return Outcome(network(torch.ones(32, 1)).sum(), 32)

    def validate(self, epoch: int) -> dict[str, float]:
        self.seconds += 5
        self.epochs.append(f"validate {epoch}")
        return {}

    def tested_images(self, at_most: int | None = None) -> int:
        return 2 * (at_most or 25)

    def test_table(self, sheets: Path | None, at_most: int | None = None) -> None:
        self.seconds += 4 * self.tested_images(at_most)


class Separate(Device):
    """A device beside the processor."""

    is_separate = True


@pytest.mark.parametrize(("device", "at_once"), [(Device, 1), (Separate, 4)])
def test_the_parts_of_a_training_are_timed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device: type[Device], at_once: int
) -> None:
    task = ClockedTask()
    monkeypatch.setattr(planning, "now", lambda _: task.seconds)
    monkeypatch.setattr(clock, "now", lambda _: task.seconds)
    on = device(torch.device("cpu"))
    watched: Any = planning._Timed(task, on)
    run = Run.model_validate({"network": {"name": "a"}, "steps": 6, "batch": 8})
    train(watched, run, StateFolder(tmp_path, {}), watched.count)
    assert watched.reading == 3
    assert watched.steps[1:] == [2] * 5
    assert watched.validations == [5] * 3
    assert watched.passes_of_step == Passes(forward=32, backward=32)
    # 50 images, of which 16 are tested
    assert planning._seconds_of_tests(task, on) == pytest.approx(50 * 4 / at_once)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("masks", "at_most", "chosen"),
    [
        ("mmmmm", None, "01234"),
        ("mmmmm", 5, "01234"),
        ("mmmmm", 3, "024"),
        ("-m-mm", 2, "14"),
        ("-m-mm", 4, "134"),
        ("-----", 2, "04"),
        ("xxxxx", 2, "04"),
    ],
)
def test_the_images_left_out_that_a_plan_tests(masks: str, at_most: int | None, chosen: str) -> None:
    """Spread over all, with a mask (m) that shows the class if any has one; x: a mask of another class."""
    images = pd.DataFrame(
        {
            "file": list("01234"),
            "mask": [None if each == "-" else "mask.png" for each in masks],
            "left_out": ["other_class" if each == "x" else None for each in masks],
        }
    )
    assert "".join(some_left_out(images, at_most)["file"]) == chosen


def test_early_stopping_ends_a_run_earlier() -> None:
    assert planned(early_stopping=2, folds=3).work.bound == "at most"


def test_epochs_of_a_warm_up_are_counted_as_attacked_ones() -> None:
    found = planned(recipe="adversarial", adversarial={"eps": "4/255", "warm_up_epochs": 2}).work
    assert found.bound == "at most"


def test_steps_under_attack_are_timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Epochs 1 and 2 of a run with three epochs of a warm-up are 4 and 5 to its task."""
    task = ClockedTask()
    monkeypatch.setattr(planning, "now", lambda _: task.seconds)
    watched: Any = planning._Timed(task, Device(torch.device("cpu")), 3)
    run = Run.model_validate({"network": {"name": "a"}, "steps": 4, "batch": 8})
    train(watched, run, StateFolder(tmp_path, {}), watched.count)
    assert task.epochs == ["loss 4", "loss 4", "validate 4", "loss 5", "loss 5", "validate 5"]


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
    """163 runs with all their settings: a change of a default would train them anew."""
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
    """Runs of the grids differ from those on originals in the scenario alone."""
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
