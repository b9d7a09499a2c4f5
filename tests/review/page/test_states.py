"""The states of the review page, its modes: late keys in each, and what people find by reload, Back, in another tab."""

from pathlib import Path

import pytest

from cleanset.review.page.actions import MODES, Mode
from tests.browser_tab import PATIENCE
from tests.review.texts import GOLDFISH, sent

from .conftest import Open, Serve
from .reviewing import TabAlone, reviews
from .test_actions import INTO, LADYBUG

LATE = (*"acuxridz123456789", "Enter", "guess", "reason")
"""Keys that give, change or take back verdicts in some mode."""

OVER: tuple[Mode, ...] = ("zoom", "crop", "help", "guidelines", "back", "note", "search")
"""Modes that cover the class: the browser's Back leaves them, and stays on the class."""


@pytest.mark.parametrize("mode", MODES)
def test_a_late_key_saves_nothing_in_any_mode(edition: Path, tab: TabAlone, mode: Mode) -> None:
    """Pressed on another class, or before the image was in sight; also where another tab has ended the question."""
    if mode == "end":
        tab.base = "end"
    for key in LATE:
        while tab.mode != ("end" if mode == "end" else "class"):
            tab.close()
            tab.base = "class"
        if mode != "end":
            tab.type(*INTO[mode])
        assert tab.mode == mode
        before = reviews(edition)
        images = tab.cursor.images()
        for subject, shown in ((LADYBUG, 9.0), (GOLDFISH, 0.1)):
            tab.press(sent(key, images, None, images[0], 0.1, subject=subject, shown=shown, reason="w"))
        assert reviews(edition) == before, key


@pytest.mark.long
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "end"])
def test_reload_back_and_another_tab_in_each_mode(edition: Path, start: Serve, visit: Open, mode: Mode) -> None:
    """Back leaves what covers the class, or goes to the class before; a reload and another tab show the class."""
    server = start()
    at = visit(server)
    at.go(LADYBUG)

    def is_shown(wnid: str) -> None:
        at.page.wait_for_function(
            "wnid => { const view = document.querySelector('#view');"
            " return view?.dataset.classKey === wnid && view.dataset.mode === 'class' }",
            arg=wnid, timeout=PATIENCE,
        )  # fmt: skip

    at.press(*INTO[mode])
    assert at.mode == mode
    before = reviews(edition)
    at.page.go_back()
    is_shown(LADYBUG if mode in OVER else GOLDFISH)
    at.go(LADYBUG)
    at.press(*INTO[mode])
    at.page.reload()
    at.ready()
    is_shown(LADYBUG)
    other = visit(server, f"class={LADYBUG}")
    assert (other.mode, other.wnid) == ("class", LADYBUG)
    assert mode == "back" or reviews(edition) == before == {}
