"""Near-duplicates: images that are nearly the same, by perceptual hashes of them and of their parts."""

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from cleanset.images.fingerprints import PARTS, Packed, PackedFingerprint
from cleanset.statistics.basics import Flags, Singles

MAX_HASH_DISTANCE = 60
"""Number of differing bits, of 256, in the most similar orientation."""


def near_pairs(fingerprints: Sequence[PackedFingerprint | None], class_of: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The pairs of near-duplicates, by their places, as many as join all that are alike; the later image first.

    Alike by their hashes, in any orientation; in a class also cropped ones, as the review's hints find them. An image
    without a fingerprint is like no other.
    """
    groups = Groups(len(fingerprints))
    compared = NearDuplicates[int](len(fingerprints))
    # cropped copies within a class only: among all images they would take hours
    sizes = np.bincount(np.asarray(class_of, np.int64)) if len(class_of) else np.zeros(0, np.int64)
    within = {index: CroppedDuplicates[int](int(count)) for index, count in enumerate(sizes) if count}
    for place, (label, found) in enumerate(zip(class_of, fingerprints, strict=True)):
        if found is not None:
            others = {*compared.add(place, found.hashes), *within[label].add(place, found)}
            yield from ((place, other) for other in sorted(others) if groups.join(place, other))


class Groups:
    """Groups of images, by their places: at first each image alone."""

    def __init__(self, count: int) -> None:
        self._linked = list(range(count))

    def join(self, place: int, other: int) -> bool:
        """Put the group of another image into that of an image; False if both are in one."""
        head = self.head(place)
        other_head = self.head(other)
        self._linked[other_head] = head
        return head != other_head

    def head(self, place: int) -> int:
        """The place of the root of an image's group; the path to it is shortened."""
        while self._linked[place] != place:
            self._linked[place] = place = self._linked[self._linked[place]]
        return place


Name = TypeVar("Name")


class NearDuplicates(Generic[Name]):
    """Images, `count` at most, each compared with those before it: 20,000 in the time of 800 fingerprints."""

    def __init__(self, count: int) -> None:
        self._names: list[Name] = []
        # of each the orientation as stored; number by number, for comparing
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
        # number by number, for comparing
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


def _near(kept: Packed, other: Packed) -> Flags:
    """Whether each kept image is near another one in its most similar pair of hashes, number by number."""
    differing = np.bitwise_count(kept[0] ^ other[0])
    for number in (1, 2):  # three of four pass over most images, and their 192 bits are counted in a byte
        differing += np.bitwise_count(kept[number] ^ other[number])
    near = np.asarray(differing.min(axis=(1, 2)) <= MAX_HASH_DISTANCE)
    places = np.flatnonzero(near)
    last = np.bitwise_count(kept[3][places] ^ other[3])
    near[places] = (differing[places].astype(np.uint16) + last).min(axis=(1, 2)) <= MAX_HASH_DISTANCE
    return near


def hash_distance(one: PackedFingerprint, other: PackedFingerprint) -> int:
    """Number of differing bits of two images in their most similar pair of hashes, 0 to 256.

    As `CroppedDuplicates` compares them: the whole of one, in any orientation, with the whole and parts of the other.
    """
    pairs = ((one.hashes, other.parts), (other.hashes, one.parts))
    return min(
        int(np.bitwise_count(hashes[:, None] ^ parts[None]).sum(axis=2, dtype=np.int64).min())
        for hashes, parts in pairs
    )


def part_distances(parts: Sequence[Flags], hashes: Flags) -> Singles:
    """Number of differing bits between each image (row) and each other one (column), as similar as possible.

    `parts`: each image, whole and in parts, as stored; `hashes`: images x orientations x 256. So the image of a
    column may be a turned, mirrored or cropped copy of the row's image.
    """
    count, orientations, bits = hashes.shape
    signs = 2 * hashes.reshape(-1, bits).T.astype(np.float32) - 1
    # the product of signs is the number of equal bits less that of different ones; row by row, for the memory
    equal = [((2 * each.astype(np.float32) - 1) @ signs).max(axis=0) for each in parts]
    return np.asarray((bits - np.stack(equal).reshape(-1, count, orientations).max(axis=2)) / 2, np.float32)
