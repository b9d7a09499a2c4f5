"""The plan of the ImageNet edition, whose images are not here, and of a model on a set of the sample."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest
from torch import nn
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.planning import edition as of_edition
from cleanset.planning.stages import StageStates
from cleanset.planning.work import Passes, measured_plan
from cleanset.scoring import engine
from cleanset.scoring.shards import Shards
from cleanset.stages import score
from cleanset.studies.plans import kind_of_folder
from tests.scoring.editions import make_edition
from tests.scoring.test_resuming import SmallShards

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        (".", "edition"), ("imagenet", "edition"), ("studies/attacks", "attacks"),
        ("imagenet/studies/robustness", "robustness"), ("studies/training", "training"),
    ],
)  # fmt: skip
def test_kinds(repository: Path, folder: str, kind: str) -> None:
    assert kind_of_folder(repository / folder) == kind


def test_a_folder_without_a_plan(repository: Path) -> None:
    with pytest.raises(CleansetError, match=r"contest: neither an edition nor in a folder named robustness, attacks, "):
        kind_of_folder(repository / "studies" / "contest")


@pytest.mark.exhaustive
def test_imagenet_without_its_images(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """50,000 images for each network; nothing is downloaded."""
    monkeypatch.setattr(of_edition, "stage_states", lambda _: StageStates(changed=None))
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    done = CliRunner().invoke(app, ["plan", str(repository / "imagenet"), "--json"])
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    works = {(each["name"], each["model"]): each for each in content["works"]}
    assert {model for name, model in works if name == "score"} == {"standard", "norm_robust", "corruption_robust"}
    standard = works["score", "standard"]
    assert (standard["images"], standard["passes"]) == (50_000, {"forward": 50_000, "backward": 0})
    assert works["preprocess", ""]["bytes_read"] == 50_000 * 134_000
    assert content["notes"] == [
        "The index is not here (stage preprocess): counted as 50,000 images, dataset.expect_images of params.yaml."
    ]
    # only trainings choose the processor's instructions
    assert "ATEN_CPU_CAPABILITY" not in os.environ


@pytest.mark.long
def test_a_model_on_a_set(sample_set: Path) -> None:
    """Its images once forward, with their sizes, though its weights are not here: so it cannot be measured."""
    command = ["plan", "evaluate", str(sample_set), "--model", "timm:test_vit.r160_in1k", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    (work,) = content["works"]
    images = len(list(sample_set.rglob("*.png")))
    assert (work["name"], work["images"], work["passes"]["forward"]) == ("evaluate", images, images)
    assert work["bytes_read"] == sum(each.stat().st_size for each in sample_set.rglob("*.png"))
    with pytest.raises(CleansetError, match="the hours of 1 of 1 computations are not known"):
        CliRunner().invoke(app, [*command, "--budget-hours=1"], catch_exceptions=False)


def test_a_measured_model(sample_set: Path) -> None:
    """Its hours are by a sample; no folder is needed, and nothing is written."""
    before = sorted(sample_set.rglob("*"))
    network = "tests.planning.test_edition:mean_colors"
    done = CliRunner().invoke(app, ["plan", "evaluate", str(sample_set), "--model", network, "--json", "--measure"])
    assert done.exit_code == 0, done.output
    (work,) = json.loads(done.stdout)["works"]
    assert 0 < work["seconds"] < 600
    assert sorted(sample_set.rglob("*")) == before


def mean_colors() -> tuple[nn.Module, str]:
    """A network of the mean colors."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 1_000)), "timm-bicubic-32-32"


def test_a_measured_edition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both stages that read the images have their start and their seconds."""
    edition = make_edition(tmp_path, 24)
    edition.dvc_yaml.write_text("stages: {preprocess: {cmd: none}, score: {matrix: {model: [standard]}, cmd: none}}")
    monkeypatch.setattr(of_edition, "stage_states", lambda _: StageStates(changed=None))
    works = {each.name: each for each in measured_plan(lambda: of_edition.plan(edition)).works}
    for name in ("preprocess", "score"):
        costs = works[name].costs
        assert costs is not None
        assert costs.start > 0 < costs.image
        assert works[name].seconds == costs.start + costs.image * 24


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_stage_that_was_interrupted(is_begun: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its finished shards are taken off, and say the hours of the others."""
    edition = make_edition(tmp_path, 24)
    edition.dvc_yaml.write_text("stages: {score: {matrix: {model: [standard]}, cmd: none}}")
    monkeypatch.setattr(engine, "Shards", SmallShards)
    monkeypatch.setattr(of_edition, "stage_states", lambda _: StageStates(changed=None))
    (work,) = (each for each in of_edition.plan(edition).works if each.name == "score")
    assert (work.left, work.seconds) == (24, None)
    if is_begun:
        interrupted(edition, monkeypatch)
        (work,) = (each for each in of_edition.plan(edition).works if each.name == "score")
        assert (work.left, work.passes) == (8, Passes(forward=8))
        assert work.seconds == pytest.approx(work.part.seconds / 2)
        assert 0 < work.part.seconds < 60
    score.run(edition, "standard")
    assert not edition.partial_scores("standard").exists()


def interrupted(edition: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    """Score until a shard is kept."""

    def keep(shards: SmallShards, number: int, scores: pd.DataFrame) -> None:
        Shards.keep(shards, number, scores)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SmallShards, "keep", keep)
        with pytest.raises(KeyboardInterrupt):
            score.run(edition, "standard")


@pytest.fixture
def sample_set(tmp_path: Path) -> Path:
    """Four drawn images in a folder for each of two classes."""
    from tests.ten_images import drawn_image

    folder = tmp_path / "images"
    for number, wnid in enumerate(["n01440764", "n01443537"] * 2):
        (folder / wnid).mkdir(parents=True, exist_ok=True)
        drawn_image(180, 170, seed=number).save(folder / wnid / f"{number}.png")
    return folder
