"""The plan of the ImageNet edition, whose images are not here, and of a model on a set of the sample."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.errors import CleansetError
from cleanset.planning import edition as of_edition
from cleanset.planning.stages import StageStates
from cleanset.planning.work import Passes
from cleanset.scoring import engine, parts
from cleanset.scoring.parts import only_start
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
    """Its images once forward, though its weights are not here; a budget needs a start."""
    command = ["plan", "evaluate", str(sample_set), "--model", "timm:test_vit.r160_in1k", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    (work,) = content["works"]
    images = len(list(sample_set.rglob("*.png")))
    assert (work["name"], work["images"], work["passes"]["forward"]) == ("evaluate", images, images)
    for option in ("--budget-hours=1", "--measure"):
        with pytest.raises(CleansetError, match=f"^{option.partition('=')[0]}: no --out; expected the folder"):
            CliRunner().invoke(app, [*command, option], catch_exceptions=False)


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_stage_that_was_interrupted(is_begun: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its finished shards are taken off, and say the hours of the others; a start leaves such shards."""
    edition = make_edition(tmp_path, 24)
    edition.dvc_yaml.write_text("stages: {score: {matrix: {model: [standard]}, cmd: none}}")
    monkeypatch.setattr(engine, "Shards", SmallShards)
    monkeypatch.setattr(parts, "START_SECONDS", 0.0)
    monkeypatch.setattr(of_edition, "stage_states", lambda _: StageStates(changed=None))
    (work,) = (each for each in of_edition.plan(edition).works if each.name == "score")
    assert (work.left, work.seconds) == (24, None)
    if is_begun:
        with only_start():
            score.run(edition, "standard")
        (work,) = (each for each in of_edition.plan(edition).works if each.name == "score")
        assert (work.left, work.passes) == (8, Passes(forward=8))
        assert work.seconds == pytest.approx(work.part.seconds / 2)
        assert 0 < work.part.seconds < 60
    score.run(edition, "standard")
    assert not edition.partial_scores("standard").exists()


@pytest.fixture
def sample_set(tmp_path: Path) -> Path:
    """Four drawn images in a folder for each of two classes."""
    from tests.ten_images import drawn_image

    folder = tmp_path / "images"
    for number, wnid in enumerate(["n01440764", "n01443537"] * 2):
        (folder / wnid).mkdir(parents=True, exist_ok=True)
        drawn_image(180, 170, seed=number).save(folder / wnid / f"{number}.png")
    return folder
