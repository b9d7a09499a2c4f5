import numpy as np
import pandas as pd
import pytest

from cleanset.errors import CleansetError
from cleanset.studies.robustness.answer_arrays import cube

AXES: dict[str, list[object]] = {"image": ["a", "b"], "corruption": ["fog", "snow"], "severity": [1, 2]}


def rows() -> pd.DataFrame:
    keys = [(image, corruption, s) for s in (2, 1) for corruption in ("snow", "fog") for image in ("a", "b")]
    table = pd.DataFrame(keys, columns=["image", "corruption", "severity"])
    table["name"] = [f"{i}{c[0]}{s}" for i, c, s in keys]
    table["other"] = [len(i) + s for i, _, s in keys]
    return table


def test_the_rows_are_ordered_by_the_axes() -> None:
    found = cube(rows(), AXES, rows()["name"].to_numpy())
    assert found.tolist() == [[["af1", "af2"], ["as1", "as2"]], [["bf1", "bf2"], ["bs1", "bs2"]]]


def test_several_values_are_the_last_axis() -> None:
    found = cube(rows(), AXES, rows()[["other", "severity"]].to_numpy())
    assert found.shape == (2, 2, 2, 2)
    assert found[1, 0].tolist() == [[2, 1], [3, 2]]
    assert np.issubdtype(found.dtype, np.integer)


def test_missing_cells_are_reported() -> None:
    table = rows()
    cells = "image a corruption fog severity 1, image b corruption snow severity 2"
    with pytest.raises(CleansetError, match=f"2 of 8 cells are missing: {cells}; expected"):
        cube(table[~table["name"].isin(["af1", "bs2"])], AXES, np.zeros(6))
    with pytest.raises(
        CleansetError, match=r"8 of 8 cells are missing: .*severity 1, \.\.\.; expected one row for each"
    ):
        cube(rows()[:0], AXES, np.zeros(0))


def test_cells_that_are_there_twice_are_reported() -> None:
    table = pd.concat([rows(), rows()[:1]])
    with pytest.raises(
        CleansetError, match="1 of 8 cells are there more than once: image a corruption snow severity 2"
    ):
        cube(table, AXES, np.zeros(9))


@pytest.mark.parametrize(("axis", "found"), [(1, 2), (2, 1)])
def test_a_value_that_is_on_no_axis_is_refused(axis: int, found: int) -> None:
    message = f"column severity: found {found}; expected one of 1 values, {axis} first"
    with pytest.raises(CleansetError, match=message):
        cube(rows(), {**AXES, "severity": [axis]}, np.zeros(8))
