"""CSV files that are opened in a spreadsheet: no cell but a number is a formula, and every text is read back."""

import ast
import csv
import inspect
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.plumbing.csv_files import csv_rows, csv_text, frame_csv, read_frame
from cleanset.sets.from_verdicts import rows_of
from tests.properties import examples

FORMULAS = ["=1+1", "+cmd|'/C calc'!A0", "-x", "@SUM(A1)", "\tx", "\rx", "=", "-", "+", "-1 000", "-0.5 %", "--1"]
NUMBERS = ["-0.5", "+3.2", "-1e-05", "-.5", "-5.", "+1E+06", "-inf", "-nan", "-0"]
KEPT = ["", "'", "''", "'x", "a=b", " =1", "1-2", "'0.5", "x'=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_would_be_a_formula_is_written_behind_an_apostrophe(text: str) -> None:
    ((_, (header, _)), (_, (cell, _))) = raw(csv_text([text, ""], [[text, ""]]))
    assert (header, cell) == (f"'{text}", f"'{text}")


@pytest.mark.parametrize("text", [*NUMBERS, *KEPT])
def test_numbers_and_other_texts_are_written_unchanged(text: str) -> None:
    assert raw(csv_text(["a", "b"], [[text, ""]]))[1] == (2, [text, ""])


def test_values_that_are_not_texts() -> None:
    rows = [[-1, -0.5, float("-inf"), None, True, Path("-x"), Path("x")]]
    assert csv_text("abcdefg", rows) == "a,b,c,d,e,f,g\n-1,-0.5,-inf,,True,'-x,x\n"


CELLS = st.one_of(
    st.text(alphabet="'=+-@\t\r1e.x ,\"\n", max_size=6), st.text(max_size=6), st.sampled_from([*FORMULAS, *NUMBERS])
).filter(lambda text: text.encode("utf-8", "ignore").decode() == text and "\0" not in text)


@examples(500)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4))
def test_what_is_written_is_read_back(rows: list[tuple[str, str]]) -> None:
    text = csv_text(("a", "b"), rows)
    assert [cells for _, cells in csv_rows(text, "t.csv", "")] == [["a", "b"], *map(list, rows)]
    assert not [cell for _, cells in raw(text) for cell in cells if is_formula(cell)]


@examples(100)
@given(rows=st.lists(st.tuples(CELLS.filter(bool), CELLS.filter(bool)), min_size=1, max_size=4))
def test_a_frame_is_read_back(rows: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    frame = pd.DataFrame(rows, columns=["=a", "b"])
    path = tmp_path_factory.getbasetemp() / "frame.csv"
    path.write_bytes(frame_csv(frame).encode())
    found = read_frame(path, ("=a", "b"), "", dtype=str)
    assert list(found.itertuples(index=False, name=None)) == rows
    assert [list(each.values()) for each in rows_of(path)] == [list(row) for row in rows]
    assert not [cell for _, cells in raw(path.read_bytes().decode()) for cell in cells if is_formula(cell)]


def test_a_frame_without_formulas_is_written_as_pandas_writes_it() -> None:
    frame = pd.DataFrame(
        {
            "text": ["x", None, "a,b"], "number": [-0.5, float("nan"), 1e-9], "object": [None, 1, 2.5],
            "whole": [-1, 0, 1], "kind": pd.Categorical(["b", "a", "b"]), "is_there": [True, False, True],
        }
    )  # fmt: skip
    frame["object"] = frame["object"].astype(object)
    assert frame_csv(frame) == frame.to_csv(index=False, lineterminator="\n")
    assert frame_csv(frame, "%.9g") == frame.to_csv(index=False, lineterminator="\n", float_format="%.9g")
    with_formula = frame.assign(kind=pd.Categorical(["=b", "a", None]))
    assert frame_csv(with_formula).splitlines()[1] == "x,-0.5,,-1,'=b,True"
    assert with_formula["kind"].tolist()[0] == "=b"  # the frame is unchanged


def modules(repository: Path) -> Iterator[tuple[str, str]]:
    source = repository / "src" / "cleanset"
    for path in sorted(source.rglob("*.py")):
        yield path.relative_to(source).as_posix(), path.read_text()


def test_one_module_writes_csv(repository: Path) -> None:
    """One of two others checks a manifest line by line, and one is a program that needs nothing of the package."""
    texts = dict(modules(repository))
    readers = {name for name, text in texts.items() if re.search(r"^\s*(import csv\b|from csv\b)", text, re.MULTILINE)}
    assert readers == {"plumbing/csv_files.py", "sets/manifest_checks.py", "sets/from_verdicts.py"}
    writers = {name for name, text in texts.items() if re.search(r"\.to_csv\(|csv\.(Dict)?[wW]riter", text)}
    assert writers == {"plumbing/csv_files.py"}


def raw(text: str) -> list[tuple[int, list[str]]]:
    """The rows as another program reads them."""
    return list(enumerate(csv.reader(io.StringIO(text, newline="")), start=1))


def is_formula(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return False


def test_nothing_else_writes_csv() -> None:
    """Neither the csv module nor pandas, whose cells spreadsheets would run."""
    source = Path(__file__).parents[2] / "src" / "cleanset"
    found = {
        path
        for path in source.rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(each, ast.Attribute) and each.attr in ("to_csv", "writer", "DictWriter")
    }
    assert found == {Path(inspect.getfile(csv_text))}
