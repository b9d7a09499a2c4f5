"""A training study next to the edition of ten images: coloured squares that a small network learns in seconds."""

import shutil
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image

from cleanset.studies.training import train
from cleanset.studies.training.study import TrainingStudy

COLOURS = {"n01443537": (220, 90, 30), "n02165456": (200, 30, 60), "n07753592": (230, 210, 60)}
"""By wnid: goldfish, ladybug, banana."""
PER_CLASS = 10
RUN: dict[str, Any] = {
    "network": {"source": "timm", "name": "test_efficientnet"},
    "size": 32, "batch": 8, "epochs": 3, "rate": 0.003, "folds": 1, "test": ["original", "image_grey"],
}  # fmt: skip


def coloured_study(edition: Path, folder: Path, per_class: int = PER_CLASS, **runs: dict[str, Any]) -> TrainingStudy:
    """The study in a new folder, whose edition is a link to a built one; each run is RUN with other keys."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("params.yaml", "data", "raw"):
        (folder / name).symlink_to(edition / name)
    study = TrainingStudy(folder / "studies" / "training")
    study.robustness.backgrounds.mkdir(parents=True)
    draw(study, per_class)
    write_params(study, **(runs or {"one": {}}))
    return study


def write_params(study: TrainingStudy, top: dict[str, Any] | None = None, **runs: dict[str, Any]) -> None:
    """Replace the params; `top` are keys next to the runs."""
    content = {
        "data": {"images": "images", "masks": "masks"}, "folds": 3, "device": "cpu",
        "runs": {name: deepcopy(RUN) | keys for name, keys in runs.items()}, **(top or {}),
    }  # fmt: skip
    study.folder.mkdir(parents=True, exist_ok=True)
    study.params_yaml.write_text(yaml.safe_dump(content, sort_keys=False))


def run(study: TrainingStudy, name: str = "one") -> None:
    """Train a run in this process; its module is that in the folder of the study, and not another study's."""
    for module in ("met", "held"):
        sys.modules.pop(module, None)
        sys.path[:] = [each for each in sys.path if not (Path(each) / f"{module}.py").exists()]
    train.run(study, name)


def draw(study: TrainingStudy, per_class: int) -> None:
    """A square in each image, on noise, and its mask."""
    for folder in ("images", "masks"):
        shutil.rmtree(study.folder / folder, ignore_errors=True)
    for number, (wnid, colour) in enumerate(COLOURS.items()):
        for serial in range(per_class):
            generator = np.random.default_rng([number, serial])
            pixels = generator.integers(60, 160, (64, 80, 3), np.uint8)
            left, top = generator.integers(12, 36, 2)
            mask = np.zeros((64, 80), np.bool_)
            mask[top : top + 22, left : left + 22] = True
            pixels[mask] = colour
            save(Image.fromarray(pixels), study.folder / "images" / wnid / f"{serial:02d}.jpg")
            save(Image.fromarray(mask), study.folder / "masks" / wnid / f"{serial:02d}.png")


def save(image: Image.Image, path: Path) -> None:
    """Write an image, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
