"""Messages are one short line, whatever they quote; JSON and CSV that is damaged gives one."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, ValidationError

from cleanset.errors import CleansetError, cut, reason
from cleanset.plumbing.csv_files import parse_rows, read_rows
from cleanset.plumbing.json_files import parse_json
from cleanset.plumbing.validation import EmptyIsNone, first_problem, join_names, numeric, one_of, shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plain – text", "plain – text"),
        ("a\nb\rc\x85d\u2028e\u2029f", "a\\nb\\rc\\x85d\\u2028e\\u2029f"),
        ("\x1b[31m \x00 \u202e \udcff", "\\x1b[31m \\x00 \\u202e \\udcff"),
    ],
)
def test_what_breaks_a_line_is_escaped(text: str, message: str) -> None:
    assert str(CleansetError(text)) == message


def test_a_message_is_bounded() -> None:
    text = str(CleansetError("x" * 10_000 + "the end"))
    assert len(text) == 600
    assert text.endswith("the end (10,007 characters)")


def test_cut() -> None:
    assert cut("0123456789", 10) == "0123456789"
    assert cut("0123456789" * 10, 25) == "0123…789 (100 characters)"


def test_the_reason_of_an_exception() -> None:
    assert reason(ValueError("a\n  b")) == "a b"
    assert reason(MemoryError()) == "MemoryError"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", "'a\\nb'"),
        ([1, 2], "[1, 2]"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...]"),
        (None, "None"),
    ],
)
def test_shown(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    "value", ["x" * 9999, ["x" * 99] * 99, {"x" * 999: "y" * 999}, 10**4000, [[[["x"] * 99] * 99] * 99]]
)
def test_shown_is_bounded(value: object) -> None:
    assert len(shown(value)) <= 80


class Numbers(BaseModel):
    numbers: dict[str, int]


def test_the_first_problem_is_bounded() -> None:
    with pytest.raises(ValidationError) as error:
        Numbers.model_validate({"numbers": {"k\n" * 5000: "v\r" * 5000}})
    text = first_problem(error.value)
    assert text.startswith("numbers.k\\nk\\n")
    assert text.isprintable()
    assert len(text) <= 300


class Nested(BaseModel):
    inside: dict[str, "dict[str, Nested] | int"]


def test_the_first_problem_deep_in_a_file_is_bounded() -> None:
    """A key for each level, and pydantic's message for it."""
    content: object = "x" * 1000
    for number in range(8):
        content = {"inside": {f"{number}" * 100: {f"{number}" * 100: content}}}
    with pytest.raises(ValidationError) as error:
        Nested.model_validate(content)
    assert len(first_problem(error.value)) <= 400


def test_a_list_of_names_is_bounded() -> None:
    assert join_names(["a", "b"]) == "a, b"
    text = join_names(f"name{number}" for number in range(1000))
    assert len(text) <= 400
    assert text.startswith("name0, name1, ")
    assert re.search(r" and 9\d\d more$", text)
    assert len(join_names(["x" * 1000] * 9)) <= 400
    assert join_names(["a\u2028b"]) == "a\\u2028b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "x: not JSON (the key 'a' a second time); expected numbers"),
        (
            '{"c": 0, "a": 1, "b": 2, "b": 3, "b": 4, "a": 5}',
            "x: not JSON (the key 'a' a second time); expected numbers",
        ),
        ("[NaN]", "x: not JSON (NaN is not a number); expected numbers"),
        ("[-Infinity]", "x: not JSON (-Infinity is not a number); expected numbers"),
        ("[1,\n", "x, line 2: not JSON (Expecting value); expected numbers"),
        ("[" * 100_000, "x: not JSON (lists or tables more than 100 deep); expected numbers"),
        ('{"a":[1,' * 51, "x: not JSON (lists or tables more than 100 deep); expected numbers"),
        ("9" * 5000, "x: not JSON (Exceeds the limit *); expected numbers"),
    ],
)
def test_json(text: str, message: str) -> None:
    with pytest.raises(CleansetError) as error:
        parse_json(text, "x", "numbers")
    start, _, end = message.partition("*")
    assert str(error.value).startswith(start)
    assert str(error.value).endswith(end)


@dataclass(frozen=True, slots=True)
class Cells:
    a: Annotated[int, numeric(int, 1, 9)]
    b: Annotated[str | None, one_of("x", "y", None), EmptyIsNone]
    c: str = "none"


def rows_of(text: str) -> list[tuple[str, Cells]]:
    return list(parse_rows(text, ("a", "b", "c"), Cells, "t.csv", remedy="mend it", key=("a",)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv, line 1: ''; expected the header a,b,c: mend it"),
        ("b,a\n", "t.csv, line 1: 'b,a'; expected the header a,b,c: mend it"),
        ("a,b,c,d\n", "t.csv, line 1: 'a,b,c,d'; expected the header a,b,c: mend it"),
        ("a\n", "t.csv, line 1: 'a'; expected the header a,b,c: mend it"),
        ("a,b\n1,x\n3\n", "t.csv, line 3: 1 cells; expected a,b: mend it"),
        ("a,b\n1,x,y\n", "t.csv, line 2: 3 cells; expected a,b: mend it"),
        ('a,b\n1,"2\n', "t.csv, line 2: not CSV (unexpected end of data); expected a table: mend it"),
        ("a,b\n1,x\n0,x\n", "t.csv, line 3, a: '0'; expected a number from 1 to 9: mend it"),
        *(
            (f"a,b\n{text},x\n", f"t.csv, line 2, a: {text!r}; expected a number from 1 to 9: mend it")
            for text in ("", "+1", " 1", "1.0", "1_0", "\u0661", "\uff11", "1e0", "9" * 30)
        ),
        ("a,b\n1,z\n", "t.csv, line 2, b: 'z'; expected one of x, y, nothing: mend it"),
        ("a,b\n1,x\n2,x\n1,y\n", "t.csv, line 4: a '1' a second time, after line 2; expected it once: mend it"),
    ],
)
def test_rows_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(CleansetError) as error:
        rows_of(text)
    assert str(error.value) == message
    invalid: list[str] = []
    if "header" not in message:
        list(parse_rows(text, ("a", "b", "c"), Cells, "t.csv", remedy="mend it", key=("a",), invalid=invalid))
        assert invalid == [message]


def test_a_cell_that_is_too_long_for_a_table() -> None:
    with pytest.raises(CleansetError, match=r"line 2: not CSV \(field larger than field limit \(131072\)\)"):
        rows_of("a,b\n1," + "2" * 200_000 + "\n")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", ["a,b", '"a","b"'])
def test_what_spreadsheets_write(mark: str, end: str, header: str, tmp_path: Path) -> None:
    """A byte order mark, any line ends, quotes in the header, empty lines at the end; as a text and as a file."""
    text = mark + end.join([header, "1,x", '"2",', "", ""])
    rows = [("t.csv, line 2", Cells(1, "x")), ("t.csv, line 3", Cells(2, None))]
    assert rows_of(text) == rows
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    found = read_rows(path, ("a", "b", "c"), Cells, "mend it", key=("a",))
    assert [(at.removeprefix(f"{tmp_path}/"), row) for at, row in found] == rows


def test_a_byte_that_is_not_text_far_into_a_file(tmp_path: Path) -> None:
    """The rows before it are read in pieces, and its place is one in the file."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 5000 + b"1,\xff\n")
    rows = read_rows(path, ("a", "b"), dict[str, str], "mend it")
    assert next(rows) == (f"{path}, line 2", {"a": "1", "b": "x"})
    with pytest.raises(CleansetError, match=r"t\.csv: not UTF-8 at byte 20006; mend it"):
        list(rows)


def test_a_line_break_in_a_cell() -> None:
    assert list(parse_rows('a,b\r\n1,"2\n3"\r\n4,5\r\n', ("a", "b"), dict, "t.csv", remedy="mend it")) == [
        ("t.csv, line 3", {"a": "1", "b": "2\n3"}),
        ("t.csv, line 4", {"a": "4", "b": "5"}),
    ]


def test_a_function_of_the_cells() -> None:
    with pytest.raises(CleansetError, match=r"t\.csv, line 2: 'x'; invalid literal for int.*: mend it"):
        list(parse_rows("a\nx\n", ("a",), lambda cells: int(cells["a"]), "t.csv", remedy="mend it"))
