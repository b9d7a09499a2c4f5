"""Near-duplicates: images whose perceptual hashes differ in few bits, also where one is a turned or cropped copy."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cleanset.review.hints.fingerprints import Fingerprint, Packed
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
