"""Answers as arrays: rows by image, change and step in the order of their axes, each there exactly once."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown
from cleanset.statistics.basics import Flags, Ints

Chosen = Flags
"""A flag for each image: whether it is measured."""


AnswerArray = npt.NDArray[Any]
"""Answers of the type that a family reads: images x steps, with a value or a row of them each."""
Answers = Mapping[str, AnswerArray]
"""A model's answers by change, CLEAN and UNCHANGED among them: images x steps, with a value or a row of them each."""


class ChangeStep(NamedTuple):
    """A change and its severity or frame; 0 for neither."""

    change: str
    step: int

    def __str__(self) -> str:
        return f"{self.change} {self.step}" if self.step else self.change


SHOWN_CELLS = 3
"""Maximum number of cells that a message names."""


def answers_by_change(
    files: pd.Series, answers: pd.DataFrame, changes: Iterable[tuple[str, int]], values: AnswerArray, seen: Chosen
) -> Answers:
    """A model's answers by change; `values` has one, or a row of them, for each answer.

    `files`: all images, and `seen`: which of them the model saw; the others get 0. `answers`: file, change and step of
    each. `changes`: the steps of a change follow each other. Raises CleansetError as `cube`.
    """
    keys = pd.DataFrame({"file": answers["file"], "change": list(map(ChangeStep, answers["change"], answers["step"]))})
    steps = list(map(ChangeStep._make, changes))
    found = cube(keys, {"file": files[seen].tolist(), "change": steps}, values)
    of_all = np.zeros((len(seen), *found.shape[1:]), found.dtype)
    of_all[seen] = found
    counts = Counter(each.change for each in steps)
    ends = np.cumsum(list(counts.values()))[:-1]
    return dict(zip(counts, np.split(of_all, ends, axis=1), strict=True))


def cube(
    rows: pd.DataFrame, axes: Mapping[str, Sequence[object]], values: AnswerArray, what: str = "predictions"
) -> AnswerArray:
    """The values of the rows as an array with one axis for each column of `axes`, in the order of its values.

    There must be exactly one row for each combination; raises CleansetError, naming some, for combinations that are
    missing or there twice, and for a value that is not in `axes`; `what` begins its message.
    """
    shape = tuple(len(values) for values in axes.values())
    codes = [_codes(rows, column, values, what) for column, values in axes.items()]
    places = np.ravel_multi_index(codes, shape) if len(rows) else np.empty(0, np.int64)
    counts = np.bincount(places, minlength=int(np.prod(shape)))
    _refuse(axes, np.flatnonzero(counts == 0), shape, what=what, how="missing")
    _refuse(axes, np.flatnonzero(counts > 1), shape, what=what, how="there more than once")
    ordered = np.empty_like(values)
    ordered[places] = values
    return ordered.reshape(shape + values.shape[1:])


def _codes(rows: pd.DataFrame, column: str, values: Sequence[object], what: str) -> Ints:
    """The position in `values` of each row's value."""
    column_values = rows[column].to_numpy()
    # objects are compared as Python compares them, whatever the dtype of the column
    known, found = (pd.Index(list(each), dtype=object, tupleize_cols=False) for each in (values, column_values))
    codes = known.get_indexer(found).astype(np.int64)
    if (codes < 0).any():
        unknown = column_values[codes < 0][:1].tolist()[0]
        raise CleansetError(
            f"{what}, column {column}: found {shown(unknown)}; expected one of {len(values):,} values, "
            f"{shown(values[0]) if len(values) else 'none'} first; leave these rows out or add the value"
        )
    return codes


def _refuse(axes: Mapping[str, Sequence[object]], places: Ints, shape: tuple[int, ...], what: str, how: str) -> None:
    """Raise CleansetError naming the first of the cells that are missing or there more than once."""
    if not len(places):
        return
    indices = np.unravel_index(places[:SHOWN_CELLS], shape)
    names = [
        " ".join(f"{axis} {values[int(index)]}" for (axis, values), index in zip(axes.items(), cell, strict=True))
        for cell in zip(*indices, strict=True)
    ]
    more = ", ..." if len(places) > SHOWN_CELLS else ""
    raise CleansetError(
        f"{what}: {len(places):,} of {int(np.prod(shape)):,} cells are {how}: {', '.join(names)}{more}; "
        "expected one row for each; make the predictions again, or leave out incomplete ones"
    )
