"""Texts as parts of Markdown, as a reader of Markdown shows them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from cleanset.plumbing.markup import markdown_code, markdown_fence, markdown_text
from tests.properties import examples

READER = MarkdownIt("commonmark").enable("table")
LINES = st.text(alphabet="<>[]()`|\\&!/;:#ab x=\"'", max_size=12).map(str.strip)


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a_1|b", r"a_1\|b"), ("p < 0.0001, AT&T", "p < 0.0001, AT&T"), ("[1, 2] of 3", "[1, 2] of 3"),
        ("<b>", "&lt;b>"), ("&lt;", "&amp;lt;"), ("[x](y)", r"[x\](y)"), ("`a`", r"\`a\`"), (r"\[", r"\\["),
        ("x<", "x&lt;"),
    ],
)  # fmt: skip
def test_what_would_begin_something_is_escaped(text: str, markdown: str) -> None:
    assert markdown_text(text) == markdown


@examples(1000)
@given(LINES, LINES)
def test_a_text_is_shown_unchanged(one: str, other: str) -> None:
    """Also after another one, and in a table."""
    line = f"x {markdown_text(one)} {markdown_text(other)} x"
    inline = READER.parseInline(line)[0].children or []
    assert "".join(token.content for token in inline if token.type == "text") == f"x {one} {other} x"
    assert {token.type for token in inline} <= {"text"}
    row = READER.parse(f"| a | b |\n|---|---|\n| x{markdown_text(one)} | x{markdown_text(other)} |\n")
    assert sum(token.type == "td_open" for token in row) == 2


@examples(500)
@given(LINES.filter(bool))
def test_code_is_shown_unchanged(text: str) -> None:
    (token,) = READER.parseInline(markdown_code(text))[0].children or []
    assert (token.type, token.content) == ("code_inline", text)


def test_code_with_a_backtick_has_two_around_it_and_a_blank() -> None:
    assert [markdown_code(text) for text in ("a", "a`b", "``a")] == ["`a`", "`` a`b ``", "``` ``a ```"]


@examples(500)
@given(st.lists(LINES, min_size=1, max_size=4).map("\n".join))
def test_a_block_of_code_ends_at_its_fence(text: str) -> None:
    fence = markdown_fence(text)
    (token,) = READER.parse(f"{fence}yaml\n{text}\n{fence}\n")
    assert (token.type, token.content) == ("fence", f"{text}\n")
