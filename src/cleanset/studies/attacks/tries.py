"""What an attack finds near each of some images, as a network answers to it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cleanset.images.preprocessing import PixelPlanes
from cleanset.statistics.basics import Flags
from cleanset.studies.attacks.base import Known, Parameters, Result, Subject, logits_of, to_unit

if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork


class Tries(NamedTuple):
    """What a search found near each image."""

    success: Flags
    """Whether the network misclassifies the candidate of an image that it classifies correctly."""

    candidates: list[PixelPlanes]
    queries: list[int]


def tries(
    network: "PixelNetwork",
    subjects: Sequence[Subject],
    known: Known,
    attack: Parameters,
    searched: "PixelNetwork | None" = None,
) -> Tries:
    """The candidates of an attack for each image.

    `searched`: the network that candidates are searched on, where it is another one.
    """
    success = []
    results = list[Result]()
    for group in groups_of(subjects, attack.group_size):
        found = attack.results(searched or network, group, known)
        unchanged = [subject.pixels for subject in group]
        candidates = [result.candidate for result in found]
        success.append(errors(network, group, candidates) & ~errors(network, group, unchanged))
        results += found
    return Tries(
        success=np.concatenate(success),
        candidates=[result.candidate for result in results],
        queries=[result.queries for result in results],
    )


def groups_of(subjects: Sequence[Subject], size: int) -> list[Sequence[Subject]]:
    """The images in groups of a size, in their order."""
    return [subjects[start : start + size] for start in range(0, len(subjects), size)]


def errors(network: "PixelNetwork", group: Sequence[Subject], images: Sequence[PixelPlanes]) -> Flags:
    """Whether a network misclassifies each of some images, of the classes of the group."""
    classes = np.array([subject.class_index for subject in group])
    return np.asarray(logits_of(network, to_unit(images, network)).argmax(axis=1) != classes)
