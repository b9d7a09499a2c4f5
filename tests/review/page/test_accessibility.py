"""No rule of axe is violated in any state, in light and dark, in windows of 800 and 1,280 pixels."""

from pathlib import Path
from typing import Any

import pytest

from tests.report.pages import AXE

from .conftest import Open, Serve
from .reviewing import Reviewing
from .test_board import in_conflict

STATES = {
    "class": ((), ()), "every": (("m",), ("m",)), "reason": (("r",), ("Escape",)), "crop": (("x",), ("Escape",)),
    "zoom": (("Enter",), ("Escape",)), "help": (("?",), ("Escape",)), "filter": (("f",), ("Escape",)),
    "note": (("e",), ("Escape",)), "search": (("/",), ("Escape",)), "guidelines": (("h",), ("Escape",)),
    "verdicts": (("c", "r", "w", "u"), ()), "back": (("b",), ("Escape",)),
}  # fmt: skip
"""The keys that lead into each state, and out of it; the last two follow from the first verdicts."""
DIALOGS = ("crop", "zoom", "help", "note", "search", "guidelines", "back")
CHANGES_NOTHING_ELSE = ("help", "note", "search", "guidelines", "back")
"""Dialogs that leave the page behind them unchanged: only the dialog is checked."""


def violations(at: Reviewing, inside: str = "html") -> list[str]:
    """The rules that are violated inside an element, each with its first element."""
    if not at.page.evaluate("() => window.axe !== undefined"):
        at.page.evaluate(AXE)
    found: list[dict[str, Any]] = at.page.evaluate(
        "async (inside) => (await axe.run(inside, { resultTypes: ['violations'] })).violations", inside
    )
    return [f"{each['id']}: {each['nodes'][0]['html'][:100]}" for each in found]


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        pytest.param(1280, "light", marks=pytest.mark.long),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)
            for each in ((800, "dark"), (800, "light"), (1280, "dark"))
        ),
    ],
)
def test_no_violation_in_any_state(start: Serve, visit: Open, width: int, scheme: Any) -> None:
    at = visit(start())
    at.resize(width, 800)
    at.page.emulate_media(color_scheme=scheme)
    for state, (into, out) in STATES.items():
        at.press(*into)
        at.page.wait_for_function("document.getAnimations().every((each) => each.playState !== 'running')")
        assert violations(at, "[role=dialog]" if state in CHANGES_NOTHING_ELSE else "html") == [], state
        at.page.wait_for_function(
            "count => document.querySelectorAll('[role=dialog][aria-label]').length === count",
            arg=int(state in DIALOGS),
        )
        at.press(*out)
    assert at.page.get_attribute("html", "lang") == "en-US"


@pytest.mark.long
def test_none_at_the_board_and_at_the_end(edition: Path, start: Serve, visit: Open) -> None:
    _, at = in_conflict(edition, start, visit)
    for scheme in ("light", "dark"):
        at.page.emulate_media(color_scheme=scheme)
        for width in (800, 1280):
            at.resize(width, 800)
            assert violations(at) == []
    at.press("x")
    at.page.wait_for_selector("[data-look=crop][data-ready]", state="attached")
    assert violations(at) == []
    at.press("Escape", "2")
    at.type_into_dialog("the frame")
    at.page.wait_for_selector("[data-mode=end]")
    at.page.wait_for_selector(".q-dialog__inner", state="detached")
    assert violations(at) == []


CUT_CONFIDENCES = """
() => [...document.querySelectorAll("[data-card] .models i:last-child")].filter((each) => {
  const own = each.getBoundingClientRect(), card = each.closest("[data-card]").getBoundingClientRect();
  return own.right > card.right + 1 || own.bottom > card.bottom + 1 || each.scrollWidth > each.clientWidth + 1;
}).length
"""


@pytest.mark.long
def test_a_page_at_200_percent_and_a_window_that_is_too_narrow(start: Serve, visit: Open) -> None:
    at = visit(start())
    for width, height in ((640, 400), (640, 512)):
        at.resize(width, height)
        assert at.page.evaluate(CUT_CONFIDENCES) == 0
        assert at.page.is_hidden("#narrow")
    for width in (330, 639):
        at.resize(width, 800)
        assert "too narrow" in at.page.inner_text("#narrow")
        assert at.page.evaluate(
            "() => document.querySelector('#view h1').getBoundingClientRect().top"
            " >= document.querySelector('#narrow').getBoundingClientRect().bottom"
        )
    assert violations(at) == []
