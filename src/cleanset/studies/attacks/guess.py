"""The two attacks that ask the network nothing: the image itself, and guess and check.

The unchanged image goes through the same loop as all attacks. Guess and check takes the most confident mistake that
the model is known to make on any image of the class: the answers to the images and their changes are stored already.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import pandas as pd

from cleanset.studies.attacks.base import Ball, Known, Parameters, Pixels, Result, Search, Subject, Uses

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork

GUESSED = ("corruptions", "scenarios")
"""The families of changes whose stored predictions are read."""

NAME = ["file", "change", "severity"]
"""The columns that name a changed image."""

ChangedPixels = Callable[[str, str, int], Pixels]
"""Function from file, change and severity to the pixels that the network sees of the changed image."""


class GuessAttack(Parameters):
    """The known mistakes of the stored predictions; it has no parameters and is always there."""

    libraries: ClassVar[tuple[str, ...]] = ("imagecorruptions-imaug",)
    reads_predictions: ClassVar[bool] = True
    is_of_image: ClassVar[bool] = False
    uses: ClassVar[Uses] = "classes"
    kind: Literal["guess"] = "guess"

    def search(self, known: Known) -> Search:
        """The search."""
        return known.guess()


def most_confident_mistakes(images: pd.DataFrame, predictions: pd.DataFrame) -> dict[int, tuple[str, str, int]]:
    """File, change and severity of the misclassified image with the highest log-odds, by class; ties by name.

    `images` have file and class_index, `predictions` the columns of PREDICTIONS for these files and others. Classes
    without a mistake are left out.
    """
    joined = predictions.merge(images[["file", "class_index"]], on="file")
    mistakes = joined[joined["top5_class"].str[0] != joined["class_index"]]
    ordered = mistakes.sort_values(["log_odds", *NAME], ascending=[False, True, True, True])
    first = ordered.drop_duplicates("class_index")
    names = first[NAME].itertuples(index=False)
    return {
        int(index): (file, change, int(severity))
        for index, (file, change, severity) in zip(first["class_index"], names, strict=True)
    }


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """The known mistake of each image's class; the image itself where there is none."""

    mistakes: dict[int, tuple[str, str, int]]
    changed: ChangedPixels
    name: str = "guess"
    group_size: int = 1
    ball: Ball | None = None

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """The candidates."""
        return [Result(self._candidate(subject), 0) for subject in group]

    def _candidate(self, subject: Subject) -> Pixels:
        mistake = self.mistakes.get(subject.class_index)
        return subject.pixels if mistake is None else self.changed(*mistake)


class NoAttack(Parameters):
    """The null attack, which changes nothing."""

    changes_images: ClassVar[bool] = False
    uses: ClassVar[Uses] = "classes"
    kind: Literal["none"] = "none"

    def search(self, known: Known) -> "Null":
        """The search."""
        return Null()


@dataclass(frozen=True, slots=True)
class Null:
    """A search that changes nothing and makes no query."""

    name: str = "none"
    group_size: int = 1

    @property
    def ball(self) -> Ball:
        """The image alone."""
        return Ball("Linf", 0.0)

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """The images."""
        return [Result(subject.pixels, 0) for subject in group]
