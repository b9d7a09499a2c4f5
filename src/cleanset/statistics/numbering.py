"""Whether predictions are far better explained by another one-to-one numbering of the classes than by the one in use.

A numbering is fitted to half of the images of each class and judged by the others, so that chance confusions explain
nothing. It counts only where the classes that it moves are correct in it far more often than in the numbering in use,
and than a model would be that gives the same answers to images of any class: the confusions of a weak model, and an
answer that it gives too often, are no numbering.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cleanset.statistics.shares import wilson

MIN_PREFERRED = 2 / 3
"""Of the images of moved classes that either numbering explains, the share that the other one has to explain."""
MIN_EXPLAINED = 0.25
"""The share of the images of moved classes that it has to explain beyond what the same answers to any image would."""
MIN_MOVED_PREFERRED = 0.5
"""The share of the moved classes that the other numbering has to explain better than the one in use."""
OFFSET_SHARE = 0.5
"""The share of the moved classes that one offset has to exceed."""


@dataclass(frozen=True, slots=True)
class OtherNumbering:
    """A one-to-one numbering of the predicted classes that explains predictions far better than the one in use."""

    prediction_of: dict[int, int]
    """The class index that is predicted for each class with images, by class index."""

    images: int
    """Images that it was not fitted to: about half of them, at least one."""

    correct: int
    """Number of these that are correct in this numbering."""

    correct_before: int
    """Number of these that are correct in the numbering in use."""

    @property
    def moved(self) -> dict[int, int]:
        """The classes whose number is another one, with that, by class index, sorted."""
        return {label: found for label, found in sorted(self.prediction_of.items()) if found != label}

    @property
    def offset(self) -> int | None:
        """The number that is added to most of the moved classes; None without such a number."""
        offset, times = Counter(found - label for label, found in self.moved.items()).most_common(1)[0]
        return offset if times > OFFSET_SHARE * len(self.moved) else None


def other_numbering(labels: Sequence[int], predictions: Sequence[int]) -> OtherNumbering | None:
    """The numbering that explains predictions far better than the one in use; None if there is none.

    `labels` and `predictions`: class indices of the same images, in the same order.
    """
    known, label_of = np.unique(np.asarray(labels, np.int64), return_inverse=True)
    predicted = np.asarray(predictions, np.int64)
    is_fitted = _places_within(label_of) % 2 == 0
    if is_fitted.all():
        return None
    # classes with images first, so that the place of a class as a label is its place as a prediction
    columns = np.concatenate([known, np.setdiff1d(predicted, known)])
    order = np.argsort(columns)
    column_of = order[np.searchsorted(columns, predicted, sorter=order)]
    shape = (len(known), len(columns))
    fitted = _counts(label_of[is_fitted], column_of[is_fitted], shape)
    judged = _counts(label_of[~is_fitted], column_of[~is_fitted], shape)
    assigned = _best_assignment(fitted)
    rows = np.arange(len(known))
    before = judged[rows, rows]
    after = judged[rows, assigned]
    moved = assigned != rows
    if not _is_far_better(judged, assigned, moved):
        return None
    prediction_of = dict(zip(known.tolist(), columns[assigned].tolist(), strict=True))
    return OtherNumbering(
        prediction_of=prediction_of,
        images=int(judged.sum()),
        correct=int(after.sum()),
        correct_before=int(before.sum()),
    )


def _places_within(groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """The place of each item among the items of its group, from 0."""
    order = np.argsort(groups, kind="stable")
    of_group = groups[order]
    starts = np.searchsorted(of_group, of_group)
    places = np.empty_like(order)
    places[order] = np.arange(len(order)) - starts
    return places


def _counts(label_of: NDArray[np.intp], column_of: NDArray[np.intp], shape: tuple[int, int]) -> NDArray[np.int64]:
    """Number of images by class and prediction; the classes are the first columns."""
    rows, columns = shape
    return np.bincount(label_of * columns + column_of, minlength=rows * columns).reshape(shape)


def _best_assignment(counts: NDArray[np.int64]) -> NDArray[np.intp]:
    """The prediction for each class, each once, with the highest mean share of correct images over the classes.

    Of equally good ones, one in which as many classes as possible keep their number.
    """
    from scipy.optimize import linear_sum_assignment

    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows = np.arange(len(counts))
    # less than any difference of two assignments: all shares are multiples of one over a product of small numbers
    shares[rows, rows] += 1e-6
    _, found = linear_sum_assignment(shares, maximize=True)
    return found


def _is_far_better(judged: NDArray[np.int64], assigned: NDArray[np.intp], moved: NDArray[np.bool]) -> bool:
    rows = np.flatnonzero(moved)
    of_class = judged[rows].sum(axis=1)
    images = int(of_class.sum())
    if images == 0:
        return False
    before = judged[rows, rows]
    after = judged[rows, assigned[rows]]
    explained = int(after.sum())
    # by the share of the images of other classes that get the same answer
    others = judged.sum() - of_class
    by_any_image = (judged.sum(axis=0)[assigned[rows]] - after) / np.maximum(others, 1) * of_class
    rival = max(int(before.sum()), round(float(by_any_image.sum())))
    if explained == 0 or wilson(explained, explained + rival)[0] < MIN_PREFERRED:
        return False
    if wilson(explained, images)[0] - by_any_image.sum() / images < MIN_EXPLAINED:
        return False
    # classes that are alike may all get one answer, which explains but one of them
    return float((after > before)[of_class > 0].mean()) >= MIN_MOVED_PREFERRED
