"""Messages are one short line, whatever they quote; JSON and CSV that is damaged gives one."""

import re

import pytest
from pydantic import BaseModel, ValidationError

from cleanset.errors import CleansetError, cut, reason
from cleanset.parsing import parse_csv, parse_json
from cleanset.validation import first_problem, join_names, shown


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
    """Of a key for each level, and what pydantic says of each."""
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x, line 1: ''; expected the header a,b"),
        ("b,a\n", "x, line 1: 'b,a'; expected the header a,b"),
        ("a,b\n1,2\n3\n", "x, line 3: 1 cells; expected a,b"),
        ('a,b\n1,"2\n', "x, line 2: not CSV (unexpected end of data); expected a,b"),
        ("a,b\n1," + "2" * 200_000 + "\n", "x, line 2: not CSV (field larger than field limit (131072)); expected a,b"),
    ],
)
def test_csv(text: str, message: str) -> None:
    with pytest.raises(CleansetError) as error:
        list(parse_csv(text, ("a", "b"), "x"))
    assert str(error.value) == message


def test_csv_with_a_line_break_in_a_cell() -> None:
    assert list(parse_csv('a,b\r\n1,"2\n3"\r\n4,5\r\n', ("a", "b"), "x")) == [
        (3, {"a": "1", "b": "2\n3"}),
        (4, {"a": "4", "b": "5"}),
    ]
