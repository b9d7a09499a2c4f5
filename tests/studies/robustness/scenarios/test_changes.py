"""The scenarios: what must stay bit for bit, literals, and oracles written differently."""

import colorsys
from typing import Any, get_args

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from pydantic import ValidationError
from scipy.ndimage import correlate1d

from cleanset.errors import CleansetError
from cleanset.images.codec import pixels_sha256
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.robustness.scenarios.masks import Regions, regions_of
from cleanset.studies.robustness.scenarios.params import SCENARIOS, ScenarioDefinition, Scenarios
from cleanset.studies.robustness.scenarios.photographs import check_photographs
from cleanset.studies.robustness.scenarios.scenes import object_put_back, over_matte, scenario_image, transparent_image
from tests.properties import examples
from tests.studies.robustness import digests
from tests.studies.robustness.drawn import drawn, drawn_object

SEED = image_seed(0, "a")
IMAGE = drawn(48, 64)
REGIONS = regions_of(drawn_object(48, 64))
PHOTOGRAPHS = [drawn(60, 90)[::-1].copy(), drawn(48, 64)[:, ::-1].copy()]
INPUTS: dict[str, dict[str, Any]] = {
    "random_background": {"photographs": PHOTOGRAPHS, "object_moved": False},
    "generated_background": {"generated": drawn(48, 64)[::-1, ::-1].copy()},
}


def scenario(
    name: str, image: NDArray[np.uint8] = IMAGE, regions: Regions = REGIONS, seed: int = SEED, **options: Any
) -> NDArray[np.uint8]:
    options = {**INPUTS.get(name, {}), **options}
    wanted = {key: options.pop(key) for key in Scenarios.model_fields if key in options}
    return scenario_image(image, regions, name, seed, wanted=Scenarios.model_validate(wanted), **options)


def flat(*colors: tuple[int, int, int]) -> NDArray[np.uint8]:
    """An image of upright stripes, 20 pixels wide."""
    return np.tile(np.repeat(np.array(colors, np.uint8), 20, axis=0), (40, 1, 1))


NOTHING = regions_of(np.zeros((40, 40), np.bool_))
"""All is background."""

# invariance

KEEP_THE_OBJECT = {
    (name, definition)
    for name in SCENARIOS
    for definition in get_args(ScenarioDefinition)
    if name != "blur_object"
    and (name, definition) not in {("image_brightness", "as_written"), ("random_background", "as_coded")}
}


@pytest.mark.parametrize(("name", "definition"), sorted(KEEP_THE_OBJECT))
def test_the_object_is_unchanged_bit_for_bit_and_the_background_is_not(name: str, definition: str) -> None:
    found = scenario(name, definition=definition)
    assert (found.shape, found.dtype.name) == (IMAGE.shape, "uint8")
    assert np.array_equal(found[REGIONS.object], IMAGE[REGIONS.object])
    assert not np.array_equal(found[REGIONS.background], IMAGE[REGIONS.background])


@pytest.mark.parametrize("definition", get_args(ScenarioDefinition))
def test_blur_object_leaves_the_background_unchanged_bit_for_bit(definition: str) -> None:
    found = scenario("blur_object", definition=definition)
    assert np.array_equal(found[REGIONS.background], IMAGE[REGIONS.background])
    assert not np.array_equal(found[REGIONS.object], IMAGE[REGIONS.object])


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(8, 40), st.integers(8, 40))
@examples(30)
def test_any_regions_keep_what_is_not_theirs(seed: int, height: int, width: int) -> None:
    """The ignored pixels too, in every scenario that does not change the whole image."""
    random = np.random.default_rng(seed)
    image, other = random.integers(0, 256, (2, height, width, 3), dtype=np.uint8)
    kinds = random.integers(0, 3, (height, width))
    regions = regions_of(kinds == 1, kinds == 2)
    for name, definition in sorted(KEEP_THE_OBJECT | {("blur_object", "as_written")}):
        found = scenario(
            name, image, regions, seed, definition=definition, generated=other, photographs=[other]
        )  # fmt: skip
        kept = ~regions.object if name == "blur_object" else ~regions.background
        assert np.array_equal(found[kept], image[kept]), (name, definition)


@pytest.mark.parametrize("definition", get_args(ScenarioDefinition))
def test_inputs_stay_unchanged_and_only_names_and_seed_decide(definition: str) -> None:
    image = IMAGE.copy()
    image.setflags(write=False)
    np.random.seed(5)
    expected = np.random.RandomState(5).random_sample()
    once = {name: scenario(name, image, definition=definition) for name in SCENARIOS}
    again = {name: scenario(name, image, definition=definition) for name in reversed(SCENARIOS)}
    assert all(np.array_equal(once[name], again[name]) for name in SCENARIOS)
    assert np.random.random() == expected
    others = {
        name: [scenario(name, image, seed=seed, definition=definition) for seed in range(8)] for name in SCENARIOS
    }
    differing = {name for name in SCENARIOS if len({one.tobytes() for one in others[name]}) > 1}
    random = {"image_r", "image_g", "image_b"} if definition == "as_coded" else set()
    assert differing == random | {"image_rainbow", "random_background"}


# blur and brightness


def gaussian(image: NDArray[np.uint8], size: int, sigma: float) -> NDArray[np.float64]:
    """A Gaussian filter of `size` x `size`, mirrored at the edges without repeating them, as OpenCV's default."""
    weights = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * sigma**2))
    weights /= weights.sum()
    across = correlate1d(image.astype(np.float64), weights, axis=1, mode="mirror")
    return correlate1d(across, weights, axis=0, mode="mirror")


def test_blur_is_15_by_15_with_sigma_3() -> None:
    expected = gaussian(IMAGE, 15, 3)
    for name, region in (("blur_background", REGIONS.background), ("blur_object", REGIONS.object)):
        assert np.abs(scenario(name)[region] - expected[region]).max() <= 1


def test_brightness_adds_the_blurred_image() -> None:
    expected = np.minimum(1.5 * IMAGE + 0.9 * gaussian(IMAGE, 9, 4) + 1.9, 255)
    assert np.abs(scenario("image_brightness") - expected).max() <= 1.5
    coded = scenario("image_brightness", definition="as_coded")
    assert np.abs(coded[REGIONS.background] - expected[REGIONS.background]).max() <= 1.5
    # 1.5 x 60 + .9 x 60 + 1.9
    assert scenario("image_brightness", flat((60, 0, 200), (60, 0, 200)), NOTHING)[20, 20].tolist() == [146, 2, 255]


# colors

COLORS = flat((200, 40, 40), (30, 90, 180))


def test_grey_and_channels_of_a_background() -> None:
    # .299 R + .587 G + .114 B: 87.84 and 82.32
    assert scenario("image_grey", COLORS, NOTHING)[5, [5, 25]].tolist() == [[88, 88, 88], [82, 82, 82]]
    assert scenario("image_r", COLORS, NOTHING)[5, [5, 25]].tolist() == [[200, 0, 0], [30, 0, 0]]
    assert scenario("image_g", COLORS, NOTHING)[5, [5, 25]].tolist() == [[0, 40, 0], [0, 90, 0]]
    assert scenario("image_b", COLORS, NOTHING)[5, [5, 25]].tolist() == [[0, 0, 40], [0, 0, 180]]


def hues(image: NDArray[np.uint8]) -> list[float]:
    """Hues of the two stripes, in half degrees."""
    return [180 * colorsys.rgb_to_hsv(*(value / 255 for value in image[5, place]))[0] for place in (5, 25)]


@pytest.mark.parametrize(
    ("name", "ranges"), [("image_r", [(0, 30), (150, 180)]), ("image_g", [(30, 90)]), ("image_b", [(90, 150)])]
)
def test_as_coded_the_background_has_one_hue_of_a_range(name: str, ranges: list[tuple[int, int]]) -> None:
    drawn_hues = []
    for seed in range(60):
        found = scenario(name, COLORS, NOTHING, seed, definition="as_coded")
        first, second = hues(found)
        # 8 bits: at most a half degree and a half off; 180 and 0 are one hue
        assert abs((first - second + 90) % 180 - 90) < 1.5
        assert any(low - 1 <= first % 180 <= high + 1 or (high == 180 and first < 1) for low, high in ranges), first
        drawn_hues.append(round(first))
        # saturation and value stay
        assert abs(int(found[5, 5].max()) - 200) <= 1
        assert abs(int(found[5, 25].max()) - 180) <= 1
    assert len(set(drawn_hues)) > 20


def test_rainbow_shifts_all_hues_by_one_angle_up_to_90() -> None:
    before = hues(COLORS)
    shifts = []
    for seed in range(60):
        after = hues(scenario("image_rainbow", COLORS, NOTHING, seed))
        first, second = ((new - old + 1) % 180 - 1 for old, new in zip(before, after, strict=True))
        assert abs(first - second) < 2
        shifts.append(first)
    assert min(shifts) < 12
    assert 80 < max(shifts) < 92


def test_as_coded_rainbow_wraps_as_uint8_does() -> None:
    """As in the published code, the rest by 180 is taken of a sum in uint8: 179 + 80 becomes 3, not 79."""
    wrapped, image = 0, flat((250, 20, 70), (20, 60, 240))
    for seed in range(60):
        shift = np.random.RandomState(change_seed(seed, "scenario", "image_rainbow", 0)).randint(91)
        hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
        wrapped += int(hsv[..., 0].max()) + shift > 255
        hsv[..., 0] = (hsv[..., 0] + np.uint8(shift)) % 180
        expected = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
        found = scenario("image_rainbow", image, NOTHING, seed, definition="as_coded")
        np.testing.assert_array_equal(found, expected)
    assert wrapped


# cut out


def test_segmented_and_transparent_images() -> None:
    black = scenario("segmented_image")
    assert not black[REGIONS.background].any()
    written = transparent_image(IMAGE, REGIONS)
    coded = transparent_image(IMAGE, REGIONS, "as_coded")
    assert written[0, 30].tolist() == [0, 0, 0, 0]
    assert coded[0, 30].tolist() == [*IMAGE[0, 30].tolist(), 0]
    assert np.array_equal(coded[..., :3], IMAGE)
    assert np.array_equal(written[REGIONS.object], np.c_[IMAGE[REGIONS.object], np.full(REGIONS.object.sum(), 255)])


@pytest.mark.parametrize(
    ("matte", "color"),
    [("black", [0, 0, 0]), ("white", [255, 255, 255]), ("grey", [128, 128, 128]), ("mean", [124, 116, 104])],
)
def test_a_transparent_image_is_seen_over_a_matte(matte: str, color: list[int]) -> None:
    for definition in get_args(ScenarioDefinition):
        found = scenario("transparent_image", definition=definition, matte=matte)
        assert (found[REGIONS.background] == color).all()
    backdrop = Image.new("RGBA", (64, 48), (*color, 255))
    backdrop.alpha_composite(Image.fromarray(transparent_image(IMAGE, REGIONS)))
    assert np.array_equal(over_matte(transparent_image(IMAGE, REGIONS), matte), np.asarray(backdrop)[..., :3])


# other backgrounds

WHITE = np.full((80, 100, 3), 255, np.uint8)


def on_white(seed: int, **options: Any) -> NDArray[np.bool_]:
    """The place of the object, put on white somewhere."""
    dark = np.full((48, 64, 3), 10, np.uint8)
    found = scenario("random_background", dark, seed=seed, photographs=[WHITE], object_moved=True, **options)
    # no mixture with the background at the edge; Pillow loses up to 2 where it weights with alpha
    assert set(np.unique(found)) <= {8, 9, 10, 255}
    placed: NDArray[np.bool_] = found[..., 0] <= 10
    return placed


def test_the_object_is_placed_whole_inside_the_frame() -> None:
    area = int(REGIONS.object.sum())
    placed = [on_white(seed) for seed in range(40)]
    shares = [int(where.sum()) / area for where in placed]
    assert 0.2 < min(shares) < 0.35
    assert 0.75 < max(shares) < 1.05
    tops = {int(np.flatnonzero(where.any(axis=1))[0]) for where in placed}
    lefts = {int(np.flatnonzero(where.any(axis=0))[0]) for where in placed}
    assert len(tops) > 10
    assert len(lefts) > 15
    # as high as wide, as the disc is
    for where in placed:
        assert abs(int(where.any(axis=0).sum()) - int(where.any(axis=1).sum())) <= 2


def test_in_its_own_size_the_moved_object_keeps_its_pixels() -> None:
    found = scenario("random_background", photographs=[WHITE], object_moved=True, object_scales=[1, 1])
    rows, columns = np.nonzero(REGIONS.object)
    shape = REGIONS.object[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    own = IMAGE[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    places = [
        (top, left)
        for top in range(48 - shape.shape[0] + 1)
        for left in range(64 - shape.shape[1] + 1)
        if np.array_equal(found[top : top + shape.shape[0], left : left + shape.shape[1]][shape], own[shape])
    ]
    assert len(places) == 1


def test_an_object_too_large_for_the_frame_is_scaled_to_fit() -> None:
    for seed in range(5):
        where = on_white(seed, object_scales=[3, 4])
        assert where.any(axis=1).sum() >= 46


def test_a_translucent_object_is_mixed_with_the_photograph() -> None:
    image = np.full((48, 64, 3), 101, np.uint8)
    found = scenario("random_background", image, photographs=[WHITE], object_weight=0.6, object_moved=False)
    assert (found[REGIONS.object] == 163).all()  # .6 x 101 + .4 x 255 is 162.6
    assert (found[REGIONS.background] == 255).all()


def test_the_photograph_is_a_part_of_one_of_them() -> None:
    empty = Regions(np.zeros((48, 64), np.bool_), np.ones((48, 64), np.bool_))
    parts = {PHOTOGRAPHS[0][top : top + 48, left : left + 64].tobytes() for top in range(13) for left in range(27)} | {
        PHOTOGRAPHS[1].tobytes()
    }
    found = [scenario("random_background", regions=empty, seed=seed) for seed in range(12)]
    assert {one.tobytes() for one in found} <= parts
    assert len({one.tobytes() for one in found}) > 3
    with pytest.raises(CleansetError, match=r"^random_background: the object is not in the frame: leave the image out"):
        scenario("random_background", regions=empty, object_moved=True)


def test_as_coded_the_object_is_stretched_to_the_photograph_and_added() -> None:
    """A photograph keeps its shape: stripes of one width stay that; the object becomes as wide as its stripe."""
    photograph = np.tile(np.arange(256, dtype=np.uint8)[:, None, None] // 32 % 2 * 90, (1, 512, 3))
    regions = regions_of(np.ones((224, 224), np.bool_))
    image = drawn()
    found = scenario("random_background", image, regions, photographs=[photograph], definition="as_coded")
    stretched = cv2.resize(image, (512, 256)).astype(int) + photograph
    whole = np.minimum(stretched, 255).astype(np.uint8)
    np.testing.assert_array_equal(found, whole)


def test_as_coded_a_dark_object_leaves_the_photograph() -> None:
    photograph = drawn(300, 260)
    nothing = regions_of(np.zeros((224, 224), np.bool_))
    found = scenario("random_background", drawn(), nothing, photographs=[photograph], definition="as_coded")
    np.testing.assert_array_equal(found, photograph)


def test_wrong_photographs_are_refused_in_one_line() -> None:
    with pytest.raises(
        CleansetError, match=r"^random_background: no photographs; expected at least one: put some into"
    ):
        scenario("random_background", photographs=[])
    with pytest.raises(
        CleansetError, match=r"^photograph 2: background of 64 x 47 pixels; expected at least 64 x 48: rem"
    ):
        scenario("random_background", photographs=[WHITE, WHITE[:47, :64]])
    known = {pixels_sha256(Image.fromarray(PHOTOGRAPHS[0])): "ILSVRC2012_val_00000007"}
    check_photographs({"a.jpg": PHOTOGRAPHS[1]}, 64, 48, known)
    with pytest.raises(
        CleansetError, match=r"^b.jpg: background is image ILSVRC2012_val_00000007 of the edition: remove it"
    ):
        check_photographs({"a.jpg": PHOTOGRAPHS[1], "b.jpg": PHOTOGRAPHS[0]}, 64, 48, known)


def test_the_object_is_put_back_on_a_generated_image() -> None:
    generated = np.full_like(IMAGE, 77)
    found = object_put_back(IMAGE, REGIONS, generated)
    assert (found[REGIONS.background] == 77).all()
    assert np.array_equal(found[REGIONS.object], IMAGE[REGIONS.object])
    with pytest.raises(ValueError, match=r"generated image of shape \(47, 64, 3\); expected \(48, 64, 3\)"):
        object_put_back(IMAGE, REGIONS, generated[1:])
    with pytest.raises(CleansetError, match=r"^generated_background: no generated image: name"):
        scenario("generated_background", generated=None)


# names


def test_an_unknown_definition_or_matte_is_refused_with_the_list() -> None:
    with pytest.raises(ValidationError, match=r"definition\n.*'as_written' or 'as_coded'"):
        scenario("image_r", definition="coded")
    with pytest.raises(ValidationError, match=r"matte\n.*'black', 'white', 'grey' or 'mean'"):
        scenario("transparent_image", matte="red")
    with pytest.raises(CleansetError, match=r"^unknown matte 'red'; expected one of black, white, grey, mean"):
        over_matte(transparent_image(IMAGE, REGIONS), "red")


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("blur", {}, "unknown scenario 'blur'; expected one of blur_background, .*, generated_background"),
    ],
)
def test_an_unknown_name_is_refused_with_the_list(name: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(CleansetError, match=f"^{problem}$"):
        scenario(name, **options)


def test_regions_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"image of shape \(47, 64, 3\), object \(48, 64\); expected the same size"):
        scenario("image_r", IMAGE[1:])


@pytest.mark.slow
def test_the_bytes_are_those_of_the_table() -> None:
    expected = [row for row in digests.stored() if row[0].startswith("scenario")]
    found = list(digests.scenario_rows())
    assert len(expected) == 24
    assert [row for row, wanted in zip(found, expected, strict=True) if row != wanted] == []
