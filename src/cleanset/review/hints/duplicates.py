"""Near-duplicates: images whose perceptual hashes differ in few bits, also where one is a turned or cropped copy."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cleanset.review.hints.fingerprints import PARTS, Fingerprint, Packed, PackedFingerprint
from cleanset.review.hints.hints import Hint
from cleanset.validation import first_names

DUPLICATE_DOCS = "a near-duplicate among the candidates of a class: turned, mirrored, cropped by up to 8 % of each side"
"""The hint in words, as the documentation lists it."""

MAX_HASH_DISTANCE = 60
"""Number of differing bits, of 256, in the most similar orientation."""


def hints_between_images(fingerprints: Mapping[str, Fingerprint]) -> dict[str, list[Hint]]:
    """The hints from comparing images, by image id: near-duplicates."""
    names = np.array(list(fingerprints))
    found: dict[str, list[Hint]] = {name: [] for name in fingerprints}
    if not found:
        return found
    of_parts = part_distances(
        [each.parts for each in fingerprints.values()], np.stack([each.hashes for each in fingerprints.values()])
    )
    # either of two may be a part of the other
    is_same = np.minimum(of_parts, of_parts.T) <= MAX_HASH_DISTANCE
    for name, row in zip(fingerprints, is_same, strict=True):
        others = tuple(sorted(other for other in names[row].tolist() if other != name))
        if others:
            found[name].append(Hint("duplicate", f"nearly the same as {first_names(others, 1)}", others))
    return found


Name = TypeVar("Name")


class NearDuplicates(Generic[Name]):
    """Images, `count` at most, each compared with those before it: 20,000 in the time of 800 fingerprints."""

    def __init__(self, count: int) -> None:
        self._names: list[Name] = []
        # of each the orientation as stored; number by number, as they are compared
        self._stored = np.zeros((4, count), np.uint64)

    def add(self, name: Name, hashes: Packed) -> list[Name]:
        """Add an image, and return the names of its near-duplicates among those before."""
        before = self._stored[:, : len(self._names)]
        differing = np.zeros((len(hashes), len(self._names)), np.uint8)
        for number in range(3):  # three of four pass over most images, and their 192 bits are counted in a byte
            differing += np.bitwise_count(hashes[:, number, None] ^ before[number])
        near = np.flatnonzero(differing.min(axis=0) <= MAX_HASH_DISTANCE)
        bits = np.bitwise_count(hashes[:, :, None] ^ before[:, near]).sum(axis=1).min(axis=0)
        self._stored[:, len(self._names)] = hashes[0]
        self._names.append(name)
        return [self._names[place] for place in near[bits <= MAX_HASH_DISTANCE]]


class CroppedDuplicates(Generic[Name]):
    """Images, `count` at most, each compared with those before it as the hints compare the candidates of a class.

    So also a turned, mirrored or cropped copy is found, in 200 comparisons for the 8 of `NearDuplicates`.
    """

    def __init__(self, count: int) -> None:
        self._names: list[Name] = []
        # number by number, as they are compared
        self._hashes = np.zeros((4, count, 8, 1), np.uint64)
        self._parts = np.zeros((4, count, 1, 1 + len(PARTS)), np.uint64)

    def add(self, name: Name, fingerprint: PackedFingerprint) -> list[Name]:
        """Add an image, and return the names of its near-duplicates among those before."""
        count = len(self._names)
        # either of two may be a part of the other
        hashes = fingerprint.hashes.T[:, None, :, None]
        parts = fingerprint.parts.T[:, None, None, :]
        near = _near(self._parts[:, :count], hashes) | _near(self._hashes[:, :count], parts)
        self._hashes[:, count] = hashes[:, 0]
        self._parts[:, count] = parts[:, 0]
        self._names.append(name)
        return [self._names[place] for place in np.flatnonzero(near)]


def _near(kept: Packed, other: Packed) -> NDArray[np.bool_]:
    """Whether each kept image is near another one in its most similar pair of hashes, number by number."""
    differing = np.bitwise_count(kept[0] ^ other[0])
    for number in (1, 2):  # three of four pass over most images, and their 192 bits are counted in a byte
        differing += np.bitwise_count(kept[number] ^ other[number])
    near = np.asarray(differing.min(axis=(1, 2)) <= MAX_HASH_DISTANCE)
    places = np.flatnonzero(near)
    last = np.bitwise_count(kept[3][places] ^ other[3])
    near[places] = (differing[places].astype(np.uint16) + last).min(axis=(1, 2)) <= MAX_HASH_DISTANCE
    return near


def part_distances(parts: Sequence[NDArray[np.bool_]], hashes: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Number of differing bits between each image (row) and each other one (column), as similar as possible.

    `parts`: of each image, its whole and its parts as stored; `hashes`: images x orientations x 256. So the image of a
    column may be a turned, mirrored or cropped copy of the row's image.
    """
    count, orientations, bits = hashes.shape
    signs = 2 * hashes.reshape(-1, bits).T.astype(np.float32) - 1
    # the product of signs is the number of equal bits less that of different ones; row by row, for the memory
    equal = [((2 * each.astype(np.float32) - 1) @ signs).max(axis=0) for each in parts]
    return np.asarray((bits - np.stack(equal).reshape(-1, count, orientations).max(axis=2)) / 2, np.float32)
