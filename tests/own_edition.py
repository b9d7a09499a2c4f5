"""A small edition of images that are not ImageNet's, made by the stages themselves, and reviewed."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.review.file_format import parse_review
from cleanset.stages.commands import STAGES
from cleanset.tables import INDEX, read_table
from tests.evaluation.compare.command import cleanset, says
from tests.review.texts import save
from tests.ten_images import drawn_image

KEYS = ("001", "ripe pears", "x-ray (old)")
REJECT = {"verdict": "reject", "reason": "blur"}


def make(
    folder: Path,
    keys: Sequence[str] = KEYS,
    edge: int = 40,
    each: int = 4,
    copies: dict[str, str] | None = None,
    options: Sequence[str] = (),
) -> Edition:
    """An edition `own` below the folder, with `each` images of a class, drawn at random and not reviewed yet.

    `copies`: by file, the file that it is the same as, but for one level of one pixel. `options` of cleanset edition.
    """
    for number, key in enumerate(keys):
        (folder / "images" / key).mkdir(parents=True)
        for place in range(each):
            drawn_image(edge, edge, seed=100 * number + place).save(folder / "images" / key / f"{place:03d}.png")
    for copy, file in (copies or {}).items():
        pixels = np.array(Image.open(folder / "images" / file))
        pixels[0, 0, 0] ^= 1
        Image.fromarray(pixels).save(folder / "images" / copy)
    assert says(cleanset("edition", "own", "--images", "images", *options, cwd=folder))[0] == 0
    edition = Edition(folder / "own")
    run(edition, "preprocess", "score", "intersect", "select")
    return edition


def run(edition: Edition, *stages: str) -> None:
    """Run stages for all models."""
    for stage in stages:
        for role in read_params(edition.folder).models if STAGES[stage] else [None]:
            import_module(f"cleanset.stages.{stage}").run(edition, *([role] if role else []))


def review(edition: Edition, reviewer: str, others: dict[str, dict[str, Any]] | None = None) -> None:
    """Save a verdict on every image: clean, or what `others` has for its image id."""
    classes = edition.read_classes()
    index = read_table(edition.index, INDEX, classes)
    for image_id, digest, labels in zip(index["image_id"], index["sha256"], index["real_classes"], strict=True):
        entry = (others or {}).get(image_id, {"verdict": "clean"}) | {"sha256": digest}
        given = parse_review(entry, "here")
        save(edition.reviews, reviewer, classes.keys[labels[0]], image_id, given, classes=classes)


def finished(folder: Path, **options: Any) -> Edition:
    """An edition whose images are all clean, with its sets."""
    edition = make(folder, **options)
    review(edition, "ada")
    run(edition, "crops", "score_crops", "review_apply", "export", "count")
    return edition


def change_params(edition: Edition, **sections: Any) -> None:
    """Set keys of sections of params.yaml."""
    params = yaml.safe_load(edition.params_yaml.read_text())
    for name, keys in sections.items():
        params[name] |= keys
    edition.params_yaml.write_text(yaml.safe_dump(params, sort_keys=False))
