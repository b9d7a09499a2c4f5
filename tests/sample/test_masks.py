"""The committed masks and backgrounds are those that the sample's drawing code draws."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import masks
import plan
from draw import draw, image_id
from drawing.backdrops import BACKDROPS

EVERY = 16
"""Interval at which images are drawn again."""


@pytest.fixture(scope="module")
def study(repository: Path) -> Path:
    return repository / "studies" / "robustness"


@pytest.mark.long
@pytest.mark.slow
def test_the_masks(study: Path) -> None:
    drawn = 0
    for each in plan.plans()[::EVERY]:
        result, path = masks.masked(each), study / "masks" / "drawn" / f"{image_id(each.number)}.png"
        assert path.is_file() == (result.mask is not None), path.name
        if result.mask is None:
            continue
        drawn += 1
        with Image.open(path) as stored, Image.open(io.BytesIO(result.jpeg)) as image:
            assert stored.size == image.size
            assert np.array_equal(np.asarray(stored), np.asarray(result.mask) > 127), path.name
    assert drawn > 15


def test_a_mask_leaves_every_other_byte_unchanged() -> None:
    each = next(each for each in plan.plans() if len(each.shown) == 1 and each.flaw == "frame")
    assert masks.masked(each).jpeg == draw(each).jpeg


def test_the_backgrounds(study: Path) -> None:
    names = {path.stem for path in (study / "backgrounds").glob("*.jpg")}
    assert names == set(BACKDROPS)
    for name in sorted(names):
        with Image.open(study / "backgrounds" / f"{name}.jpg") as stored:
            again = Image.open(io.BytesIO(masks.background(name)))
            assert np.array_equal(np.asarray(stored), np.asarray(again))
