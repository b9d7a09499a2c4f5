"""The spatial grid's images of 20 photographs, by the digest of those of the warm-up's code."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.images.preprocessing import base_image
from cleanset.studies.attacks.changes import SpatialGridAttack, moved_by_pillow, scaled_on_black

THEIRS = "ce02f19ec68a6241"
"""Every 29th change, 27 of each photograph."""


@pytest.mark.long
@pytest.mark.real
@pytest.mark.slow
def test_every_value_is_that_of_the_kit(real: Path) -> None:
    grid, found = SpatialGridAttack(definition="as_coded"), hashlib.sha256()
    for path in sorted((real / "photos").glob("*.JPEG"))[:20]:
        pixels = base_image(Image.open(path)).transpose(2, 0, 1)
        image = Image.fromarray(np.ascontiguousarray(scaled_on_black(pixels, grid.scale).transpose(1, 2, 0)))
        for change in grid.changes()[::29]:
            found.update(np.ascontiguousarray(moved_by_pillow(image, *change)).tobytes())
    assert found.hexdigest()[:16] == THEIRS
