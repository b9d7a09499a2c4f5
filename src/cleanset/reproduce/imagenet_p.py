"""ImageNet-P: no answer of a network was published; its two measures on the cases that its own program was run on."""

from pathlib import Path

import numpy as np

from cleanset.reproduce.numbers import NotComputed, Number, Reproduction
from cleanset.studies.robustness.perturbations.measures import PerturbationDefinition, flips, pairs, top5_distance

TITLE = (
    "D. Hendrycks and T. Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and Perturbations "
    "(ICLR 2019): ImageNet-P"
)
PROGRAM = "Output of ImageNet-P/test.py, github.com/hendrycks/robustness"

FIRST = (0, 1, 2, 3, 4)
TOP5_DISTANCES = {
    "the same": ((0, 1, 2, 3, 4), "0"),
    "ranks 1 and 2 exchanged": ((1, 0, 2, 3, 4), "2"),
    "ranks 5 and 6 exchanged": ((0, 1, 2, 3, 5), "1"),
    "ranks 1 and 6 exchanged": ((5, 1, 2, 3, 4), "5"),
    "the five in reverse": ((4, 3, 2, 1, 0), "12"),
    "five others": ((5, 6, 7, 8, 9), "15"),
}
"""Lists of the five most probable classes beside the first one, and their T5D."""

SHORT = (0, 1, 1, 1, 0)
LONG = (0, 0, 1, 1, 0, 0, 0, 2)
FLIPS: tuple[tuple[tuple[int, ...], str, PerturbationDefinition, int, str], ...] = (
    (SHORT, "translate", "as_written", 1, "0.5"),
    (SHORT, "gaussian_noise", "as_written", 1, "0.75"),
    (LONG, "translate", "as_written", 1, "0.428571"),
    (LONG, "translate", "as_written", 2, "0.833333"),
    (LONG, "translate", "as_written", 3, "0.8"),
)
"""Predictions of the frames, a perturbation, a definition, a difficulty and FP."""

NOT_COMPUTED = (
    NotComputed(
        where="Tables of FP, T5D, mFR and mT5D, such as ResNet-50's mFR of 58.0 % and mT5D of 78.4 %",
        why="neither answers of networks nor AlexNet's FP and T5D were published; `perturbations` of a study measures "
        "FP and T5D of your networks, relative to one that you name",
    ),
    NotComputed(where="Zipf distance", why="not in the paper's tables; it needs ranks of all 1,000 classes"),
)


def reproduce(_files: Path | None) -> Reproduction:
    """All numbers; no file is needed."""
    first = np.array(FIRST)
    numbers = [
        Number(
            where=PROGRAM,
            quantity=f"T5D, {name}",
            printed=printed,
            computed=float(top5_distance(first, np.array(other))),
        )
        for name, (other, printed) in TOP5_DISTANCES.items()
    ]
    for frames, perturbation, definition, difficulty, printed in FLIPS:
        compared = pairs(perturbation, len(frames), definition, difficulty)
        count = int(flips(np.array([frames]), compared, axis=1)[0])
        predictions = " ".join(map(str, frames))
        numbers.append(
            Number(
                where=PROGRAM,
                quantity=f"FP, {perturbation}, difficulty {difficulty}, predictions {predictions}",
                printed=printed,
                computed=count / len(compared[0]),
            )
        )
    return Reproduction(title=TITLE, numbers=tuple(numbers), not_computed=NOT_COMPUTED)
