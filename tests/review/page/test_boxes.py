"""In every state of the review page nothing is cut, covered, outside the window, too small or too pale."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.boxes import WINDOWS, Window, problems

from .conftest import Open, Serve
from .reviewing import Reviewing
from .test_board import in_conflict

DIALOG = "[role=dialog]"


class State(NamedTuple):
    """A state of the page: the keys that lead into it and out of it, and the part that is looked at."""

    into: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    inside: str = "body"
    waits_for: str = "#view"


STATES = {
    "class": State(),
    "every candidate": State(("m",), ("m",)),
    "a key without a meaning": State(("q",), ("ArrowRight", "ArrowLeft")),
    "reasons": State(("r",), ("Escape",)),
    "crop": State(("x",), ("Escape",), DIALOG, "[data-look=crop][data-ready]"),
    "zoom": State(("Enter",), ("Escape",), DIALOG, "[data-look=zoom][data-ready]"),
    "keys": State(("?",), ("Escape",), DIALOG),
    "filter": State(("f",), ("Escape",)),
    "filter by reason": State(("f", "r"), ("Escape",)),
    "filter by hint": State(("f", "h"), ("Escape",)),
    "nothing found by the filter": State(("f", "c")),
    "note": State(("e",), ("Escape",), DIALOG, ".q-dialog textarea"),
    "search": State(("/",), ("Escape",), DIALOG, ".q-dialog input"),
    "guidelines": State(("h",), ("Escape",), DIALOG),
    "verdicts": State(("c", "r", "w", "u")),
    "looking back": State(("b",), ("Escape",), DIALOG),
}
"""The last two follow from the first verdicts."""
DESKTOPS = [window for window in WINDOWS if window.width >= 640]
PHONES = [window for window in WINDOWS if window.width < 640]
CUT = ".q-card.note { display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow: hidden; }"
"""As a rule for the lines of notes once read."""


def look_at(at: Reviewing, title: str, inside: str = "body", windows: list[Window] = DESKTOPS) -> list[str]:
    return problems(
        at.page,
        f"review page, {title}",
        inside=inside,
        windows=windows,
        lay_out=lambda: at.page.evaluate("async () => (await import('./static/grid.js')).layOut()"),
    )


@pytest.mark.long
def test_every_state(start: Serve, visit: Open) -> None:
    at = visit(start())
    found = []
    for title, state in STATES.items():
        at.press(*state.into)
        at.page.wait_for_selector(state.waits_for, state="attached")
        found += look_at(at, title, state.inside)
        at.resize(1280, 800)
        at.press(*state.out)
    assert not found, "\n".join(found)


@pytest.mark.long
def test_the_board_and_the_end(edition: Path, start: Serve, visit: Open) -> None:
    _, at = in_conflict(edition, start, visit)
    found = look_at(at, "board")
    at.resize(1280, 800)
    at.press("2")
    at.page.wait_for_selector(".q-dialog textarea")
    found += look_at(at, "note of the board", DIALOG)
    at.type_into_dialog("the frame")
    at.page.wait_for_selector("[data-mode=end]")
    at.page.wait_for_selector(".q-dialog__inner", state="detached")
    found += look_at(at, "end")
    assert not found, "\n".join(found)


@pytest.mark.long
def test_the_note_and_a_phone(start: Serve, visit: Open) -> None:
    """Save and Cancel, once cut in half by a rule for the lines of notes: with that rule, they are found."""
    at = visit(start())
    assert look_at(at, "too narrow", "#narrow", PHONES) == []
    at.resize(1280, 800)
    at.press("e")
    at.page.wait_for_selector(".q-dialog textarea")
    assert look_at(at, "note", DIALOG, DESKTOPS[:1]) == []
    at.page.add_style_tag(content=CUT)
    found = look_at(at, "note", DIALOG, DESKTOPS[:1])
    beginning = "review page, note, 1280 x 800, light: "
    assert all(each.startswith(beginning) for each in found)
    for name in ("save", "cancel"):
        assert any(each.startswith(f"{beginning}cut in half: button") and f'{name}"' in each for each in found), found
