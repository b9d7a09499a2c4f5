"""Robustness and attacks on a set of images that are not ImageNet's, and what needs those of ImageNet."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.studies.robustness.scenarios.imagenet_s import check_format_suits
from tests.evaluation.compare.command import cleanset, says

NETWORK = """
import torch

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Conv2d(3, 3, 7, 4)

    def forward(self, pixels):
        return self.layer(pixels).mean((2, 3))

class Dropping(Network):
    def forward(self, pixels):
        return torch.nn.functional.dropout(super().forward(pixels), 0.5, training=True)

def network():
    return Network(), "timm-bilinear-32-32"

def dropping():
    return Dropping(), "timm-bilinear-32-32"
"""
FEW = {
    "corruptions": {"names": ["contrast"]}, "perturbations": {"names": ["brightness"]}, "bootstrap": {"draws": 20},
}  # fmt: skip
OF_IMAGENET = re.compile(r"(?i)imagenet|wnid|tench|ilsvrc")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of a network for the three classes."""
    (tmp_path / "threes.py").write_text(NETWORK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    return tmp_path


def evaluate(folder: Path, images: Path, *options: str, params: dict[str, object] = FEW) -> tuple[int, str, str]:
    (folder / "few.yaml").write_text(yaml.safe_dump(params))
    asked = ("robustness", "evaluate", str(images), "--model", "threes:network", "--params", "few.yaml")
    code, shown, errors = says(cleanset(*asked, "--out", "out", *options, cwd=folder))
    return code, " ".join(shown.split()), errors


@pytest.mark.long
@pytest.mark.slow
def test_robustness_is_measured_without_a_reference(own: Edition, folder: Path) -> None:
    code, shown, errors = evaluate(folder, own.export("images"))
    assert (code, errors) == (0, "")
    assert "9 images of 3 classes" in " ".join(shown.split())
    assert "no mCE without a reference" in shown
    assert shown.count("Measured without a reference: no published numbers are of these images.") == 2
    assert "T5D" not in shown
    written = {path: path.read_text() for path in (folder / "out").rglob("*") if path.suffix in (".csv", ".json")}
    assert len(written) > 3
    assert [path for path, text in {Path("shown"): shown, **written}.items() if OF_IMAGENET.search(text)] == []
    card = json.loads((folder / "out" / "results.json").read_text())["families"]["corruptions"]["comparability"]
    assert (card["classes"]["of_predictions"], card["reference"]) == (3, None)
    # the finished results, as tables for papers
    code, shown, _ = evaluate(folder, own.export("images"), "--format", "markdown")
    assert (code, shown.count("| model |"), shown.count("| threes:network |")) == (0, 2, 2)


@pytest.mark.long
@pytest.mark.slow
def test_a_model_that_draws_is_reported(own: Edition, folder: Path) -> None:
    """Dropout that was left in training, compared with a network without."""
    code, shown, _ = evaluate(folder, own.export("images"), "--model", "threes:dropping")
    assert (code, shown.count("is not deterministic")) == (0, 1)
    assert "threes:dropping is not deterministic: the same images got other scores in a second run" in shown
    families = json.loads((folder / "out" / "results.json").read_text())["families"]
    for family in families.values():
        assert {each["model"]: each["deterministic"] for each in family["models"]} == {
            "threes:network": True,
            "threes:dropping": False,
        }


@pytest.mark.long
@pytest.mark.slow
def test_a_folder_without_manifest_has_the_classes_of_the_named_edition(own: Edition, folder: Path) -> None:
    images = own.folder.parent / "images"
    code, shown, _ = evaluate(folder, images, "--edition", str(own.folder))
    assert (code, "12 images of 3 classes" in shown) == (0, True)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_study_of_attacks(own: Edition, folder: Path) -> None:
    """Its stages have the classes of their edition; a further model of a module is judged again in a fresh process."""
    shutil.copytree(own.folder, folder / "edition")
    robustness, attacks = (folder / "edition" / "studies" / name for name in ("robustness", "attacks"))
    for each in (robustness, attacks):
        each.mkdir(parents=True)
    shutil.copy(folder / "threes.py", robustness)
    wanted = {"images": "union", "jpeg": None, "seed": 0, "further_models": {"mine": "threes:network"}}
    (robustness / "params.yaml").write_text(yaml.safe_dump(wanted))
    (attacks / "params.yaml").write_text("{images: 3, attacks: {pgd: {steps: 2}}}")
    options = ("--model", "mine", "--attack", "pgd")
    assert says(cleanset("robustness", "stage", "images", "--study", str(robustness), cwd=folder)) == (0, "", "")
    code, _, errors = says(cleanset("robustness", "stage", "attacks", "--study", str(attacks), *options, cwd=folder))
    assert (code, errors) == (0, ""), errors
    record = json.loads((attacks / "data" / "attacks" / "pgd" / "mine" / "record.json").read_text())
    assert (record["attacked"], record["judged_anew"]) == (3, None)


@pytest.mark.long
@pytest.mark.slow
def test_attacks(own: Edition, folder: Path) -> None:
    asked = ("attacks", "evaluate", "--attacks", "pgd", "--limit", "3", str(own.export("images")))
    code, shown, errors = says(cleanset(*asked, "--model", "threes:network", "--out", "out", cwd=folder))
    assert (code, "9 images" in " ".join(shown.split())) == (0, True)
    assert errors.startswith("the search for signs of gradient masking takes up to")
    assert not OF_IMAGENET.search(errors + shown + (folder / "out" / "attack_results.json").read_text())


@pytest.mark.parametrize("family", ["corruptions", "perturbations", "scenarios"])
def test_published_images_that_are_not_there(family: str, own: Edition, folder: Path) -> None:
    params = FEW | {family: {"names": ["snow"], "published": "published"}}
    code, shown, errors = evaluate(folder, own.export("images"), params=params)
    assert (code, shown) == (1, "")
    assert errors.startswith("error: published: no folder; expected a folder with <")
    assert errors.endswith(f": correct {family}.published in params.yaml\n")


def test_masks_of_imagenet_need_imagenet(own: Edition) -> None:
    found = "a.png, a mask of format imagenet_s: needs the images of ImageNet, which these are not; expected png"
    with pytest.raises(CleansetError, match=found):
        check_format_suits("imagenet_s", own.read_classes(), "a.png")


def test_a_contest_needs_imagenet(own: Edition, tmp_path: Path) -> None:
    contest = tmp_path / "studies" / "contest"
    contest.mkdir(parents=True)
    (tmp_path / "data").symlink_to(own.folder / "data")
    assert says(cleanset("contest", "check", cwd=contest)) == (
        1, "", "error: a contest: needs the images of ImageNet, which these are not; expected one in an edition of "
        "them\n",
    )  # fmt: skip
