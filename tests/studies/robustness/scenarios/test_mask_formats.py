import io
import json

import numpy as np
import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.robustness.scenarios.mask_formats import FORMATS, SUFFIXES, read_regions

MASK = np.array([[True, True, False, False], [True, True, False, False], [False] * 4])


def png(pixels: list[list[int]] | list[list[list[int]]]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.array(pixels, np.uint8)).save(out, "PNG")
    return out.getvalue()


FILES = {
    "png": png([[9, 9, 0, 0], [9, 9, 0, 0], [0] * 4]),
    "coco": json.dumps({"size": [3, 4], "counts": [0, 2, 1, 2, 7]}).encode(),
    "labelme": json.dumps(
        {"imageHeight": 3, "imageWidth": 4, "shapes": [{"points": [[0, 0], [2, 0], [2, 2], [0, 2]]}]}
    ).encode(),
    "imagenet_s": png([[[44, 1, 0], [44, 1, 0], [0, 0, 0], [0, 0, 0]]] * 2 + [[[0, 0, 0]] * 3 + [[232, 3, 0]]]),
}
WNID = "n02138441"  # number 300


@pytest.mark.parametrize("mask_format", FORMATS)
def test_each_format_gives_the_same_object(mask_format: str) -> None:
    regions = read_regions(FILES[mask_format], mask_format, WNID, "a")
    assert np.array_equal(regions.object, MASK)
    background = ~MASK
    background[2, 3] = mask_format != "imagenet_s"  # ignored there
    assert np.array_equal(regions.background, background)
    assert SUFFIXES[mask_format] in (".png", ".json")


def test_an_unknown_format_is_refused_with_the_list() -> None:
    with pytest.raises(
        CleansetError, match=r"^unknown mask format 'svg'; expected one of png, coco, labelme, imagenet_s$"
    ):
        read_regions(b"", "svg", WNID, "a")
