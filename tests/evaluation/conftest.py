"""Sets of a few images, and a Python module with models that keep the contract, and that do not."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from cleanset.edition.paths import Edition
from tests.sets.conftest import make_edition

MODULE = '''
import sys

import numpy as np
import torch
from PIL import Image

FAILS_AFTER = 1_000_000
calls = []

class Colours(torch.nn.Module):
    """Class 0 for red images, class 1 for green ones: a logit of 10 times the mean of the channel."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(10.0))

    def forward(self, pixels):
        calls.append(len(pixels))
        if sum(calls) > FAILS_AFTER:
            raise RuntimeError("power cut")
        means = pixels.mean(dim=(2, 3)) * self.weight
        return torch.nn.functional.pad(means[:, :2], (0, 998))

class Changed(torch.nn.Module):
    def __init__(self, change):
        super().__init__()
        self.colours, self.change = Colours(), change

    def forward(self, pixels):
        return self.change(self.colours(pixels))

def small(image):
    return np.asarray(image.resize((8, 8), Image.Resampling.NEAREST)).transpose(2, 0, 1)

def noisy(image):
    return np.random.default_rng().integers(0, 256, (3, 8, 8), np.uint8)

def by_size(image):
    size = 8 if image.width == 400 else 9
    return np.zeros((3, size, size), np.uint8)

def broken(image):
    raise KeyError("no such\\nkey")

def colours(): return Colours(), small
def named(): return Colours(), "timm-bilinear-8-8"
def keras(): return Colours(), "keras256"
def ten(): return Changed(lambda logits: logits[:, :10]), small
def nan(): return Changed(lambda logits: logits * float("nan")), small
def whole_numbers(): return Changed(lambda logits: logits.long()), small
def several(): return Changed(lambda logits: (logits, logits)), small
def single_precision(): return Changed(lambda logits: logits @ torch.eye(1000)), small
def random(): return Changed(lambda logits: logits + torch.randn_like(logits)), small
def batch_normalised(): return Changed(lambda logits: logits - logits.mean(dim=0)), small
def sparse(): return Changed(lambda logits: logits.to_sparse()), small
def complex(): return Changed(lambda logits: logits + 0j), small
def lazy(): return torch.nn.LazyLinear(1000), small
def meta(): return Colours().to("meta"), small
def state_dict(): return Colours().state_dict(), small

def locked():
    network = Colours()
    network.lock = open(__file__)
    return network, small

def random_preprocessing(): return Colours(), noisy
def leaving(): return Changed(lambda logits: sys.exit("bye")), small
def leaving_at_once(): sys.exit("bye")
def alone(): return Colours()
def no_network(): return "resnet50", small
def no_preprocessing(): return Colours(), None
def unknown_preprocessing(): return Colours(), "timm-bilinear-8-9"
def oblong(): return Colours(), lambda image: np.zeros((3, 8, 9), np.uint8)
def floats(): return Colours(), lambda image: np.zeros((3, 8, 8))
def one_size_each(): return Colours(), by_size
def broken_preprocessing(): return Colours(), broken
def raising(): raise OSError("no\\nweights")
text = "text"
'''
COLOURS = {
    "n01440764/red.png": (255, 0, 0),
    "n01443537/blue.PNG": (0, 0, 255),
    "n01443537/green.png": (0, 255, 0),
}
"""Images of one colour by their file, in classes 0 and 1."""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module in the current folder."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "here"), *sys.path])
    yield "mine"
    sys.modules.pop("mine", None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The images of COLOURS in a folder per wnid, with files that are not images of it next to them."""
    for name, colour in COLOURS.items():
        draw(tmp_path / "set" / name, colour)
    (tmp_path / "set" / "README.md").write_text("three images")
    (tmp_path / "set" / ".cache").mkdir()
    (tmp_path / "set" / "n01440764" / ".DS_Store").write_text("")
    return tmp_path / "set"


def draw(path: Path, colour: tuple[int, int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (12, 10), colour).save(path)


@pytest.fixture(scope="session")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """The edition of the ten images, with the export of its role `standard`; not to be changed."""
    return make_edition(tmp_path_factory.mktemp("evaluated"))
