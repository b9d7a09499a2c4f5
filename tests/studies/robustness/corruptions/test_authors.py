"""The corruptions compared with those of their authors' program: literals that it printed, and cleanset's own ones."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from cleanset.images.codec import decode
from cleanset.images.preprocessing import base_image
from cleanset.studies.robustness.corruptions.authors import DRAWN, elastic_transform, frost
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from cleanset.studies.robustness.corruptions.params import SEVERITIES
from tests.studies.robustness.drawn import drawn

BY_AUTHORS = {
    "frost": "2100b62e6d5cb8bc",
    "snow": "ecdadc52e4970446",
    "motion_blur": "4169395484d1eddd",
    "elastic_transform": "252e8a2d3af25f78",
}
"""SHA-256, shortened, of make_imagenet_c.py's images of 20 photographs at five severities."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_corruptions_of_photographs_are_the_authors(real: Path, name: str) -> None:
    found = sha256()
    for seed, path in enumerate(sorted((real / "photos").glob("*.JPEG"))[:20]):
        for image in corrupted_images(base_image(decode(path.read_bytes())), name, SEVERITIES, seed):
            found.update(image.tobytes())
    assert found.hexdigest()[:16] == BY_AUTHORS[name]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(64, 97), (340, 300), (400, 700)])
def test_other_sizes_than_the_authors(shape: tuple[int, int]) -> None:
    """The larger ones exceed photographs of frost on one axis or both, which are then mirrored."""
    for name, corrupt in DRAWN.items():
        for severity in SEVERITIES:
            found = corrupt(drawn(*shape), severity, np.random.RandomState(severity))
            assert found.dtype == np.uint8
            assert found.shape == (*shape, 3), name


def test_frost_adds_the_weighted_photograph() -> None:
    black, grey = (np.full((40, 40, 3), value, np.uint8) for value in (0, 100))
    ice, both = (frost(image, 2, np.random.RandomState(1)).astype(int) for image in (black, grey))
    assert ice.max() > 100
    # .8 of the image is added to .6 of the photograph, truncated and cut at 255
    assert np.abs(both - np.minimum(ice + 80, 255)).max() <= 1


def test_elastic_transform_keeps_one_color() -> None:
    """A weighted mean of equal values, truncated."""
    for severity in SEVERITIES:
        found = elastic_transform(np.full((64, 64, 3), 200, np.uint8), severity, np.random.RandomState(0))
        assert set(np.unique(found)) <= {199, 200}
