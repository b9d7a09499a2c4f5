"""Flip probability and top-5 distance over the frames of perturbation sequences (ImageNet-P).

Formulas: D. Hendrycks and T. Dietterich (ICLR 2019), section 4.2, and the benchmark's published code, which compares
the frames of noise sequences with the first frame instead of the frame before (`as_published`); the text's formula
compares consecutive frames of every sequence (`as_written`).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanset.errors import CleansetError
from cleanset.studies.robustness.perturbations.params import NOISE_PERTURBATIONS
from cleanset.studies.robustness.sampled import DEFINITIONS, Definition
from cleanset.validation import shown

Ints = npt.NDArray[np.int64]
LISTED = 5
"""Classes of a top-5 list."""
MAX_TOP5_DISTANCE = 18


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The frames that are compared: positions from 0, the reference's beside the frame's, one pair each."""

    references: Ints
    frames: Ints

    def __len__(self) -> int:
        """The number of comparisons of a sequence."""
        return len(self.frames)


def pairs(perturbation: str, frames: int, definition: Definition = "as_written", difficulty: int = 1) -> Pairs:
    """The comparisons in a sequence of `frames` frames, at least two.

    Difficulty d compares frames that are d apart, from each of the first d frames on, as the published code does; the
    difficulty of noise is in the frames themselves and compares all of them. Raises CleansetError for frames too few,
    an unknown definition, or a difficulty below 1.
    """
    noise = perturbation in NOISE_PERTURBATIONS
    if definition not in DEFINITIONS:
        raise CleansetError(f"flips: found definition {shown(definition)}; expected {' or '.join(DEFINITIONS)}")
    if difficulty < 1:
        raise CleansetError(f"{perturbation}: found difficulty {difficulty}; expected 1 or more")
    step = 1 if noise else difficulty
    if frames <= step:
        raise CleansetError(f"{perturbation}: found {frames} frames; expected {step + 1} or more at difficulty {step}")
    if noise and definition == "as_published":
        return Pairs(np.zeros(frames - 1, np.int64), np.arange(1, frames))
    # the runs from frames 0, 1, ..., d - 1 on, each d apart, together compare every frame with the one d before
    return Pairs(np.arange(frames - step), np.arange(step, frames))


def flips(top1: Ints, compared: Pairs) -> Ints:
    """The comparisons in which the prediction differs, by image; `top1` has the shape images x frames."""
    by_image: Ints = _flipped(top1, compared).sum(axis=1, dtype=np.int64)
    return by_image


def flips_by_pair(top1: Ints, compared: Pairs) -> Ints:
    """The images whose prediction differs, by comparison, in the order of `compared.frames`."""
    by_pair: Ints = _flipped(top1, compared).sum(axis=0, dtype=np.int64)
    return by_pair


def top5_distance(reference: Ints, other: Ints) -> Ints:
    """T5D of two lists of five classes, best first, on the last axis; 0 to 18, not symmetric.

    The definition sums, over the reference's five classes, the distance between ranks i and s of the two lists, where
    ranks beyond 5 count as 6; so no further ranks are needed.
    """
    same = reference[..., :, np.newaxis] == other[..., np.newaxis, :]
    # ranks from 0, so LISTED stands for the sixth, which all further classes share
    ranks = np.where(same.any(axis=-1), same.argmax(axis=-1), LISTED)
    distance: Ints = np.abs(ranks - np.arange(LISTED)).sum(axis=-1, dtype=np.int64)
    return distance


def top5_distances(top5: Ints, compared: Pairs) -> Ints:
    """The sum of T5D over the comparisons, by image; `top5` has the shape images x frames x 5, best first."""
    total = np.zeros(len(top5), np.int64)
    # one comparison at a time: all at once would need 25 values for each
    for reference, frame in zip(compared.references, compared.frames, strict=True):
        total += top5_distance(top5[:, reference], top5[:, frame])
    return total


def _flipped(top1: Ints, compared: Pairs) -> npt.NDArray[np.bool_]:
    """Whether the predictions of each comparison differ, images x comparisons."""
    return np.not_equal(top1[:, compared.references], top1[:, compared.frames])
