"""`robustness`, `attack`, `compare`: the numbers and files of the commands, and models and attacks as objects."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from foolbox.attacks.fast_gradient_method import LinfFastGradientAttack
from foolbox.models.pytorch import PyTorchModel
from torch import Tensor, nn
from torchvision import transforms

import cleanset
from cleanset.studies.attacks import commands as attack_commands
from cleanset.studies.attacks import earlier_disk
from cleanset.studies.robustness import commands as robustness_commands
from tests.evaluation.conftest import draw

pytestmark = pytest.mark.slow
MODULE = """
import torch
from torch import nn

class Colours(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(10.0))

    def forward(self, pixels):
        return nn.functional.pad(pixels.mean(dim=(2, 3))[:, :2] * self.weight, (0, 998))

def net():
    return Colours(), "timm-bilinear-40-32"

class Signed:
    def __init__(self, share=1.0):
        self.share = share

    def __call__(self, model, images, labels, eps):
        pixels = images.clone().requires_grad_(True)
        nn.functional.cross_entropy(model(pixels), labels).backward()
        return images + self.share * eps * pixels.grad.sign()
"""
FAMILIES = {"corruptions": {"names": ["brightness", "contrast"], "severities": [1, 2]}, "bootstrap": {"draws": 20}}


@pytest.fixture(scope="module", autouse=True)
def quick() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(earlier_disk, "beginning", lambda *_: None)
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of four images of two classes, with a module next to it."""
    (tmp_path / "paints.py").write_text(MODULE)
    for number, color in enumerate([(200, 90, 20), (120, 110, 0)]):
        draw(tmp_path / "images" / "n01440764" / f"{number}.png", color)
        draw(tmp_path / "images" / "n01443537" / f"{number}.png", (color[1], color[0], 9))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".csv", ".json", ".html", ".png")
    }


def test_robustness_is_the_command(folder: Path) -> None:
    (folder / "study").mkdir()
    (folder / "study" / "params.yaml").write_text(yaml.safe_dump(FAMILIES))
    robustness_commands.evaluate(
        images="images", model=["paints:net"], out=Path("by_command"), params=Path("study/params.yaml")
    )
    found = cleanset.robustness("paints:net", "images", families=FAMILIES, out="by_function")
    assert files_of(folder / "by_function") == files_of(folder / "by_command")
    assert "results.json" in files_of(folder / "by_function")
    rows = found.to_pandas().set_index(["measure", "change"])["value"]
    assert (
        rows["error", "brightness"]
        == found.as_dict()["families"]["corruptions"]["models"][0]["measures"]["error/brightness"]["value"]
    )
    assert "mean error" in found.table()
    assert found.latex().startswith(r"\begin{table}")
    assert "<table>" in found._repr_html_()
    assert "<svg" in found._repr_html_()


def test_attack_is_the_command(folder: Path) -> None:
    attack_commands.evaluate(
        images="images", model=["paints:net"], out=Path("by_command"), attacks="paints:Signed", eps="8/255",
        warnings=False,
    )  # fmt: skip
    found = cleanset.attack("paints:net", "images", "paints:Signed", eps="8/255", out="by_function", warnings=False)
    assert files_of(folder / "by_function") == files_of(folder / "by_command")
    rows = found.to_pandas().set_index(["attack", "measure"])["value"]
    # a step of 8/255 against the weaker colour turns images whose colours are 10 apart
    assert rows["signed", "success"] == 0.5
    assert found.as_dict()["attacks"]["signed"]["kind"] == "paints:Signed"
    assert len(found.as_dict()["attacks"]["signed"]["code"]) == 64


def to_pixels() -> transforms.Compose:
    return transforms.Compose([transforms.Resize(40), transforms.CenterCrop(32), transforms.ToTensor()])


class Colours(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(10.0))

    def forward(self, pixels: Tensor) -> Tensor:
        return nn.functional.pad(pixels.mean(dim=(2, 3))[:, :2] * self.weight, (0, 998))


def test_models_as_objects(folder: Path) -> None:
    """A network, a function and a model of foolbox have the measures of the model by name; what is given stays."""
    network = Colours().train()
    normalized = transforms.Compose([*to_pixels().transforms, transforms.Normalize([0.5] * 3, [0.25] * 3)])

    def of_normalized(pixels: Tensor) -> Tensor:
        logits: Tensor = network(pixels * 0.25 + 0.5)
        return logits

    models = {
        "network": (network, to_pixels()),
        "function": (of_normalized, normalized),
        "foolbox": (PyTorchModel(Colours().eval(), bounds=(0, 1), device="cpu"), to_pixels()),
        "name": "paints:net",
    }
    found = cleanset.robustness(models, "images", families=FAMILIES).to_pandas()
    by_model = found.pivot_table("value", ["measure", "change"], "model")
    assert len(by_model) > 10
    for name in ("network", "function", "foolbox"):
        assert np.allclose(by_model[name], by_model["name"], atol=1e-6)
    assert network.training
    assert network.weight.requires_grad


def test_attacks_as_objects(folder: Path) -> None:
    def signed(model: nn.Module, images: Tensor, labels: Tensor, eps: float) -> Tensor:
        pixels = images.clone().requires_grad_(True)
        (ascent,) = torch.autograd.grad(nn.functional.cross_entropy(model(pixels), labels), pixels)
        return images + 10 * eps * ascent.sign()

    attacks = {"mine": signed, "fgsm": LinfFastGradientAttack(), "none": None}
    found = cleanset.attack(Colours(), "images", attacks, transform=to_pixels(), eps=8 / 255, warnings=False)
    rows = found.to_pandas().set_index(["attack", "measure"])["value"]
    assert (rows["mine", "success"], rows["fgsm", "success"], rows["none", "success"]) == (0.5, 0.5, 0.0)
    # ten times as far is projected onto the ball
    assert rows["mine", "linf"] == pytest.approx(8 / 255)


def test_a_notebook_that_is_interrupted_continues(folder: Path) -> None:
    first = cleanset.robustness("paints:net", "images", families=FAMILIES, out="kept")
    answers = folder / "kept" / "corruptions" / "paints_net.parquet"
    before = answers.stat().st_mtime_ns
    again = cleanset.robustness("paints:net", "images", families=FAMILIES, out="kept")
    assert answers.stat().st_mtime_ns == before
    assert again.table() == first.table()


def test_a_module_is_that_of_now(folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: Any) -> None:
    """A module that is edited between two calls, or another one of its name in another folder, is imported again."""

    def clean_error() -> float:
        found = cleanset.robustness("painted:net", folder / "images", families=FAMILIES).to_pandas()
        return float(found.set_index("measure")["value"]["error_clean"])

    inverted = "from paints import *\nclass Other(Colours):\n    def forward(self, pixels):\n"
    inverted += "        return -super().forward(pixels)\n\ndef net():\n    return Other(), 'timm-bilinear-40-32'\n"
    (folder / "painted.py").write_text("from paints import net\n")
    as_written = clean_error()
    (folder / "painted.py").write_text(inverted)
    edited = clean_error()
    other = tmp_path_factory.mktemp("other")
    (other / "painted.py").write_text("from paints import net\n")
    (other / "paints.py").write_text(MODULE)
    monkeypatch.chdir(other)
    assert (as_written, edited, clean_error()) == (0, 1, 0)


def test_compare(folder: Path) -> None:
    one = cleanset.robustness("paints:net", "images", name="one", families=FAMILIES)
    other = cleanset.robustness("paints:net", "images", name="other", families=FAMILIES, out="other")
    found = cleanset.compare(one, "other")
    assert list(found.to_pandas()["model"].unique()) == ["one", "other"]
    assert found.problems == {}
    with pytest.raises(cleanset.CleansetError, match="of one model at most; expected two or more"):
        cleanset.compare(other)
    further = cleanset.robustness("paints:net", "images", families={**FAMILIES, "seed": 1})
    assert list(cleanset.compare(one, further).problems) == ["result 2"]


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        (7, {}, "a value of type int; expected a name"),
        (Colours(), {}, "Colours: no transform; expected keras256"),
        (Colours(), {"transform": transforms.Resize(40)}, "a transform that gives a PIL image"),
        (Colours(), {"transform": lambda image: np.full((3, 8, 8), 0.3)}, "the transform gives float64"),
        (Colours(), {"transform": lambda image: 2 * to_pixels()(image)}, "the transform gives float32 pixels, 0.8"),
        (Colours(), {"transform": to_pixels(), "families": "weather"}, "unknown family 'weather'"),
        (Colours(), {"transform": to_pixels(), "families": {"corruptions": ["frogs"]}}, "unknown corruption 'frogs'"),
    ],
)
def test_what_is_refused(folder: Path, model: Any, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(cleanset.CleansetError, match=expected):
        cleanset.robustness(model, "images", **{"families": FAMILIES, **options})


def test_custom_corruptions_are_pinned(folder: Path) -> None:
    """The digest of the code is in the card, and other code is another measurement."""
    source = "def dim(image, severity, generator):\n    return image // severity\n"
    (folder / "dims.py").write_text(source)
    families = {"corruptions": {"names": ["dims:dim", "brightness"], "severities": [1, 2]}}
    found = cleanset.robustness("paints:net", "images", families=families, out="kept")
    card = found.as_dict()["families"]["corruptions"]["comparability"]
    assert list(card["settings"]["code"]) == ["dims:dim"]
    assert card["changes"] == {"brightness": "1 2", "dims:dim": "1 2"}
    assert "dims:dim: custom corruptions, of no benchmark." in " ".join(found.table().split())
    assert "dims:dim" in list(found.to_pandas()["change"])
