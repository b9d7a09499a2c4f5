"""Files of ImageNet-S."""

import hashlib
import io

import numpy as np
import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.robustness.scenarios.imagenet_s import imagenet_s_regions, imagenet_s_wnids, segmented_classes

XIMAGENET_12 = (
    "n01689811", "n01693334", "n01985128", "n02066245", "n02085936", "n02119022", "n02607072", "n02692877", "n02974003",
    "n02977058", "n02992211", "n07614500",
)  # fmt: skip


def file(rows: list[list[int]], mode: str = "RGB") -> bytes:
    """A file with these class numbers."""
    numbers = np.array(rows)
    out = io.BytesIO()
    pixels = np.stack([numbers % 256, numbers // 256, numbers * 0], axis=-1).astype(np.uint8)
    Image.fromarray(pixels).convert(mode).save(out, "PNG")
    return out.getvalue()


TENCH, GOLDFISH, LAST = "n01440764", "n01443537", "n15075141"
TWO = file([[0, 1, 1, 2], [0, 1, 1000, 919]])


def test_the_classes_are_the_published_ones() -> None:
    wnids = imagenet_s_wnids()
    assert len(wnids) == 919
    assert list(wnids) == sorted(set(wnids))
    assert (wnids[0], wnids[1], wnids[-1]) == (TENCH, GOLDFISH, LAST)
    assert sum(wnid in wnids for wnid in XIMAGENET_12) == 10
    # sort ImageNetS_categories_im919.txt | head -c -1 | sha256sum
    digest = hashlib.sha256("\n".join(wnids).encode()).hexdigest()
    assert digest == "b2ee89cf2d5def583dcea806b8cc99def3d9bb7355ae981fc4c986c6d8dec1da"


def test_which_classes_a_file_has() -> None:
    assert segmented_classes(TWO, "a.png") == (TENCH, GOLDFISH, LAST)
    assert segmented_classes(file([[0, 1000]]), "a.png") == ()


def test_the_object_is_the_class_and_ignored_pixels_are_in_neither_region() -> None:
    regions = imagenet_s_regions(TWO, TENCH, "a.png")
    assert regions.object.tolist() == [[False, True, True, False], [False, True, False, False]]
    assert regions.background.tolist() == [[True, False, False, True], [True, False, False, True]]
    assert imagenet_s_regions(TWO, LAST, "a.png").object.sum() == 1


@pytest.mark.parametrize(
    ("data", "wnid", "problem"),
    [
        (
            file([[0, 1, 2]]),
            LAST,
            f"a.png: has {TENCH}, {GOLDFISH}; expected '{LAST}', the class of the image in its set",
        ),
        (file([[0, 1000]]), TENCH, f"a.png: has no class; expected '{TENCH}'"),
        (file([[0, 1]]), "n02974003", f"a.png: has {TENCH}; expected 'n02974003'"),  # one of the 81
        (file([[0, 920]]), TENCH, "a.png: class number 920; expected 0 to 919, or 1000 for ignored"),
        (file([[0, 1]], "L"), TENCH, "a.png: PNG of mode L; expected RGB"),
        (b"", TENCH, r"a.png: cannot be read \(empty\); expected a mask as PNG"),
    ],
)
def test_a_wrong_file_is_refused(data: bytes, wnid: str, problem: str) -> None:
    with pytest.raises(CleansetError, match=f"^{problem}"):
        imagenet_s_regions(data, wnid, "a.png")
