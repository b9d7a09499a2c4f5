"""What is measured on small images made for it, and which hints follow."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from cleanset.classes import class_table, imagenet
from cleanset.dataset.near_duplicates import CroppedDuplicates, NearDuplicates
from cleanset.images.fingerprints import packed_fingerprint, packed_hashes
from cleanset.review.hints.duplicates import hints_between_images
from cleanset.review.hints.hints import Hint, ImageMeasures, hints_of_image, measure
from cleanset.review.hints.kinds import Blur, Border, Bright, Collage, Dark, Filter, Noise, PlainBackground
from tests.review.hints.plain import changed, plain

pytestmark = pytest.mark.filterwarnings("error")

Grey = NDArray[np.uint8]


def texture(width: int, height: int, seed: int = 0) -> Grey:
    """Soft patches of grey without a straight line."""
    coarse = np.random.default_rng(seed).integers(60, 190, (height // 4 + 1, width // 4 + 1), np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def flat(width: int, height: int, *colour: int) -> Image.Image:
    return Image.new("RGB", (width, height), (colour[0], colour[-2 % len(colour)], colour[-1]))


def measured(grey: Grey | Image.Image) -> ImageMeasures:
    return measure(Image.fromarray(grey) if isinstance(grey, np.ndarray) else grey)[0]


def kinds(grey: Grey | Image.Image) -> list[str]:
    return [hint.kind for hint in hints_of_image(measured(grey), imagenet())]


# Straight edges


def framed(left: int, top: int, right: int, bottom: int, colour: int = 250) -> Grey:
    image = texture(200, 160).copy()
    image[:, :left] = image[:top] = colour
    image[:, 200 - right :] = image[160 - bottom :] = colour
    return image


def test_margins() -> None:
    assert measured(texture(200, 160)).of(Border).margins == (0, 0, 0, 0)
    assert measured(framed(20, 16, 10, 8)).of(Border).margins == (0.1, 0.1, 0.05, 0.05)
    assert measured(framed(2, 0, 59, 40, 0)).of(Border).margins == (0.01, 0, 0.295, 0.25)
    assert measured(framed(1, 0, 2, 0, 0)).of(Border).margins == (0.005, 0, 0.01, 0)
    assert measured(framed(20, 16, 0, 0)).of(Border).margins == (0, 0, 0, 0)


def test_a_frame_with_a_line_in_it_is_one_margin() -> None:
    image = framed(20, 16, 20, 16)
    image[8:10, 8:-8] = image[-10:-8, 8:-8] = image[8:-8, 8:10] = image[8:-8, -10:-8] = 120
    assert measured(image).of(Border).margins == (0.1, 0.1, 0.1, 0.1)
    image[8:10, ::3] = 0  # dashes: two rows of sixteen that are not plain
    assert measured(image).of(Border).margins == (0.1, 0.1, 0.1, 0.1)


def test_a_large_image_is_measured_smaller() -> None:
    large = Image.fromarray(framed(20, 16, 10, 8)).resize((1000, 800), Image.Resampling.NEAREST)
    assert measured(large).of(Border).margins == (0.1, 0.1, 0.05, 0.05)
    soft = np.tile(np.clip(50 + 40 * (np.arange(2048) - 1000), 50, 210), (1000, 1)).astype(np.uint8)
    assert measured(soft).of(Blur).sharpness == 0.625  # with four pixels as one, the steepest step is 100 of 160 levels


def test_only_opposite_margins_are_a_border() -> None:
    assert "border" in kinds(framed(20, 0, 10, 0))
    assert "border" in kinds(framed(0, 16, 0, 8))
    assert "border" not in kinds(framed(20, 16, 0, 0))
    assert "border" not in kinds(framed(0, 0, 0, 30))


def test_a_line_of_one_pixel_is_a_border_on_all_four_sides_alone() -> None:
    image = texture(320, 240).copy()
    image[[0, -1]] = 0
    assert measured(image).of(Border).margins == (0, 0, 0, 0)
    image[:, [0, -1]] = 0
    assert measured(image).of(Border).margins == pytest.approx((1 / 320, 1 / 240, 1 / 320, 1 / 240))


def test_halves_that_mirror_each_other() -> None:
    image = texture(321, 240).copy()
    assert measured(image).of(Collage).asymmetry > 1
    image[:, 161:] = image[:, 159::-1]
    assert measured(image).of(Collage).asymmetry == 0
    assert measured(image.swapaxes(0, 1)).of(Collage).asymmetry == 0
    noisy = image + np.random.default_rng(0).normal(0, 2, image.shape)
    assert 0 < measured(noisy.clip(0, 255).astype(np.uint8)).of(Collage).asymmetry < 0.2
    # neither a plain image nor two plain areas have halves
    assert measured(np.full((100, 100), 128, np.uint8)).of(Collage).asymmetry == 1
    assert measured(np.repeat([50, 200], 50)[:, None].repeat(100, axis=1).astype(np.uint8)).of(Collage).asymmetry == 1


def test_seams() -> None:
    side_by_side = np.concatenate([texture(100, 160) // 4, 190 + texture(100, 160) // 4], axis=1)
    assert measured(side_by_side).of(Collage).seams[0] == 1
    assert measured(side_by_side).of(Collage).seams[1] < 0.7
    assert [hint.text for hint in hints_of_image(measured(side_by_side), imagenet()) if hint.kind == "collage"] == [
        "a straight edge from top to bottom"
    ]
    below = measured(side_by_side.T)
    assert below.of(Collage).seams == measured(side_by_side).of(Collage).seams[::-1]
    assert [hint.text for hint in hints_of_image(below, imagenet()) if hint.kind == "collage"] == [
        "a straight edge from left to right"
    ]


def test_a_seam_between_images_of_nearly_equal_brightness() -> None:
    """One colour steps by 8 levels. Stripes, which step as much on both sides, have no seam."""
    left, right = flat(100, 160, 100, 100, 100), flat(100, 160, 100, 100, 108)
    side_by_side = Image.new("RGB", (200, 160))
    side_by_side.paste(left, (0, 0))
    side_by_side.paste(right, (100, 0))
    assert measured(side_by_side).of(Collage).seams == (1, 0)
    side_by_side.paste(flat(100, 160, 100, 100, 107), (100, 0))
    assert measured(side_by_side).of(Collage).seams == (0, 0)
    stripes = np.tile(np.repeat(np.tile(np.array([50, 200], np.uint8), 50), 2), (160, 1))
    assert measured(stripes).of(Collage).seams == (0, 0)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_thin_line_between_two_images_is_a_seam(width: int) -> None:
    """The images are of the same brightness. A line over half of the height is not a border."""
    image = texture(200, 160) // 4 + 100
    without = image.copy()
    image[:, 100 : 100 + width] = 250
    assert measured(image).of(Collage).seams[0] == 1
    assert measured(np.concatenate([image[:80], without[80:]])).of(Collage).seams[0] < 0.7


def test_the_end_of_a_margin_is_no_seam() -> None:
    assert "collage" not in kinds(framed(50, 0, 50, 0))
    assert "border" in kinds(framed(50, 0, 50, 0))
    seam = framed(50, 0, 50, 0)
    seam[:, 100:150] = 255 - seam[:, 100:150] // 2
    assert "collage" in kinds(seam)


def test_an_edge_that_is_not_straight_is_no_seam() -> None:
    slanted = np.where(np.add.outer(np.arange(160) // 8, np.arange(200)) < 110, 50, 200).astype(np.uint8)
    assert max(measured(slanted).of(Collage).seams) <= 0.15
    assert "collage" not in kinds(slanted)


# Colours


def halves(first: tuple[int, int, int], second: tuple[int, int, int]) -> Image.Image:
    image = Image.new("RGB", (80, 80), first)
    image.paste(second, (40, 0, 80, 80))
    return image


def test_saturation_and_tint() -> None:
    grey = measured(halves((40, 40, 40), (200, 200, 200)))
    assert (grey.of(Filter).saturations, grey.of(Filter).tint, grey.of(Filter).neutral) == ((0, 0, 0), 0, 1)
    brown = measured(halves((120, 100, 60), (200, 180, 140)))
    assert (brown.of(Filter).saturations, brown.of(Filter).tint, brown.of(Filter).neutral) == ((60, 60, 60), 0, 0)
    # of one brightness: red and blue are each 20 from their means
    colours = measured(halves((120, 100, 80), (80, 100, 120)))
    assert (colours.of(Filter).saturations, colours.of(Filter).tint) == ((40, 40, 40), 20)


@pytest.mark.parametrize(("colour", "neutral"), [((120, 120, 123), 1), ((120, 120, 124), 0.5), ((10, 10, 60), 1)])
def test_neutral_pixels(colour: tuple[int, int, int], neutral: float) -> None:
    """One half is grey. Dark pixels are not counted, black and white in a photograph are neutral, too."""
    assert measured(halves((100, 100, 100), colour)).of(Filter).neutral == neutral
    assert measured(halves((0, 0, 0), (255, 255, 255))).of(Filter).neutral == 0


def filters(image: Image.Image) -> list[str]:
    return [hint.text for hint in hints_of_image(measured(image), imagenet()) if hint.kind == "filter"]


def test_grey_tinted_and_coloured_images() -> None:
    grey = Image.fromarray(texture(160, 160))
    sepia = Image.merge("RGB", [grey.point(lambda value, by=by: value * by // 10) for by in (10, 8, 6)])
    coloured = Image.merge("RGB", [Image.fromarray(texture(160, 160, seed)) for seed in range(3)])
    partly = grey.convert("RGB")
    partly.paste((200, 140, 130), (60, 60, 100, 100))
    assert [filters(image) for image in (grey, sepia, coloured, partly)] == [
        ["nearly without colour"], ["a single tint"], [], ["grey with some colour"],
    ]  # fmt: skip


def placed(background: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
    """A textured ellipse in front of a background."""
    mask = Image.new("L", background.size)
    ImageDraw.Draw(mask).ellipse(box, fill=255)
    background.paste(Image.fromarray(texture(*background.size)), (0, 0), mask)
    return background


def test_background() -> None:
    assert measured(texture(200, 160)).of(PlainBackground).background == 0
    assert measured(placed(flat(200, 160, 250), (40, 40, 160, 120))).of(PlainBackground).background == 1
    # the lower side cuts the ellipse where it is widest, at half of the width; its neighbours do not count as plain
    assert measured(placed(flat(200, 160, 250), (50, 40, 150, 280))).of(PlainBackground).background == pytest.approx(
        0.87, abs=0.01
    )
    # what is in front may divide the background
    assert measured(placed(flat(200, 160, 250), (30, -20, 170, 180))).of(PlainBackground).background == pytest.approx(
        0.77, abs=0.02
    )


@pytest.mark.parametrize(("range_of_levels", "background"), [(30, 1), (80, 0.2), (200, 0.08)])
def test_a_background_is_of_one_colour(range_of_levels: int, background: float) -> None:
    """At most 16 levels from the usual colour: all of a soft gradient, less of a stronger one."""
    across = np.tile(np.linspace(20, 20 + range_of_levels, 200).astype(np.uint8), (160, 1))
    shares = measured(placed(Image.fromarray(across).convert("RGB"), (40, 40, 160, 120))).of(PlainBackground).background
    assert shares == pytest.approx(background, abs=0.02)


def test_noise_is_not_plain() -> None:
    noisy = np.random.default_rng(3).normal(200, 8, (160, 200)).round().astype(np.uint8)
    assert measured(noisy).of(PlainBackground).background < 0.1


def test_the_background_is_measured_inside_plain_margins() -> None:
    image = Image.fromarray(framed(20, 16, 20, 16)).convert("RGB")
    assert measured(image).of(PlainBackground).background == 0
    assert "artificial_background" not in kinds(image)


# Detail


def test_sharpness() -> None:
    across = np.arange(200)
    step = np.tile(np.where(across < 100, 50, 200), (160, 1)).astype(np.uint8)
    ramp = np.tile(np.clip(50 + 5 * (across - 85), 50, 200), (160, 1)).astype(np.uint8)
    assert (measured(step).of(Blur).sharpness, measured(ramp).of(Blur).sharpness) == (1, 0.25)
    assert ("blur" in kinds(step), "blur" in kinds(ramp)) == (False, True)


@pytest.mark.parametrize("sigma", [5, 12, 24])
def test_noise(sigma: int) -> None:
    noisy = np.random.default_rng(7).normal(128, sigma, (200, 200)).round().clip(0, 255).astype(np.uint8)
    assert measured(noisy).of(Noise).noise == pytest.approx(sigma, rel=0.08)
    assert ("noise" in kinds(noisy)) == (sigma == 24)


# What follows

PLAIN = plain((500, 150))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (PLAIN, []),
        (changed(PLAIN, margins=(0.004, 0, 0.126, 0)), [Hint("border", "plain margins: left 1 %, right 13 %")]),
        (changed(PLAIN, seams=(0.899, 0.9)), [Hint("collage", "a straight edge from left to right")]),
        (changed(PLAIN, asymmetry=0.2), [Hint("collage", "halves that mirror each other")]),
        (changed(PLAIN, asymmetry=0.21), []),
        (changed(PLAIN, saturations=(9, 8, 8)), [Hint("filter", "nearly without colour")]),
        (changed(PLAIN, saturations=(10, 9, 9), tint=3), [Hint("filter", "a single tint")]),
        (changed(PLAIN, saturations=(9, 9, 9), tint=3), []),
        (changed(PLAIN, saturations=(10, 9, 9), tint=3.1), []),
        (changed(PLAIN, saturations=(9, 40, 60), neutral=0.5), [Hint("filter", "grey with some colour")]),
        (changed(PLAIN, saturations=(9, 40, 59), neutral=0.5), []),
        (changed(PLAIN, saturations=(9, 40, 60), neutral=0.49), []),
        (changed(PLAIN, background=0.7), [Hint("artificial_background", "a plain background")]),
        (
            changed(PLAIN, background=0.7, saturations=(0, 0, 0)),
            [Hint("artificial_background", "a plain background")],
        ),
        (changed(PLAIN, background=0.69), []),
        (changed(PLAIN, darkest=0, brightest=90), [Hint("dark", "hardly a pixel above level 90 of 255")]),
        (changed(PLAIN, darkest=150, brightest=255), [Hint("bright", "hardly a pixel below level 150 of 255")]),
        (changed(PLAIN, darkest=149, brightest=91), []),
        (changed(PLAIN, sharpness=0.4), [Hint("blur", "no sharp edge anywhere")]),
        (changed(PLAIN, noise=17.9), []),
        (changed(PLAIN, noise=18.4), [Hint("noise", "noise of 18 grey levels")]),
        (changed(PLAIN, size=(149, 500)), [Hint("few_pixels", "149 × 500 pixels")]),
        (
            changed(PLAIN, sharpness=0.1, noise=20),
            [Hint("blur", "no sharp edge anywhere"), Hint("noise", "noise of 20 grey levels")],
        ),
    ],
)
def test_hints_from_measures(given: ImageMeasures, expected: list[Hint]) -> None:
    assert hints_of_image(given, imagenet()) == expected


@pytest.mark.parametrize("darken", [lambda value: value // 20, lambda value: 255 - value // 20])
def test_a_dark_or_bright_image_is_named_so_and_not_taken_for_a_plain_or_filtered_one(
    darken: Callable[[int], int],
) -> None:
    """Its levels are so few that a plain background and a filter are found in it."""
    image = measured(Image.fromarray(texture(200, 160)).point(darken))
    assert (image.of(PlainBackground).background > 0.7, image.of(Filter).saturations[1]) == (True, 0)
    kind = "dark" if image.of(Dark).brightest < 128 else "bright"
    others = {"dark", "bright", "artificial_background", "filter"}
    assert {hint.kind for hint in hints_of_image(image, imagenet())} & others == {kind}


def test_levels_leave_out_one_pixel_in_a_hundred() -> None:
    lamp = np.full((100, 100), 30, np.uint8)
    lamp[0, :90] = 250
    lamp[1:4] = 60
    assert (measured(lamp).of(Bright).darkest, measured(lamp).of(Dark).brightest) == (30, 60)


# Between images


def hints_between(**images: Image.Image) -> dict[str, list[Hint]]:
    return hints_between_images({name: measure(image)[1] for name, image in images.items()})


def test_near_duplicates() -> None:
    first, second = (Image.fromarray(texture(320, 240, seed)) for seed in (1, 2))
    found = hints_between(d=first.point(lambda value: value * 9 // 10), c=first.resize((200, 150)), b=second, a=first)
    assert found == {
        "a": [Hint("duplicate", "nearly the same as c and 1 more", ("c", "d"))],
        "b": [],
        "c": [Hint("duplicate", "nearly the same as a and 1 more", ("a", "d"))],
        "d": [Hint("duplicate", "nearly the same as a and 1 more", ("a", "c"))],
    }
    assert hints_between(a=first, b=second) == {"a": [], "b": []}
    assert hints_between(a=first) == {"a": []}
    assert hints_between() == {}


def test_near_duplicates_among_any_number() -> None:
    """Mirrored, smaller and recompressed copies are found among 6,000 images, others and negatives are not."""
    drawn = [Image.fromarray(texture(320, 240, seed)) for seed in range(3)]
    random = np.random.default_rng(0).integers(0, 2**64, (6000, 8, 4), np.uint64)
    compared = NearDuplicates[str](6006)
    for number, hashes in enumerate(random):
        assert compared.add(f"random {number}", hashes) == []
    for number, image in enumerate(drawn):
        hashes = packed_hashes(image)
        assert hashes is not None
        assert compared.add(f"image {number}", hashes) == []
    out = io.BytesIO()
    ImageOps.mirror(drawn[1]).resize((200, 150)).save(out, "JPEG", quality=60)
    negative, copy = packed_hashes(ImageOps.invert(drawn[2])), packed_hashes(Image.open(out))
    assert negative is not None
    assert copy is not None
    assert compared.add("negative", negative) == []
    assert compared.add("copy", copy) == ["image 1"]
    assert compared.add("flipped bits", random[5999] ^ np.uint64(0x7FFF)) == ["random 5999"]  # 60 bits
    assert NearDuplicates[int](1).add(0, ~random[0]) == []


def test_cropped_copies_are_found_as_by_the_hints() -> None:
    """Each pair that the hints of a class name, and no other, whichever of the two comes first."""
    drawn = {f"image {seed}": Image.fromarray(texture(320, 240, seed)) for seed in range(4)}
    for number, box in enumerate([(16, 12, 304, 228), (0, 0, 304, 228), (30, 0, 320, 240), (16, 12, 320, 240)]):
        part = drawn[f"image {number}"].crop(box)
        drawn[f"part {number}"] = ImageOps.mirror(part) if number == 1 else part
    drawn |= {"half": drawn["image 0"].crop((0, 0, 160, 240)), "smaller": drawn["image 2"].resize((200, 150))}
    by_hints = {
        frozenset((name, other))
        for name, hints in hints_between(**drawn).items()
        for hint in hints
        for other in hint.others
    }
    for names in (list(drawn), [*reversed(drawn)]):
        compared = CroppedDuplicates[str](len(names))
        found = set()
        for name in names:
            fingerprint = packed_fingerprint(drawn[name])
            assert fingerprint is not None
            found |= {frozenset((name, other)) for other in compared.add(name, fingerprint)}
        assert found == by_hints
    assert {frozenset((f"image {number}", f"part {number}")) for number in range(4)} <= by_hints
    assert frozenset(("image 0", "half")) not in by_hints


def test_images_with_too_little_in_them_are_not_compared() -> None:
    assert packed_hashes(flat(200, 150, 250, 250, 250)) is None
    gradient = Image.fromarray(np.tile(np.arange(100, dtype=np.uint8), (100, 1)))
    assert packed_hashes(gradient) is None
    assert packed_hashes(Image.fromarray(texture(320, 240))) is not None


@pytest.mark.parametrize("turn", list(Image.Transpose))
def test_turned_and_mirrored_copies(turn: Image.Transpose) -> None:
    """Either of the two may be the one that was turned, and smaller."""
    image = Image.fromarray(texture(320, 240, 1))
    copy = image.transpose(turn).resize((120, 120))
    other = Image.fromarray(texture(320, 240, 2))
    found = hints_between(a=image, b=copy, c=other)
    assert {name: [hint.others for hint in hints] for name, hints in found.items()} == {
        "a": [("b",)],
        "b": [("a",)],
        "c": [],
    }


@pytest.mark.parametrize(
    "box", [(16, 12, 304, 228), (0, 0, 304, 228), (25, 19, 295, 221), (0, 0, 288, 240), (10, 0, 320, 235)]
)
def test_a_cropped_copy(box: tuple[int, int, int, int]) -> None:
    """5 % of each side, of two sides, 8 % of each, a tenth of one, and 2 and 3 %; mirrored and smaller in the end."""
    image, other = (Image.fromarray(texture(320, 240, seed)) for seed in (1, 2))
    copy = image.crop(box).resize((200, 150)).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    found = hints_between(a=image, b=copy, c=other)
    assert {name: [hint.others for hint in hints] for name, hints in found.items()} == {
        "a": [("b",)],
        "b": [("a",)],
        "c": [],
    }


def test_a_copy_of_half_of_an_image_is_no_near_duplicate() -> None:
    image = Image.fromarray(texture(320, 240, 1))
    assert hints_between(a=image, b=image.crop((0, 0, 160, 240))) == {"a": [], "b": []}


# Any image


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 400), (7, 7), (3000, 9), (241, 97), (239, 95)])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_any_size_and_mode(size: tuple[int, int], mode: str) -> None:
    image = Image.new(mode, size)
    before = image.tobytes()
    measures, fingerprint = measure(image)
    assert measures.of(Noise).noise == 0
    assert hints_between_images({"a": fingerprint, "b": fingerprint})["a"] == [
        Hint("duplicate", "nearly the same as b", ("b",))
    ]
    assert image.tobytes() == before


def test_small_images_are_usual_among_your_own() -> None:
    small = changed(PLAIN, size=(32, 32))
    assert [each.kind for each in hints_of_image(small, imagenet())] == ["few_pixels"]
    assert hints_of_image(small, class_table([("a", "a"), ("b", "b")], "here")) == []
