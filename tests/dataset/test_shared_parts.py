"""Parts that two images share, by local features: cropped copies are found, and no others."""

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from cleanset.dataset.shared_parts import candidate_pairs, mutual_matches, shared_part, shared_parts
from cleanset.images.local_features import can_find_features, local_features

pytestmark = pytest.mark.skipif(not can_find_features(), reason="OpenCV is not installed")


def scene(seed: int) -> Image.Image:
    """Rectangles of many sizes and colours, with corners to be found."""
    rng = np.random.default_rng(seed)
    pixels = np.full((240, 320, 3), 128, np.uint8)
    for _ in range(120):
        left, top = int(rng.integers(0, 300)), int(rng.integers(0, 220))
        width, height = rng.integers(6, 60, 2).tolist()
        pixels[top : top + height, left : left + width] = rng.integers(0, 256, 3)
    return Image.fromarray(pixels)


def saved(image: Image.Image) -> Image.Image:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=80)
    return Image.open(out)


SCENES = [scene(seed) for seed in range(6)]
FEATURES = [local_features(each) for each in SCENES]


def test_copies_without_an_eighth_of_each_side_or_a_quarter_of_one() -> None:
    first, second, third = SCENES[:3]
    copies = [
        saved(first.crop((40, 30, 280, 210))),
        saved(second.crop((0, 0, 240, 240))),
        saved(third.crop((38, 29, 282, 211)).resize((320, 240))),
        saved(first.crop((40, 30, 280, 210)).rotate(90, expand=True)),
    ]
    found = list(shared_parts([*FEATURES, *map(local_features, copies)]))
    # 6 and 9 are copies of one image
    assert [(one, other) for one, other, _ in found] == [(0, 6), (0, 9), (1, 7), (2, 8), (6, 9)]
    assert all(0.95 < correlation <= 1 for _, _, correlation in found)


def test_mirrored_copies() -> None:
    """For images before and after them, and for a mirrored copy; a symmetrical image is not a copy of itself."""
    first, second = SCENES[:2]
    copies = [
        ImageOps.mirror(saved(first.crop((40, 30, 280, 210)))),
        ImageOps.flip(saved(second.crop((0, 0, 240, 240)))),
        ImageOps.mirror(saved(first)),
    ]
    symmetrical = first.copy()
    symmetrical.paste(ImageOps.mirror(first.crop((0, 0, 160, 240))), (160, 0))
    looks = [*map(local_features, copies), *FEATURES, local_features(symmetrical)]
    found = list(shared_parts(looks))
    assert sorted((one, other) for one, other, _ in found) == [(0, 2), (0, 3), (1, 4), (2, 3)]
    assert all(0.95 < correlation <= 1 for _, _, correlation in found)


def test_features_of_the_mirrored_image() -> None:
    """Those moved and described again are those that are found in the mirrored image."""
    moved = FEATURES[0].mirrored()
    found = local_features(ImageOps.mirror(SCENES[0]))
    assert len(moved.points) > 200
    assert (moved.small == found.small).all()
    places, others = mutual_matches(moved.descriptors, found.descriptors)
    assert len(places) > 0.9 * len(moved.points)
    # half a pixel of the coarsest level
    assert np.abs(moved.points[places] - found.points[others]).max() < 1.25
    back = moved.mirrored()
    assert np.allclose(back.points, FEATURES[0].points)
    assert (back.descriptors == FEATURES[0].descriptors).all()


def test_different_images_and_small_parts_share_nothing() -> None:
    assert list(shared_parts(FEATURES)) == []
    corner = local_features(SCENES[0].crop((0, 0, 224, 168)))
    # the whole corner is in the image: it is the smaller one
    assert shared_part(corner, FEATURES[0]) is not None
    pasted = SCENES[1].copy()
    pasted.paste(SCENES[0].crop((0, 0, 120, 100)), (180, 120))
    assert shared_part(local_features(pasted), FEATURES[0]) is None
    # views of one scene that overlap in two fifths of each
    left = local_features(SCENES[0].crop((0, 0, 200, 240)))
    assert shared_part(left, local_features(SCENES[0].crop((120, 0, 320, 240)))) is None
    assert shared_part(left, local_features(SCENES[0].crop((80, 0, 280, 240)))) is not None
    assert shared_part(local_features(ImageOps.invert(SCENES[0])), FEATURES[0]) is None


def test_images_without_corners() -> None:
    plain = local_features(Image.new("L", (100, 80), 90))
    assert (plain.size, plain.points.shape, plain.descriptors.shape) == ((100, 80), (0, 2), (0, 32))
    assert shared_part(plain, plain) is None
    assert list(shared_parts([plain, *FEATURES[:2], plain])) == []
    assert list(shared_parts([])) == []
    for size in ((1, 1), (1, 900), (2, 3), (32, 400), (33, 33)):
        assert len(local_features(Image.new("RGB", size)).points) == 0


def test_candidates_are_those_with_equal_descriptors() -> None:
    """Against a count of equal descriptors, pair by pair."""
    rng = np.random.default_rng(5)
    images = [rng.integers(0, 256, (40, 32), np.uint8) for _ in range(50)]
    images[7][:5] = images[3][:5]
    images[20][3] = images[11][9]
    pairs = candidate_pairs(images)
    equal = [
        (one, other)
        for one in range(50)
        for other in range(one + 1, 50)
        if {each.tobytes() for each in images[one]} & {each.tobytes() for each in images[other]}
    ]
    assert pairs == equal == [(3, 7), (11, 20)]


def test_a_pattern_in_many_images_makes_no_candidates() -> None:
    rng = np.random.default_rng(6)
    stamp = rng.integers(0, 256, (10, 32), np.uint8)
    images = [np.concatenate([stamp, rng.integers(0, 256, (20, 32), np.uint8)]) for _ in range(33)]
    assert candidate_pairs(images) == []
    assert len(candidate_pairs(images[:32])) == 32 * 31 // 2


def test_matches_are_each_others_nearest() -> None:
    one = np.zeros((3, 32), np.uint8)
    one[1] = 255
    one[2, :16] = 255
    other = np.zeros((3, 32), np.uint8)
    other[0, 0] = 1  # one bit from the first
    other[1] = 255
    other[1, :9] = 0  # 72 bits from the second: too far
    other[2, :16] = 255
    places, others = mutual_matches(one, other)
    assert (places.tolist(), others.tolist()) == ([0, 2], [0, 2])
