"""The plan of the ImageNet edition, whose images are not here, and of a model on a set of the sample."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.planning import edition as of_edition
from cleanset.planning.stages import StageStates
from cleanset.scoring.engine import settings_for
from cleanset.studies.plans import kind_of_folder
from tests.sets.conftest import make_edition
from tests.ten_images import id_of

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
    """50,000 images for each network, of random weights: nothing is downloaded."""
    monkeypatch.setattr(of_edition, "stage_states", lambda _: StageStates(changed=None))
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    done = CliRunner().invoke(app, ["plan", str(repository / "imagenet"), "--json"])
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    works = {(each["name"], each["model"]): each for each in content["works"]}
    assert {model for name, model in works if name == "score"} == {"standard", "norm_robust", "corruption_robust"}
    standard = works["score", "standard"]
    assert (standard["images"], standard["passes"], standard["bound"]) == (
        50_000, {"forward": 50_000, "backward": 0}, "exact",
    )  # fmt: skip
    # four billion multiplications and additions for each image
    assert 7e9 * 50_000 < standard["cost"]["gpu"] * 1.41e13 < 9e9 * 50_000
    assert works["preprocess", ""]["bytes_read"] == 50_000 * 134_000
    assert "standard: its weights are not here; measured with random ones." in content["notes"]
    # only trainings choose the processor's instructions
    assert "ATEN_CPU_CAPABILITY" not in os.environ


@pytest.mark.long
def test_a_model_on_a_set(sample_set: Path) -> None:
    """Its images once forward, with random weights; a budget that is too small refuses on one line."""
    command = ["plan", "evaluate", str(sample_set), "--model", "timm:test_vit.r160_in1k", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    (work,) = content["works"]
    images = len(list(sample_set.rglob("*.png")))
    assert (work["name"], work["images"], work["passes"]["forward"]) == ("evaluate", images, images)
    with pytest.raises(CleansetError, match=r"hours; expected at most 1e-09: run a part of it"):
        CliRunner().invoke(app, [*command, "--budget-hours", "1e-9"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("missing", "lacking"), [("index", "index is"), ("images", "images are"), ("both", "images are"), ("", "")]
)
def test_what_is_not_here_to_be_read(missing: str, lacking: str, tmp_path: Path) -> None:
    """The index may be missing beside the images, as before stage preprocess, and the images beside it."""
    edition = make_edition(tmp_path)
    params = read_params(tmp_path)
    if missing in ("index", "both"):
        edition.index.unlink()
    if missing in ("images", "both"):
        edition.path(params.dataset.images).unlink()
    planner = of_edition._Planner(
        edition=edition, params=params, settings=settings_for(params.score), states=StageStates(changed=None)
    )
    assert len(planner._read(id_of(1))) > 0
    note = f"The {lacking} not here: reading was measured on a drawn image of 500 x 375 pixels."
    assert planner.notes == ([note] if missing else [])


@pytest.fixture
def sample_set(tmp_path: Path) -> Path:
    """Four drawn images in a folder for each of two classes."""
    from tests.ten_images import drawn_image

    folder = tmp_path / "images"
    for number, wnid in enumerate(["n01440764", "n01443537"] * 2):
        (folder / wnid).mkdir(parents=True, exist_ok=True)
        drawn_image(180, 170, seed=number).save(folder / wnid / f"{number}.png")
    return folder
