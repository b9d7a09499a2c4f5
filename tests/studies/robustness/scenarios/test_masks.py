"""Reading, checking, cropping and comparing masks."""

import io
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from cleanset.errors import CleansetError
from cleanset.images.preprocessing import base_image
from cleanset.studies.robustness.scenarios.mask_formats import (
    FORMATS,
    MASK_SUFFIXES,
    labelme_mask,
    png_mask,
    read_regions,
    rle_mask,
)
from cleanset.studies.robustness.scenarios.masks import (
    Mask,
    base_mask,
    base_regions,
    cropped_mask,
    intersection_over_union,
    regions_of,
    unsuitable,
)
from tests.properties import examples


def mask_of(*rows: str) -> Mask:
    """A mask, `#` being the object."""
    return np.array([[each == "#" for each in row] for row in rows])


CORNER = mask_of("##..", "#...", "....")


def png(image: Image.Image, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", **options)
    return out.getvalue()


def labelme(*polygons: Sequence[Sequence[float]], **options: Any) -> str:
    shapes = [{"label": "dog", "shape_type": "polygon", "points": points} for points in polygons]
    return json.dumps({"imageHeight": 3, "imageWidth": 4, "shapes": shapes} | options)


# PNG


@pytest.mark.parametrize("mode", ["1", "L", "I;16", "RGB", "P"])
def test_a_png_of_any_mode_has_background_0(mode: str) -> None:
    values = CORNER.astype(np.uint8) * 3
    if mode == "P":
        image = Image.fromarray(values).convert("P")
        image.putpalette([200, 200, 200, 1, 1, 1, 2, 2, 2, 0, 0, 0])  # the index decides, not the colour
    elif mode == "I;16":
        image = Image.fromarray(values.astype(np.uint16) * 256)  # one whose low byte is 0
    elif mode == "RGB":
        image = Image.fromarray(np.stack([values * 0, values * 0, values], axis=-1))
    else:
        image = Image.fromarray(CORNER.astype(np.uint8) * 255).convert(mode)
    assert np.array_equal(png_mask(png(image), "a.png"), CORNER)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", r"a.png: cannot be read \(empty\); expected a mask as PNG"),
        (b"\xff\xd8 no", r"a.png: cannot be read \(.*\); expected a mask as PNG"),
        (png(Image.new("L", (4, 3))), "a.png: empty mask; expected an object: draw it, or remove the file"),
        (png(Image.new("L", (4, 3), 1)), "a.png: full mask, without a background: draw it again, or remove"),
        (
            png(Image.new("RGBA", (4, 3), 1)),
            "a.png: PNG of mode RGBA; expected a single value for each pixel, 0 for background",
        ),
        (png(Image.new("LA", (4, 3), 1)), "a.png: PNG of mode LA; expected a single value"),
    ],
)
def test_a_wrong_png_is_refused_in_one_line(data: bytes, problem: str) -> None:
    with pytest.raises(CleansetError, match=f"^{problem}") as raised:
        png_mask(data, "a.png")
    assert "\n" not in str(raised.value)


# COCO's run-length encoding


def test_a_run_length_encoding_goes_down_the_columns() -> None:
    # columns: ##. #.. ... ...
    assert np.array_equal(rle_mask('{"size": [3, 4], "counts": [0, 2, 1, 1, 8]}', "a.json"), CORNER)
    # as text, the fourth and fifth lengths are differences to the second and third: 1 - 2 and 8 - 1
    assert np.array_equal(rle_mask('{"size": [3, 4], "counts": "021O7"}', "a.json"), CORNER)


def test_long_and_negative_numbers_in_cocos_text() -> None:
    # 40 is 8 + 32 x 1: "X1"; 20 has bit 16 set and needs a group more: "d0"; then 3 - 40 + ... as differences
    mask = rle_mask('{"size": [10, 10], "counts": "X1d0X1"}', "a.json")
    assert mask.T.ravel().tolist() == [False] * 40 + [True] * 20 + [False] * 40


def coco_text(runs: list[int]) -> str:
    """An encoder, written from the description of the format: two's complement in groups of five bits."""
    text = ""
    for place, run in enumerate(runs):
        value = run - runs[place - 2] if place > 2 else run
        groups = 1
        while not -(1 << (5 * groups - 1)) <= value < 1 << (5 * groups - 1):
            groups += 1
        bits = f"{value % (1 << 5 * groups):0{5 * groups}b}"
        parts = [int(bits[at : at + 5], 2) for at in range(0, len(bits), 5)][::-1]
        text += "".join(chr(48 + part + (32 if more < groups - 1 else 0)) for more, part in enumerate(parts))
    return text


@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 2**32 - 1), st.floats(0.02, 0.98))
@examples(100)
def test_lists_and_text_give_the_mask_back(height: int, width: int, seed: int, share: float) -> None:
    mask = np.random.default_rng(seed).random((height, width)) < share
    if mask.all() or not mask.any():
        return
    column = mask.T.ravel()
    edges = [0, *(np.flatnonzero(column[1:] != column[:-1]) + 1).tolist(), column.size]
    runs = [after - before for before, after in pairwise(edges)]
    runs = [0, *runs] if column[0] else runs
    for counts in (runs, coco_text(runs)):
        assert np.array_equal(rle_mask(json.dumps({"size": [height, width], "counts": counts}), "a.json"), mask)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "a.json, line 1: not JSON"),
        ("[]", r"a.json: the file: expected keys and values; found \[\]; expected COCO's"),
        ('{"size": [3], "counts": [12]}', "a.json: .*; expected COCO's"),
        ('{"size": [3, true], "counts": [3]}', "a.json: .*; expected COCO's"),
        ('{"size": [300000, 300000], "counts": [3]}', "a.json: .*; expected COCO's"),
        ('{"size": [3, 4], "counts": [4, 4]}', "a.json: runs of 8 pixels in all; expected 3 x 4"),
        (
            '{"size": [3, 4], "counts": [4, -4, 12]}',
            "a.json: counts.1: expected greater than or equal to 0; found -4; expected",
        ),
        ('{"size": [3, 4], "counts": [4, 4.0, 4]}', "a.json: counts.1: expected an integer; found 4.0; expected"),
        ('{"size": [3, 4], "counts": null}', "a.json: counts: expected a list; found None; expected"),
        ('{"size": [3, 4], "counts": "0 1"}', "a.json: counts: ' ' cannot be there; found '0 1'; expected"),
        ('{"size": [3, 4], "counts": "X"}', "a.json: counts: it ends within a number; found 'X'; expected"),
        ('{"size": [3, 4], "counts": [12]}', "a.json: empty mask"),
        ('{"size": [3, 4], "counts": [0, 12]}', "a.json: full mask"),
    ],
)
def test_a_wrong_run_length_encoding_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CleansetError, match=f"^{problem}"):
        rle_mask(text, "a.json")


# LabelMe


def test_a_polygon_holds_the_pixels_whose_centre_is_inside() -> None:
    square = [[1.0, 0.0], [3.0, 0.0], [3.0, 2.0], [1.0, 2.0]]
    assert np.array_equal(labelme_mask(labelme(square), "a.json"), mask_of(".##.", ".##.", "...."))
    # up to .4 beyond and before an edge no centre is reached or lost
    loose = [[0.6, 0], [3.4, 0], [3.4, 2.4], [0.6, 2.4]]
    assert np.array_equal(labelme_mask(labelme(loose), "a.json"), mask_of(".##.", ".##.", "...."))


def test_polygons_are_joined_and_cut_at_the_frame() -> None:
    left, right = [[-9, -9], [1, -9], [1, 9], [-9, 9]], [[3, 2], [99, 2], [99, 99], [3, 99]]
    assert np.array_equal(labelme_mask(labelme(left, right), "a.json"), mask_of("#...", "#...", "#..#"))


def test_a_large_polygon_is_nearly_pillows() -> None:
    points = [[20.3, 11.1], [180.2, 40.7], [150.9, 160.4], [60.5, 170.8], [35.0, 90.0]]
    image = Image.new("1", (200, 180))
    ImageDraw.Draw(image).polygon([(x, y) for x, y in points], fill=1, outline=1)
    found = labelme_mask(labelme(points, imageHeight=180, imageWidth=200), "a.json")
    assert intersection_over_union(found, np.asarray(image)) > 0.98


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (labelme([[0, 0], [1, 1]]), "a.json: shapes.0.points: expected at least 3 items, not 2"),
        (labelme([[0, 0], [1, 1], [2]]), "a.json: shapes.0.points.2: expected at least 2 items, not 1"),
        (labelme([[0, 0], [1, 1], [2, True]]), "a.json: shapes.0.points.2.1: expected a number; found True"),
        (labelme([[0, 0], [1, 1], [2, 1e300]]), "a.json: shapes.0.points.2.1: expected less than 100000000"),
        (labelme(imageHeight=None), "a.json: imageHeight: expected an integer; found None; expected a LabelMe"),
        (labelme(imageHeight=10**8), "a.json: 100000000 x 4 pixels; expected at most 100,000,000"),
        (
            labelme(shapes=[{"shape_type": "circle", "points": []}]),
            "a.json: shapes.0.shape_type: expected 'polygon'; found 'circle'",
        ),
        (labelme(shapes=[7]), "a.json: shapes.0: expected keys and values; found 7"),
        (labelme(shapes=None), "a.json: .*; expected a LabelMe file with imageHeight, imageWidth and shapes"),
        (labelme(), "a.json: empty mask"),
        (labelme([[-9, -9], [9, -9], [9, 9], [-9, 9]]), "a.json: full mask"),
        ("[1]", r"a.json: the file: expected keys and values; found \[1\]; expected a LabelMe file"),
        ("", "a.json, line 1: not JSON"),
    ],
)
def test_a_wrong_labelme_file_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CleansetError, match=f"^{problem}"):
        labelme_mask(text, "a.json")


# with its image


def test_a_mask_is_cropped_as_its_image() -> None:
    assert np.array_equal(cropped_mask(CORNER, (1, 0, 4, 2)), mask_of("#..", "..."))
    with pytest.raises(ValueError, match=r"crop \[1, 0, 5, 2\] in an image of 4 x 3 pixels"):
        cropped_mask(CORNER, (1, 0, 5, 2))


def test_the_mask_of_the_base_image_is_where_the_object_is() -> None:
    row, column = np.mgrid[:300, :400]
    mask = (row - 150) ** 2 + (column - 180) ** 2 < 90**2
    image = np.where(mask[..., None], 255, 0).astype(np.uint8).repeat(3, axis=-1)
    seen = base_image(Image.fromarray(image))[..., 0]
    found = base_mask(mask)
    assert found.shape == (224, 224)
    assert np.array_equal(found, seen >= 128)
    assert not found[0].any()


def test_ignored_pixels_are_in_neither_region() -> None:
    ignored = mask_of("..#.", "....", "....")
    regions = regions_of(CORNER, ignored)
    assert np.array_equal(regions.object, CORNER)
    assert np.array_equal(regions.background, mask_of("...#", ".###", "####"))
    assert np.array_equal(regions_of(CORNER).background, ~CORNER)


@given(st.integers(0, 2**32 - 1), st.integers(20, 500), st.integers(20, 500))
@examples(20)
def test_regions_of_the_base_image_stay_disjoint(seed: int, height: int, width: int) -> None:
    values = np.random.default_rng(seed).integers(0, 3, (height, width))
    found = base_regions(regions_of(values == 1, values == 2))
    assert not (found.object & found.background).any()
    whole = base_regions(regions_of(values == 1))
    assert (whole.object | whole.background).all()


def test_intersection_over_union() -> None:
    other = mask_of(".##.", "#...", "....")
    # in both: (0, 1), (1, 0); in either: two more
    assert intersection_over_union(CORNER, other) == 0.5
    assert intersection_over_union(CORNER, CORNER) == 1
    assert intersection_over_union(CORNER, ~CORNER) == 0


def disc(row: int, column: int, radius: float) -> Mask:
    rows, columns = np.mgrid[:60, :60]
    inside: Mask = (rows - row) ** 2 + (columns - column) ** 2 < radius**2
    return inside


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        (disc(30, 30, 12), None),
        (disc(30, 30, 12) | disc(8, 8, 2), None),  # a speck is not an object
        (disc(20, 20, 8) | disc(40, 44, 8), "several_objects"),
        (disc(30, 30, 2), "too_small"),
        (disc(50, 30, 12), "cut_off"),
        (disc(30, 2, 12), "cut_off"),
        (disc(20, 20, 8) | disc(29, 29, 5), None),  # they touch at a corner
    ],
)
def test_what_no_background_can_be_made_around(mask: NDArray[np.bool_], reason: str | None) -> None:
    assert unsuitable(mask) == reason


MASK = np.array([[True, True, False, False], [True, True, False, False], [False] * 4])


def png_bytes(pixels: list[list[int]] | list[list[list[int]]]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.array(pixels, np.uint8)).save(out, "PNG")
    return out.getvalue()


FILES = {
    "png": png_bytes([[9, 9, 0, 0], [9, 9, 0, 0], [0] * 4]),
    "coco": json.dumps({"size": [3, 4], "counts": [0, 2, 1, 2, 7]}).encode(),
    "labelme": json.dumps(
        {"imageHeight": 3, "imageWidth": 4, "shapes": [{"points": [[0, 0], [2, 0], [2, 2], [0, 2]]}]}
    ).encode(),
    "imagenet_s": png_bytes([[[44, 1, 0], [44, 1, 0], [0, 0, 0], [0, 0, 0]]] * 2 + [[[0, 0, 0]] * 3 + [[232, 3, 0]]]),
}
WNID = "n02138441"  # number 300


@pytest.mark.parametrize("mask_format", FORMATS)
def test_each_format_gives_the_same_object(mask_format: str) -> None:
    regions = read_regions(FILES[mask_format], mask_format, WNID, "a")
    assert np.array_equal(regions.object, MASK)
    background = ~MASK
    background[2, 3] = mask_format != "imagenet_s"  # ignored there
    assert np.array_equal(regions.background, background)
    assert MASK_SUFFIXES[mask_format] in (".png", ".json")


def test_an_unknown_format_is_refused_with_the_list() -> None:
    with pytest.raises(
        CleansetError, match=r"^unknown mask format 'svg'; expected one of png, coco, labelme, imagenet_s$"
    ):
        read_regions(b"", "svg", WNID, "a")
