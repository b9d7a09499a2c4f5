"""All hints at any images: measures, limits and severity, and their order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from cleanset.classes import class_table, imagenet
from cleanset.dataset.near_duplicates import MAX_HASH_DISTANCE, hash_distance
from cleanset.images.fingerprints import fingerprint, packed_fingerprint
from cleanset.images.local_features import can_find_features
from cleanset.review.hints.crop_proposal import crop_proposal
from cleanset.review.hints.hints import ImageMeasures, hints_of_image, signs_of_image
from cleanset.review.hints.kinds import HintKind
from cleanset.review.hints.measures import prepared
from cleanset.review.hints.ranked import ImageLook, duplicate_hints, hinted_images, look_at, not_compared_parts
from cleanset.review.hints.text import TextLine
from tests.dataset.test_shared_parts import saved, scene
from tests.properties import examples
from tests.review.hints.plain import changed, plain

PLAIN = plain((500, 375))


@pytest.mark.parametrize(
    ("measures", "kind", "value", "limit", "severity"),
    [
        (changed(PLAIN, margins=(0.1, 0, 0.15, 0)), "border", 0.15, 0, 0.5),
        (changed(PLAIN, seams=(0.2, 0.95)), "collage", 0.95, 0.9, 0.5),
        (changed(PLAIN, brightest=90), "dark", 90, 90, 0),
        (changed(PLAIN, brightest=9), "dark", 9, 90, 0.9),
        (changed(PLAIN, darkest=255), "bright", 255, 150, 1),
        (changed(PLAIN, background=0.85), "artificial_background", 0.85, 0.7, 0.5),
        (changed(PLAIN, saturations=(1, 2, 9)), "filter", 2, 8, 0.75),
        (changed(PLAIN, saturations=(10, 20, 30), tint=0.75), "filter", 0.75, 3, 0.75),
        (changed(PLAIN, saturations=(1, 20, 60), neutral=0.6), "filter", 0.6, 0.5, 0.2),
        (changed(PLAIN, sharpness=0.34), "blur", 0.34, 0.4, 0.4),
        (changed(PLAIN, noise=100), "noise", 100, 18, 1),
        (changed(PLAIN, size=(76, 200)), "few_pixels", 76, 150, 74 / 149),
    ],
)
def test_the_measure_its_limit_and_its_severity(
    measures: ImageMeasures, kind: HintKind, value: float, limit: float, severity: float
) -> None:
    ((found, sign),) = signs_of_image(measures, imagenet())
    assert (found, sign.value, sign.limit) == (kind, value, limit)
    assert sign.severity == pytest.approx(severity)
    assert [hint.text for hint in hints_of_image(measures, imagenet())] == [sign.text]


def test_text_is_as_severe_as_legible() -> None:
    line = TextLine("holiday 2011", 0.9, (10, 360, 200, 374), 0.0)
    ((kind, sign),) = signs_of_image(PLAIN, imagenet(), [line])
    assert (kind, sign.text, sign.value, sign.limit) == ("text", "“holiday 2011”, bottom left", 0.9, 0.6)
    assert sign.severity == pytest.approx(0.75)


def look(seed: int, **values: object) -> ImageLook:
    """The look at an image that is like no other, with other measures."""
    drawn = look_at(scene(seed))
    return replace(drawn, measures=changed(PLAIN, **values))


def test_images_come_by_their_most_severe_hint_then_by_id() -> None:
    looks = {
        "b.jpg": look(1, noise=45),
        "a.jpg": look(2, noise=45),
        "c.jpg": look(3, noise=20, margins=(0.3, 0, 0.3, 0)),
        "d.jpg": look(4),
    }
    found = hinted_images(looks, imagenet())
    assert [each.image_id for each in found] == ["c.jpg", "a.jpg", "b.jpg"]
    assert [each.severity for each in found] == [1, 0.5, 0.5]
    assert [hint.kind for hint in found[0].hints] == ["border", "noise"]


def test_few_pixels_count_for_imagenet_alone() -> None:
    looks = {"a.jpg": look(1, size=(76, 200))}
    assert len(hinted_images(looks, imagenet())) == 1
    assert hinted_images(looks, class_table([("a", "a"), ("b", "b")], "here")) == []


@pytest.mark.skipif(not can_find_features(), reason="OpenCV is not installed")
def test_duplicates_name_the_most_similar_image() -> None:
    first, second = scene(1), scene(2)
    images = {
        "x/whole.png": first,
        "x/again.png": first.copy(),
        "y/mirrored.jpg": saved(ImageOps.mirror(first)),
        "y/cropped.jpg": saved(first.crop((40, 30, 280, 210))),
        "y/other.png": second,
    }
    found = duplicate_hints({name: look_at(image) for name, image in images.items()})
    assert sorted(found) == ["x/again.png", "x/whole.png", "y/cropped.jpg", "y/mirrored.jpg"]
    ((whole,), (cropped,)) = (found["x/whole.png"], found["y/cropped.jpg"])
    assert (whole.sign.text, whole.other) == ("the same as x/again.png and 2 more", "x/again.png")
    assert (whole.sign.value, whole.sign.limit, whole.sign.severity) == (0, 60, 1)
    assert cropped.sign.text.startswith("shares a part with ")
    assert cropped.sign.measure == "correlation of the brightness in the part"
    assert (cropped.sign.limit, 0.95 < cropped.sign.value <= 1) == (0.9, True)
    (mirrored,) = found["y/mirrored.jpg"]
    assert mirrored.sign.text == "nearly the same as x/again.png and 2 more"
    assert 0 <= mirrored.sign.value <= 8


def test_distance_of_packed_hashes_is_that_of_their_bits() -> None:
    """Against bits that are compared one by one."""
    one, other = scene(1), scene(1).crop((10, 8, 310, 232))
    bits = [fingerprint(each) for each in (one, other)]
    expected = min(
        int(np.sum(whole != part))
        for first, second in (bits, bits[::-1])
        for whole in first.hashes
        for part in second.parts
    )
    packed = [packed_fingerprint(each) for each in (one, other)]
    assert packed[0] is not None
    assert packed[1] is not None
    assert hash_distance(packed[0], packed[1]) == expected <= MAX_HASH_DISTANCE
    assert hash_distance(packed[0], packed[0]) == 0


def test_folders_of_too_many_images_are_reported() -> None:
    many = [f"a/{place}.jpg" for place in range(2001)]
    assert not_compared_parts([*many, *(f"b/{place}.jpg" for place in range(2000))]) == ["a"]


@examples(150, fast=40)
@given(
    st.integers(1, 40), st.integers(1, 40), st.sampled_from([(1, 1), (1, 170), (170, 1)]),
    st.integers(0, 12), st.integers(0, 12), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_an_image_of_any_size_is_measured(
    width: int, height: int, stretch: tuple[int, int], across: int, down: int, seed: int
) -> None:
    """From one pixel up to long strips, with margins that may meet: no measure and no proposal fails."""
    pixels = np.zeros((height, width, 3), np.uint8)
    inside = pixels[down : max(height - down, 0), across : max(width - across, 0)]
    inside[:] = np.random.default_rng(seed).integers(0, 256, inside.shape)
    size = (width * stretch[0], height * stretch[1])
    found = look_at(Image.fromarray(pixels).resize(size, Image.Resampling.NEAREST))
    assert found.measures.size == size
    signs_of_image(found.measures, imagenet())
    crop_proposal(found.measures, ())


def test_margins_that_meet_are_no_border() -> None:
    """An 8 x 8 image whose margins of both sides would overlap."""
    digit = [
        [0, 0, 0, 0, 159, 206, 111, 0], [0, 0, 0, 79, 254, 254, 174, 0], [0, 0, 63, 222, 254, 254, 111, 0],
        [0, 47, 222, 254, 254, 254, 63, 0], [0, 111, 254, 254, 254, 254, 63, 0], [0, 0, 31, 206, 254, 254, 47, 0],
        [0, 0, 0, 174, 254, 254, 0, 0], [0, 0, 0, 31, 206, 254, 15, 0],
    ]  # fmt: skip
    assert prepared(Image.fromarray(np.array(digit, np.uint8))).margins == (0, 0, 0, 0)


@pytest.mark.parametrize("ink", [(0, 0, 0, 255), (255, 255, 255, 255)])
def test_drawings_on_a_transparent_ground_are_seen_on_grey(ink: tuple[int, ...]) -> None:
    """Without their transparency all would be black, and copies of each other."""
    drawings = {}
    for number in range(4):
        pixels = np.zeros((120, 160, 4), np.uint8)
        pixels[np.random.default_rng(number).random((12, 16)).repeat(10, 0).repeat(10, 1) < 0.4] = ink
        drawings[f"drawings/{number}.png"] = look_at(Image.fromarray(pixels))
    assert duplicate_hints(drawings) == {}
    again = drawings | {"drawings/again.png": drawings["drawings/3.png"]}
    assert set(duplicate_hints(again)) == {"drawings/3.png", "drawings/again.png"}
