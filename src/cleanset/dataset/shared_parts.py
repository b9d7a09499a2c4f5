"""Pairs of images that share a part: copies that lack more of a side than perceptual hashes allow for.

Two steps: pairs whose local features are often alike are candidates, found without comparing each with each; a
candidate is confirmed if one similarity transform (shift, turn, scale) places the features of one image on those of
the other, and both look the same there. The features of each image are also compared with the mirrored ones of others.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cleanset.images.local_features import LocalFeatures
from cleanset.statistics.basics import Floats

_TABLES = 16
_KEY_BYTES = 6
"""Bytes of a descriptor that two features have in common to be alike in one table."""
_MIN_ALIKE = 2
"""Features alike, over all tables, of a candidate. 65 of 124,750 pairs of different photographs have as many."""
_MAX_IMAGES = 32
"""Features that are alike in a table; more are a common pattern, such as a stamp in many images."""
_IMAGE_BITS = np.uint64(24)

_MAX_FEATURE_DISTANCE = 64
"""Differing bits, of 256, of two features that may be the same corner."""
_MAX_SHIFT_PIXELS = 3.0
"""Distance of a feature from its place under the transform."""
MIN_PLACED = 8
"""Features that the transform places."""
MIN_SHARED = 0.5
"""Share of the smaller image that is inside the other."""
MIN_CORRELATION = 0.9
"""Correlation of the brightness of both images in the part. Copies have 0.95 or more, and of the photographs no wrong
pair has more than 0.7 (bench/RESULTS.md)."""


def shared_parts(features: Sequence[LocalFeatures]) -> Iterator[tuple[int, int, float]]:
    """The pairs of images that share a part, by their places, the first one lower; and the correlation in the part."""
    count = len(features)
    both = [*features, *(each.mirrored() for each in features)]
    found = set()
    for one, other in candidate_pairs([each.descriptors for each in both]):
        pair = (min(one, other % count), max(one, other % count))
        # two mirrored images are like the two as stored; a symmetrical one is like itself
        if one < count and pair[0] < pair[1] and pair not in found:
            correlation = shared_part(both[one], both[other])
            if correlation is not None:
                found.add(pair)
                yield *pair, correlation


def candidate_pairs(descriptors: Sequence[NDArray[np.uint8]]) -> list[tuple[int, int]]:
    """The pairs of images with enough features alike, by their places, sorted.

    `descriptors`: features x 32 bytes for each image. Features are alike if a random choice of their bytes is equal
    (locality-sensitive hashing by sampled bits, Indyk and Motwani 1998).
    """
    count = len(descriptors)
    if count < 2:
        return []
    stacked = np.concatenate(descriptors)
    image_of = np.repeat(np.arange(count, dtype=np.uint64), [len(each) for each in descriptors])
    rng = np.random.default_rng(0)
    found = [np.zeros(0, np.uint64)]
    for _ in range(_TABLES):
        chosen = np.zeros((len(stacked), 8), np.uint8)
        chosen[:, :_KEY_BYTES] = stacked[:, rng.choice(32, _KEY_BYTES, replace=False)]
        found.append(_pairs_in_table(_mixed(chosen.view(np.uint64).ravel()), image_of, count))
    pairs, alike = np.unique(np.concatenate(found), return_counts=True)
    first, second = np.divmod(pairs[alike >= _MIN_ALIKE], np.uint64(count))
    return list(zip(first.tolist(), second.tolist(), strict=True))


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Keys with their bits spread over the upper ones (Fibonacci hashing, Knuth 1973)."""
    return keys * np.uint64(0x9E3779B97F4A7C15)


def _pairs_in_table(keys: NDArray[np.uint64], image_of: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    """Each pair of features with the same key in two images: the first image times `count`, plus the second."""
    # one number for both: a sort of plain numbers takes a fifth of one by two columns
    entries = np.sort((keys >> _IMAGE_BITS << _IMAGE_BITS) | image_of)
    groups = entries >> _IMAGE_BITS
    starts = np.flatnonzero(np.diff(groups, prepend=groups[:1] + np.uint64(1)))
    sizes = np.diff(starts, append=len(groups))
    is_kept = np.repeat((sizes > 1) & (sizes <= _MAX_IMAGES), sizes)
    groups = groups[is_kept]
    images = entries[is_kept] & np.uint64((1 << int(_IMAGE_BITS)) - 1)
    found = [np.zeros(0, np.uint64)]
    for step in range(1, _MAX_IMAGES):
        is_alike = groups[step:] == groups[:-step]
        if not is_alike.any():
            break
        # in a group images ascend
        is_pair = is_alike & (images[step:] != images[:-step])
        found.append(images[:-step][is_pair] * np.uint64(count) + images[step:][is_pair])
    return np.concatenate(found)


def shared_part(one: LocalFeatures, other: LocalFeatures) -> float | None:
    """The correlation of the brightness of two images in the part that both show; None if they share none.

    Each is placed on the other, since pixels count otherwise where a finer image is made coarser.
    """
    if min(len(one.points), len(other.points)) < MIN_PLACED:
        return None
    places, others = mutual_matches(one.descriptors, other.descriptors)
    if len(places) < MIN_PLACED:
        return None
    found = (_correlation_placed(one, other, places, others), _correlation_placed(other, one, others, places))
    return max((each for each in found if each is not None), default=None)


def _correlation_placed(
    one: LocalFeatures, other: LocalFeatures, places: NDArray[np.intp], others: NDArray[np.intp]
) -> float | None:
    """The correlation with one image placed on the other by the features at these places; None if it cannot be."""
    import cv2

    transform, placed = cv2.estimateAffinePartial2D(
        one.points[places],
        other.points[others],
        method=cv2.RANSAC,
        ransacReprojThreshold=_MAX_SHIFT_PIXELS,
        maxIters=500,
    )
    if transform is None or int(np.sum(placed)) < MIN_PLACED:
        return None
    return _correlation(one, other, np.asarray(transform, np.float64))


def mutual_matches(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of the features that are each other's nearest, and near enough, in the first and in the other image.

    `one` and `other`: descriptors, features x 32 bytes. In a third of the time of OpenCV's matcher.
    """
    of_one = np.ascontiguousarray(one).view(np.uint64)
    of_other = np.ascontiguousarray(other).view(np.uint64)
    distances = np.zeros((len(one), len(other)), np.uint16)
    for number in range(4):
        distances += np.bitwise_count(of_one[:, number, None] ^ of_other[None, :, number])
    nearest = distances.argmin(axis=1)
    places = np.arange(len(one))
    is_mutual = distances.argmin(axis=0)[nearest] == places
    chosen = places[is_mutual & (distances[places, nearest] <= _MAX_FEATURE_DISTANCE)]
    return chosen, nearest[chosen]


def _correlation(one: LocalFeatures, other: LocalFeatures, transform: Floats) -> float | None:
    """The correlation where the first image, moved by `transform`, is on the second; None if too little is."""
    import cv2

    moved = _to_pixels_of(other) @ np.vstack((transform, (0, 0, 1))) @ np.linalg.inv(_to_pixels_of(one))
    height, width = other.small.shape
    placed = cv2.warpAffine(one.small, moved[:2], (width, height), flags=cv2.INTER_AREA)
    is_shared = cv2.warpAffine(np.ones_like(one.small), moved[:2], (width, height), flags=cv2.INTER_NEAREST) > 0
    smaller = min(other.small.size, one.small.size * abs(float(np.linalg.det(moved[:2, :2]))))
    if is_shared.sum() < MIN_SHARED * smaller:
        return None
    # without the finest details, which scaling changes
    values = cv2.blur(placed, (3, 3))[is_shared].astype(np.float64)
    others = cv2.blur(other.small, (3, 3))[is_shared].astype(np.float64)
    if min(values.std(), others.std()) == 0:
        return None
    correlation = float(np.corrcoef(values, others)[0, 1])
    return correlation if correlation >= MIN_CORRELATION else None


def _to_pixels_of(features: LocalFeatures) -> Floats:
    """From the pixels of `points` to those of `small`, whose middles are half a pixel from their corners."""
    height, width = features.small.shape
    across = width / features.size[0]
    down = height / features.size[1]
    return np.array([[across, 0, across / 2 - 0.5], [0, down, down / 2 - 0.5], [0, 0, 1]])
