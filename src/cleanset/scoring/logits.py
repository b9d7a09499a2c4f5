"""Values derived from logits: top-5 classes, probabilities, log-odds; models of two groups of classes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown
from cleanset.statistics.basics import Floats, Ints, Singles

TOP = 5

SUM_TOLERANCE = 0.01
"""Largest difference of 1 and the sum of an image's probabilities.

A thousand that were rounded to bfloat16 are off by up to 0.002. Logits that are all from 0 to 1, and whose every row
sums to 1 so closely, do not come by chance.
"""

ScoreColumns = dict[str, NDArray[Any]]
"""By the name of a table's column, a value or row for each of n images."""
ReadOff = Callable[[Floats, Sequence[Any]], ScoreColumns]
"""From logits of shape (n, classes) and the ids of the images to columns; ValueError if a logit is not finite."""


def top5(logits: Floats, _ids: Sequence[object] = ()) -> ScoreColumns:
    """The columns of SCORES from logits of shape (n, classes): `ranked`, and the log-odds of the top-1 class.

    The log-odds, log(p / (1 - p)), are its logit minus the logsumexp of the others: the same order as p, also where p
    rounds to 1. Raises ValueError if a logit is not finite.
    """
    if not np.isfinite(logits).all():
        raise ValueError("a logit is NaN or infinite")
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    found = ranked(probabilities, logits)
    return found | {"log_odds": _log_odds(logits, found["top5_class"][:, :1].astype(np.int64)).astype(np.float32)}


def are_probabilities(values: Floats) -> bool:
    """Whether values of shape (n, classes) are probabilities, not logits: from 0 to 1, with sums of 1, in every row."""
    rounding = 1e-6  # a softmax in float32 may end just outside
    within = (values >= -rounding) & (values <= 1 + rounding)
    return bool(within.all() and (np.abs(values.sum(axis=1) - 1) <= SUM_TOLERANCE).all())


def are_log_probabilities(values: Floats) -> bool:
    """Whether values of shape (n, classes) are logarithms of probabilities, as log-softmax gives, in every row."""
    rounding = 1e-6
    # without logits above 0 exp cannot overflow
    return bool((values <= rounding).all() and (np.abs(np.exp(values).sum(axis=1) - 1) <= SUM_TOLERANCE).all())


def ranked(probabilities: Floats, logits: Floats | None = None) -> ScoreColumns:
    """The five most probable classes of each image and their probabilities, highest first, each of shape (n, 5).

    By the logits, where they are known: probabilities of classes far below the first are all 0. For equal values, the
    lower class comes first. Fewer than five classes are padded with -1 and probability 0.
    """
    order = np.argsort(-(probabilities if logits is None else logits), axis=1, kind="stable")[:, :TOP]
    missing = [(0, 0), (0, TOP - order.shape[1])]
    return {
        "top5_class": np.pad(order, missing, constant_values=-1).astype(np.int16),
        "top5_probability": np.pad(np.take_along_axis(probabilities, order, axis=1), missing).astype(np.float32),
    }


def _log_odds(logits: Floats, classes: Ints) -> Floats:
    """The log-odds of one class of each image; `classes` of shape (n, 1)."""
    others = logits.copy()
    np.put_along_axis(others, classes, -np.inf, axis=1)
    return np.take_along_axis(logits, classes, axis=1)[:, 0] - log_sum_exp(others)


def log_sum_exp(logits: Floats) -> Floats:
    """The log-sum-exp of the logits of each image."""
    largest = logits.max(axis=1, keepdims=True)  # subtracted first, since exp overflows above 709
    found: Floats = largest[:, 0] + np.log(np.exp(logits - largest).sum(axis=1))
    return found


def log_odds_of(probabilities: Singles) -> Singles:
    """log(p / (1 - p)) of probabilities stored as float32, if no logits are known.

    Values that round to 1 get the smallest log-odds that do, 17.33; values that round to 0 the largest, -103.97.
    """
    exact = probabilities.astype(np.float64).clip(2.0**-150, 1 - 2.0**-25)
    found: Singles = (np.log(exact) - np.log1p(-exact)).astype(np.float32)
    return found


GROUPS = 2
"""Number of groups of a model."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Two named groups of class indices."""

    names: tuple[str, str]
    classes: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(cls, groups: Mapping[str, Sequence[str]], classes: ClassTable, where: str = "classes") -> Self:
        """The groups from their wnids by name, in the order given.

        Raises CleansetError, which names `where`, unless these are two disjoint groups of known, distinct classes.
        """
        if len(groups) != GROUPS:
            raise CleansetError(f"{where}: {len(groups)} groups; expected {GROUPS}, each with a name and its wnids")
        found: dict[str, str] = {}
        for name, members in groups.items():
            if not members:
                raise CleansetError(f"{where}.{name}: empty group; expected at least one wnid")
            for wnid in members:
                if wnid not in classes.indices:
                    raise CleansetError(
                        f"{where}.{name}: unknown class {shown(wnid)}; expected a wnid of ILSVRC2012 such as n01443537"
                    )
                if wnid in found:
                    both = f"twice in {name}" if found[wnid] == name else f"in both groups, {found[wnid]} and {name}"
                    raise CleansetError(f"{where}: {wnid} is {both}; expected each class once: remove one")
                found[wnid] = name
        first, second = groups
        members_of = [tuple(sorted(classes.indices[wnid] for wnid in groups[name])) for name in (first, second)]
        return cls((first, second), (members_of[0], members_of[1]))

    def group_of(self, class_index: int) -> int | None:
        """0 or 1, or None for a class that is in neither group."""
        # at most one, since `of` refuses a class in both groups
        return next((place for place, members in enumerate(self.classes) if class_index in members), None)

    def logits(self, logits: Floats) -> Floats:
        """The logits of the groups, shape (n, 2): the log-sum-exp over the logits of their classes, from shape (n,
        1000).

        The softmax of the two is the probability of each group, given that it is one of them. Raises ValueError for a
        logit that is not finite.
        """
        if not np.isfinite(logits).all():
            raise ValueError("a logit is NaN or infinite")
        return np.stack([log_sum_exp(logits[:, list(members)]) for members in self.classes], axis=1)


def predicted_groups(logits: Floats) -> Ints:
    """The group, 0 or 1, predicted from each row of logits, shape (n, 2); 0 if equal, as in the published kit."""
    return (logits[:, 0] < logits[:, 1]).astype(np.int64)


def stored_columns(logits: Floats) -> dict[str, Floats]:
    """The columns that confidences are computed from, for logits of shape (n, 2), in float64."""
    found = margins(logits)
    return found | {"log_odds": found["largest_logit"] - found["second_logit"]}


def margins(logits: Floats) -> dict[str, Floats]:
    """The two largest logits of each image, and the log-sum-exp of all."""
    second, largest = np.sort(logits, axis=1)[:, -2:].T
    return {"largest_logit": largest, "second_logit": second, "log_sum_exp": log_sum_exp(logits)}
