"""Whether predictions are far better explained by another one-to-one numbering of the classes than by the one in use.

A numbering is fitted to half of the images of each class and judged by the others, so that chance confusions explain
nothing. It counts only where the classes that it moves are correct in it far more often than in the numbering in use,
and than those of a model that gives the same answers to images of any class: the confusions of a weak model, or a class
that it predicts too often, do not count as a numbering.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cleanset.statistics.basics import Flags, Floats, Ints
from cleanset.statistics.shares import wilson

MIN_PREFERRED = 2 / 3
"""Share that the better numbering must explain of the images of moved classes that either one explains."""
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
    """The numbering that explains predictions far better than the one in use, or None.

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


def _counts(label_of: NDArray[np.intp], column_of: NDArray[np.intp], shape: tuple[int, int]) -> Ints:
    """Number of images by class and prediction; the classes are the first columns."""
    rows, columns = shape
    return np.bincount(label_of * columns + column_of, minlength=rows * columns).reshape(shape)


def _best_assignment(counts: Ints) -> NDArray[np.intp]:
    """The prediction for each class, each once, with the highest mean share of correct images over the classes.

    Among equally good ones, one in which as many classes as possible keep their number.
    """
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows = np.arange(len(counts))
    # less than any difference of two assignments: all shares are multiples of one over a product of small numbers
    shares[rows, rows] += 1e-6
    return _assignment(-shares)


def _assignment(costs: Floats) -> NDArray[np.intp]:
    """The column of each row, each column at most once, with the lowest sum; there are no more rows than columns.

    By shortest augmenting paths (R. Jonker and A. Volgenant, A shortest augmenting path algorithm for dense and sparse
    linear assignment problems, Computing 38, 1987). scipy has it, too, but evaluating a CSV file needs the core alone.
    """
    rows, columns = costs.shape
    row_of = np.full(columns, -1)
    # what rows and columns add: no cost less both is negative, and that of an assigned pair is 0
    of_rows = np.zeros(rows)
    of_columns = np.zeros(columns)
    for start in range(rows):
        distances = np.full(columns, np.inf)
        before = np.full(columns, -1)  # the column before each on the shortest path to it
        is_open = np.ones(columns, np.bool_)
        column = -1
        row = start
        reached = 0.0
        while row >= 0:
            through = reached + costs[row] - of_rows[row] - of_columns
            is_nearer = is_open & (through < distances)
            distances[is_nearer] = through[is_nearer]
            before[is_nearer] = column
            left = np.where(is_open, distances, np.inf)
            reached = left.min()
            nearest = np.flatnonzero(left <= reached + 1e-12)
            # of equally near columns a free one, which ends the path
            column = int(nearest[row_of[nearest].argmin()])
            is_open[column] = False
            row = int(row_of[column])
        closed = np.flatnonzero(~is_open)
        moves = reached - distances[closed]
        of_columns[closed] -= moves
        assigned = row_of[closed]
        of_rows[assigned[assigned >= 0]] += moves[assigned >= 0]
        of_rows[start] += reached
        while column >= 0:
            previous = int(before[column])
            row_of[column] = start if previous < 0 else row_of[previous]
            column = previous
    found = np.empty(rows, np.intp)
    is_taken = row_of >= 0
    found[row_of[is_taken]] = np.flatnonzero(is_taken)
    return found


def _is_far_better(judged: Ints, assigned: NDArray[np.intp], moved: Flags) -> bool:
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
