"""In every state of the judges' page nothing is cut, covered, beside the window, too small or too pale."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.boxes import problems
from tests.browser_tab import Pages, Server
from tests.studies.contest.judging_page import ADA, Judging, serve, unjudged

FRUIT = ("4", "1")
"""Definitely no creature, definitely a fruit."""
SQUARE = [[30, 20], [165, 25], [160, 170], [40, 165]]
NARROW_CHOICES = ".choices button { height: 20px; overflow: hidden; }"
WIDE_RULES = ".words { min-width: 1400px; }"


@pytest.fixture
def serving(repository: Path, tmp_path: Path) -> Iterator[Server]:
    found = serve(unjudged(repository, tmp_path), ADA, "--port", "0")
    yield found
    found.kill()


def look_at(at: Judging, title: str) -> list[str]:
    found = problems(at.page, f"judges' page, {title}")
    at.page.set_viewport_size({"width": 1280, "height": 800})
    return found


@pytest.mark.long
def test_from_the_instructions_to_the_end(serving: Server, file_pages: Pages) -> None:
    at = Judging(file_pages.take(), serving.address)
    found = look_at(at, "instructions")
    wide = at.page.add_style_tag(content=WIDE_RULES)
    assert any("beside the window" in each for each in look_at(at, "instructions"))
    wide.evaluate("each => each.remove()")
    at.press("Enter")
    found += look_at(at, "first question")
    narrow = at.page.add_style_tag(content=NARROW_CHOICES)
    assert any("cut in half" in each for each in look_at(at, "first question"))
    narrow.evaluate("each => each.remove()")
    at.press(FRUIT[0])
    found += look_at(at, "second question")
    at.press(FRUIT[1])
    at.draw(SQUARE[:2])
    at.press("Enter")
    found += look_at(at, "an outline with two corners")
    at.draw(SQUARE[2:])
    found += look_at(at, "outline")
    at.press("Enter")
    found += look_at(at, "statement")
    at.press("y", "n", "x")
    found += look_at(at, "a key without a meaning")
    at.press("y", *("4", "4") * 3)
    assert at.step == "end"
    found += look_at(at, "end")
    assert not found, "\n".join(found)
