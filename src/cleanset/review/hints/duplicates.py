"""Hints on near-duplicates: images whose hashes differ in few bits, also where one is a turned or cropped copy."""

from collections.abc import Mapping

import numpy as np

from cleanset.dataset.near_duplicates import MAX_HASH_DISTANCE, part_distances
from cleanset.images.fingerprints import Fingerprint
from cleanset.plumbing.validation import first_names
from cleanset.review.hints.hints import Hint
from cleanset.review.hints.kinds import Duplicate


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
            found[name].append(Hint(Duplicate.kind, f"nearly the same as {first_names(others, 1)}", others))
    return found
