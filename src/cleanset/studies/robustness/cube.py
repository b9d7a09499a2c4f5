"""Predictions in rows as an array with an axis for each of their keys."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.validation import shown

SHOWN_CELLS = 3
"""Cells that a message names."""


def cube(
    rows: pd.DataFrame, axes: Mapping[str, Sequence[object]], value: str | list[str], what: str = "predictions"
) -> npt.NDArray[Any]:
    """The values of the rows as an array with one axis for each column of `axes`, in the order of its values.

    With several value columns the last axis is theirs. There must be exactly one row for each combination; raises
    CleansetError, naming some, for combinations that are missing or there twice, and for a value that is not in `axes`;
    `what` begins its message.
    """
    shape = tuple(len(values) for values in axes.values())
    codes = [_codes(rows, column, values, what) for column, values in axes.items()]
    places = np.ravel_multi_index(codes, shape) if len(rows) else np.empty(0, np.int64)
    counts = np.bincount(places, minlength=int(np.prod(shape)))
    _refuse(axes, np.flatnonzero(counts == 0), shape, what, "missing")
    _refuse(axes, np.flatnonzero(counts > 1), shape, what, "there more than once")
    values = rows[value].to_numpy()
    ordered = np.empty_like(values)
    ordered[places] = values
    return ordered.reshape(shape + values.shape[1:])


def _codes(rows: pd.DataFrame, column: str, values: Sequence[object], what: str) -> npt.NDArray[np.int64]:
    """Where in `values` each row's value of the column is."""
    column_values = rows[column].to_numpy()
    known = pd.Index(list(values), dtype=object)
    codes = known.get_indexer(pd.Index(column_values, dtype=object)).astype(np.int64)
    if (codes < 0).any():
        found = column_values[codes < 0][:1].tolist()[0]
        raise CleansetError(
            f"{what}, column {column}: found {shown(found)}; expected one of {len(values):,} values, "
            f"{shown(values[0]) if len(values) else 'none'} first; leave these rows out or add the value"
        )
    return codes


def _refuse(
    axes: Mapping[str, Sequence[object]], places: npt.NDArray[np.int64], shape: tuple[int, ...], what: str, how: str
) -> None:
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
        "expected one row for each; make the predictions again, or leave out what lacks some"
    )
