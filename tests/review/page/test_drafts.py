"""What is typed or drawn stays until it is saved; a question moves where it is clicked; no key is ignored silently."""

from pathlib import Path

import pytest

from tests.browser_tab import PATIENCE, Server

from .conftest import Open, Serve
from .reviewing import Reviewing, TabAlone, reviews

GOLDFISH = "n01443537"
FIELD = ".q-dialog textarea"

DECODES_WHEN_TOLD = """
window.decoding = [];
HTMLImageElement.prototype.decode = () => new Promise((go) => decoding.push(go));
"""


def closed(at: Reviewing) -> None:
    at.page.wait_for_selector(".q-dialog__inner", state="detached", timeout=PATIENCE)


def open_again(at: Reviewing, text: str) -> None:
    """Until the note's dialog is there with this text."""
    at.page.wait_for_function(
        "text => document.querySelector('.q-dialog textarea')?.value === text", arg=text, timeout=PATIENCE
    )


@pytest.mark.exhaustive
def test_a_note_stays_until_it_is_saved_by_mouse(edition: Path, start: Serve, visit: Open) -> None:
    server = start(alone=True)
    at = visit(server)
    first, second = at.shown[:2]
    before = at.of_view("pressed")
    at.page.click(f"[data-card='{second}']")
    at.answered(before)
    at.press("e")
    at.page.locator(FIELD).fill("a stamp")
    at.page.mouse.click(600, 700)
    open_again(at, "a stamp")
    at.page.reload()
    open_again(at, "a stamp")
    assert second in at.page.inner_text(".q-dialog .title")
    at.page.locator(FIELD).fill("a stamp, bottom right")
    at.page.click(".q-dialog button[data-key=Enter]")
    closed(at)
    at.page.wait_for_selector(f"[data-card='{second}'] .unsaved")
    server.kill()
    at.page.evaluate("window.isLost = true")
    start(alone=True)
    at.page.wait_for_function("!window.isLost", timeout=PATIENCE)
    at.page.wait_for_selector(f"[data-card='{second}'] .unsaved:has-text('a stamp, bottom right')", timeout=PATIENCE)
    while at.focus != second:
        at.press("ArrowRight")
    at.press("u")
    assert reviews(edition) == {GOLDFISH: {second: {"verdict": "unsure", "note": "a stamp, bottom right"}}}
    at.press("ArrowLeft", "e")
    at.page.locator(FIELD).fill("not meant")
    at.page.click(".q-dialog button[data-key=Escape]")
    closed(at)
    at.page.reload()
    at.ready()
    assert at.page.locator(".unsaved").count() == 0
    assert set(reviews(edition)[GOLDFISH]) == {second} != {first}


@pytest.mark.long
def test_a_drawn_box_stays_until_it_is_saved(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    second = at.shown[1]
    at.press("ArrowRight", "x")
    at.draw([30, 40, 300, 200])
    box = at.box()
    at.page.reload()
    at.page.wait_for_selector("[data-look=crop][data-ready]", state="attached", timeout=PATIENCE)
    assert (at.focus, at.box()) == (second, box)
    at.press("w", "v", "Enter")
    assert reviews(edition)[GOLDFISH][second]["crop"] == box
    at.page.reload()
    at.ready()
    at.press("ArrowRight")
    assert at.mode == "class"


@pytest.mark.long
def test_a_click_moves_the_question(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    first, third = at.shown[0], at.shown[2]
    at.press("r")
    assert "Reject card 1 because of" in at.page.inner_text("footer")
    before = at.of_view("pressed")
    at.page.click(f"[data-card='{third}']")
    at.answered(before)
    assert (at.mode, at.focus) == ("reason", third)
    assert "Reject card 3 because of" in at.page.inner_text("footer")
    at.press("b")
    assert reviews(edition) == {GOLDFISH: {third: {"verdict": "reject", "reason": "border"}}}
    at.press("f")
    before = at.of_view("pressed")
    at.page.click(f"[data-card='{first}']")
    at.answered(before)
    assert (at.mode, at.focus) == ("class", first)


@pytest.mark.long
def test_undo_works_after_a_reload(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    at.press("c", "c")
    at.page.reload()
    at.ready()
    at.press("z", "z")
    assert (at.notice, reviews(edition)) == ("Undone: clean.", {})
    at.press("z")
    assert at.notice.startswith("Nothing to undo")


@pytest.mark.long
def test_a_duplicate_of_a_tab_has_its_own_steps(edition: Path, start: Serve, visit: Open) -> None:
    """A page that it opens has a copy of what it has stored, as a duplicate has."""
    at = visit(start())
    first, second = at.shown[:2]
    at.press("c")
    with at.page.expect_popup() as opened:
        at.page.evaluate("void open(location.href)")
    copy = Reviewing(opened.value, at.page.url)
    copy.press("z")
    assert copy.notice.startswith("Nothing to undo")
    while copy.focus != second:
        copy.press("ArrowRight")
    copy.press("u")
    at.press("z")
    assert reviews(edition) == {GOLDFISH: {second: {"verdict": "unsure"}}} != {GOLDFISH: {first: {}}}


@pytest.mark.long
def test_a_draft_does_not_open_in_another_class(start: Serve, visit: Open) -> None:
    """The reviewer may continue before its image is there; it opens once they come back."""
    at = visit(start(), script=DECODES_WHEN_TOLD)
    second = at.shown[1]
    at.press("ArrowRight", "e")
    at.page.locator(FIELD).fill("a stamp")
    at.page.reload()
    at.ready()
    at.page.wait_for_function("decoding.length > 0")
    at.press("n")
    at.page.evaluate("decoding.splice(0).forEach((go) => go())")
    at.press("?", "Escape")
    assert (at.mode, at.wnid != GOLDFISH) == ("class", True)
    at.press("p")
    at.page.wait_for_function("decoding.length > 0")
    at.page.evaluate("decoding.splice(0).forEach((go) => go())")
    open_again(at, "a stamp")
    assert second in at.page.inner_text(".q-dialog .title")


def test_search_and_class_count_alike(start: Serve, visit: Open) -> None:
    at = visit(start())
    shown = at.page.inner_text("#view .state")
    assert shown == f"{len(at.shown)} to review"
    at.press("/")
    at.page.locator(".q-dialog input").fill(GOLDFISH)
    found = at.page.wait_for_selector(".q-item--active .q-item__section--side", timeout=PATIENCE)
    assert found is not None
    assert found.inner_text() == shown
    at.page.locator(".q-dialog input").fill("no such class")
    at.page.wait_for_selector(".hits:has-text('No class found.')", timeout=PATIENCE)


@pytest.mark.parametrize(
    ("before", "key", "told"),
    [
        ((), "y", "y does nothing here; ? shows the keys."), ((), "9", "9 does nothing here; ? shows the keys."),
        ((), "d", "Nothing to withdraw"), ((), "Escape", "nothing is open"), ((), "q", "q magnifies while"),
        (("r",), "ArrowLeft", "ArrowLeft is not the key of a reason"), (("x",), "j", "j does nothing while you draw"),
        (("b",), "x", "x does nothing in the list of your verdicts"), (("f",), "y", "y is not the key of a filter"),
        (("Enter",), "7", "7 does nothing here"),
    ],
)  # fmt: skip
def test_a_key_that_does_nothing_is_reported(tab: TabAlone, before: tuple[str, ...], key: str, told: str) -> None:
    html = tab.type(*before, key)
    assert told in tab.said
    assert tab.said in "".join(html.values())


def test_no_key_is_ignored_at_the_end(edition: Path) -> None:
    tab = TabAlone(edition, at=None)
    while not tab.ended:
        tab.type("s") if tab.mode == "class" and not tab.cursor.status.questions else tab.type("a")
    for key in ("c", "a", "x", "r", "u", "e", "d", "i", "m", "s", "Enter", "ArrowLeft", "Escape", "5"):
        tab.type(key)
        assert "as no class is shown" in tab.said, key


CYRILLIC = {"c": ("с", "KeyC"), "r": ("к", "KeyR"), "b": ("и", "KeyB"), "?": (",", "Slash")}


@pytest.mark.long
def test_letters_of_other_alphabets(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    first, second = at.shown[:2]
    keyboard = at.page.context.new_cdp_session(at.page)

    def press(key: str, code: str) -> None:
        before = at.of_view("pressed")
        for kind in ("keyDown", "keyUp"):
            keyboard.send("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": code})
        at.answered(before)

    at.look()
    for letter in ("c", "r", "b"):
        press(*CYRILLIC[letter])
    press("λ", "KeyL")
    assert "not the key" in at.notice or at.notice.startswith("l does nothing")
    press(";", "KeyQ")  # on a Greek keyboard
    assert "held down" in at.notice
    # two characters at once; a mark, which joins the letter before; Hindi
    for key, code, told in (("\N{ARABIC LETTER LAM}\N{ARABIC LETTER ALEF}", "KeyY", "y does nothing"),
                            ("\N{THAI CHARACTER MAI HAN-AKAT}", "KeyY", "y does nothing"),
                            ("\N{DEVANAGARI VOWEL SIGN AA}", "KeyQ", "q magnifies while")):  # fmt: skip
        press(key, code)
        assert at.notice.startswith(told)
    assert reviews(edition) == {
        GOLDFISH: {first: {"verdict": "clean"}, second: {"verdict": "reject", "reason": "border"}}
    }


@pytest.mark.long
def test_other_keys_are_the_browsers_and_none_of_the_pages_is_silent(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    before = at.of_view("pressed")
    for key in ("F6", "CapsLock", "Alt", "ContextMenu"):
        at.page.keyboard.press(key)
    at.press("Home")
    assert int(at.of_view("pressed")) == int(before) + 1
    assert at.notice == "Home does nothing here; ? shows the keys."
    at.page.mouse.move(5, 5)
    at.press("q")
    assert "magnifies" in at.notice
