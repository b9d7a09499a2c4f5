"""Changes in the text of YAML files: literal texts, and what must hold for any layout that people write."""

import copy
import re
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from cleanset.edition.yaml_edit import InBraces, LayoutError, edited_text
from cleanset.errors import CleansetError
from tests.properties import examples

TEXT = """\
# mine
a: 1   # one

b:
    x:  'two'     # 2
    # of y
    y: {p: 1, "q": [1, 2]}   # braces
        # further in

    z: |
      # no comment
      three
# at the margin
c:
- first   # 1st
# of the second
- "second"
- d: 4
  e: 5
d: {}   # empty
"""
CONTENT = {
    "a": 1,
    "b": {"x": "two", "y": {"p": 1, "q": [1, 2]}, "z": "# no comment\nthree\n"},
    "c": ["first", "second", {"d": 4, "e": 5}],
    "d": {},
}


def test_the_content() -> None:
    assert yaml.safe_load(TEXT) == CONTENT
    assert edited_text(TEXT, CONTENT, "f") == TEXT


def other(**changes: Any) -> dict[str, Any]:
    """The content with another value, or without one (...), at keys joined by `__`."""
    content: Any = copy.deepcopy(CONTENT)
    for path, value in changes.items():
        *above, last = path.split("__")
        table = content
        for key in above:
            table = table[key]
        if value is ...:
            del table[last]
        else:
            table[last] = value
    return content  # type: ignore[no-any-return]


CASES: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "scalar": (other(a=True), [("a: 1 ", "a: true ")]),
    "quoted": (other(b__x="1e9"), [("'two'", "'1e9'")]),
    "line breaks": (other(b__x="p\nq"), [("'two'", '"p\\nq"')]),
    "block scalar": (other(b__z="four"), [("|\n      # no comment\n      three", "four")]),
    "scalar to list": (other(a=[1, "x, y"]), [("a: 1 ", "a: [1, 'x, y'] ")]),
    "list to scalar": (other(b__y__q=None), [("[1, 2]", "null")]),
    "in braces": (other(b__y__p=2), [("p: 1", "p: 2")]),
    "list in brackets": (other(b__y__q=[0, 1, 3]), [("[1, 2]", "[0, 1, 3]")]),
    "added": (other(b__new="v"), [("      three\n", "      three\n    new: v\n")]),
    "mapping added": (
        other(b__new={"k": 1, "l": {"m": [2]}}),
        [("      three\n", "      three\n    new:\n      k: 1\n      l:\n        m: [2]\n")],
    ),
    "braces added": (other(new=InBraces(k="x, y", l={})), [("# empty\n", "# empty\nnew: {k: 'x, y', l: {}}\n")]),
    "added in braces": (other(b__y__r=InBraces(k=1)), [("[1, 2]}", "[1, 2], r: {k: 1}}")]),
    "added to nothing": (other(d__k=1), [("d: {}   # empty\n", "d:   # empty\n  k: 1\n")]),
    "removed": (other(b__x=...), [("    x:  'two'     # 2\n", "")]),
    "removed with what is below it": (
        other(b__y=...),
        [('    y: {p: 1, "q": [1, 2]}   # braces\n        # further in\n', "")],
    ),
    "first in braces removed": (other(b__y__p=...), [("p: 1, ", "")]),
    "last in braces removed": (other(b__y__q=...), [(', "q": [1, 2]', "")]),
    "braces emptied": (other(b__y={}), [('{p: 1, "q": [1, 2]}', "{}")]),
    "item removed": (other(c=CONTENT["c"][1:]), [("- first   # 1st\n", "")]),  # type: ignore[index]
    "item added in front": (other(c=["zeroth", *CONTENT["c"]]), [("- first", "- zeroth\n- first")]),  # type: ignore[misc]
    "item exchanged": (other(c=["first", "2", {"d": 4, "e": 5}]), [('- "second"', "- '2'")]),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("wanted", "changes"), CASES.values(), ids=CASES.keys())
def test_all_else_stays(wanted: dict[str, Any], changes: list[tuple[str, str]], newline: str) -> None:
    expected = TEXT
    for old, new in changes:
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert edited_text(TEXT.replace("\n", newline), wanted, "f") == expected.replace("\n", newline)


REFUSED = {
    "a comment in a list": ("a:\n- 1 # one\n- 2\n", {"a": (3, 4)}),
    "a comment in brackets": ("a: [1, # one\n 2]\n", {"a": [2]}),
    "a comment behind a block scalar's mark": ("a: | # one\n  x\n", {"a": "y"}),
    "the first key of a mapping in a list": ("- a: 1\n  b: 2\n", {}),
    "an explicit key": ("? a\n:\n  b: 1\n", {"a": {}}),
    "no mapping left": ("a: 1\n", {}),
    "a block scalar that ends without a newline": ("a: |\n  x", {"a": "x", "b": 1}),
    "half a character": ("a: 1\n", {"a": "\ud83d"}),
    "a number that is read differently": ("a: 1\n", {"a": 1e-9}),
}


@pytest.mark.parametrize(("text", "wanted"), REFUSED.values(), ids=REFUSED.keys())
def test_what_would_lose_a_comment_or_read_differently_is_refused(text: str, wanted: dict[str, Any]) -> None:
    with pytest.raises(LayoutError):
        edited_text(text, wanted, "f")


def test_anchors_are_refused() -> None:
    with pytest.raises(CleansetError, match=r"^f, line 1: an anchor or alias"):
        edited_text("a: &x 1\nb: *x\n", {"a": 2, "b": 1}, "f")


def test_a_text_without_content() -> None:
    assert edited_text("", {"a": {"b": 1}, "c": (2,)}, "f") == "a:\n  b: 1\nc: [2]\n"
    assert edited_text("# mine", {"a": 1}, "f") == "# mine\na: 1"


# Any layout


SCALARS = [
    "1",
    "x y  # one",
    "'a # b'",
    '"ü 🐟"',
    "",
    "null # none",
    "2.50",
    "'two\n\n      lines'",
    "|\n        # three\n",
]
BRACES = ["{}", "[]", "{p: 1, q: [1,2], }", "[a,  'b']", "{p: {q: r},\n          s: t}", "[1, # one\n          2]"]
COMMENTS = ["", "# at the margin", "  # within", "            # further in"]


@st.composite
def mapping(draw: st.DrawFn, column: int, depth: int) -> list[str]:
    """The lines of a mapping or, with column 0 excepted, of a list, as people write them."""
    lines: list[str] = []
    is_list = column > 0 and draw(st.integers(0, 3)) == 0
    for key in draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=3, unique=True)):
        lines += draw(st.lists(st.sampled_from(COMMENTS), max_size=2))
        start = " " * column + ("-" if is_list else draw(st.sampled_from([key, f"'{key}'"])) + ":")
        if depth and not is_list and draw(st.booleans()):
            lines += [start + draw(st.sampled_from(["", " # of it"]))]
            lines += draw(mapping(column + draw(st.sampled_from([1, 2, 4])), depth - 1))
        else:
            value = draw(st.sampled_from(SCALARS + BRACES))
            lines += (start + draw(st.sampled_from([" ", "   "])) + value).split("\n")
    return lines


@st.composite
def documents(draw: st.DrawFn) -> str:
    text = "\n".join([*draw(mapping(0, 2)), *draw(st.lists(st.sampled_from(COMMENTS), max_size=2))])
    # a newline behind a block scalar that lacks one would change its value
    end = draw(st.sampled_from(["", "\n"])) if "|" not in text else "\n"
    return (text + end).replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def containers(content: Any) -> list[Any]:
    """Each mapping and list that is not empty; items of lists are changed as a whole."""
    below = content.values() if isinstance(content, dict) else ()
    found = [content] if content and isinstance(content, dict | list) else []
    return found + [each for value in below for each in containers(value)]


NEW = st.sampled_from(
    ["v", "1e9", "a, b", "p\nq", 1, True, None, {"k": 1}, InBraces(k="x: y"), (1, "a, b"), {"k": {"l": ""}}]
)


def common(texts: tuple[str, str]) -> int:
    return next((at for at, (one, two) in enumerate(zip(*texts, strict=False)) if one != two), min(map(len, texts)))


@examples(120, fast=30)
@given(documents(), st.data())
def test_what_is_added_is_one_piece_and_can_be_removed_to_the_same_bytes(text: str, data: st.DataObject) -> None:
    content = yaml.safe_load(text)
    wanted = copy.deepcopy(content)
    place = data.draw(st.sampled_from(containers(wanted)))
    at, new = data.draw(st.integers(0, len(place))), data.draw(NEW)
    if isinstance(place, list):
        # which of several equal items is new is not known
        assume(len(set(map(str, place))) == len(place))
        place.insert(at, "new" if isinstance(new, dict | tuple) else f"new {new}")
    else:
        entries = [*place.items()]
        place.clear()
        place.update([*entries[:at], ("new", new), *entries[at:]])
    more = edited_text(text, wanted, "f")
    assert common((text, more)) + common((text[::-1], more[::-1])) >= len(text)
    assert edited_text(more, content, "f") == text


@examples(120, fast=30)
@given(documents(), st.data())
def test_other_lines_stay_when_an_entry_is_removed(text: str, data: st.DataObject) -> None:
    content = yaml.safe_load(text)
    wanted = copy.deepcopy(content)
    place = data.draw(st.sampled_from(containers(wanted)))
    del place[data.draw(st.sampled_from([*place] if isinstance(place, dict) else range(len(place))))]
    try:
        less = edited_text(text, wanted, "f")
    except LayoutError:
        assert "#" in text or not wanted
        return
    assert yaml.safe_load(less) == wanted
    # {} and [] remain if nothing is left
    before, after = (re.sub(r" *(\{\}|\[\])", "", each.rstrip() + "\n") for each in (text, less))
    assert common((before, after)) + common((before[::-1], after[::-1])) >= len(after)
