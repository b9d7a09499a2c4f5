"""The table of actions: each does on the page what its words say, in the modes that have it, and the help lists it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleanset.edition.params import KEYS_OF_REASONS
from cleanset.review.page.actions import (
    ANY_KEY,
    BY_KEYS,
    ENTRIES,
    FILTERS,
    IN_TEXT,
    MODES,
    TABLE,
    TYPING,
    Action,
    HelpSection,
    Mode,
    action_of,
)
from cleanset.review.page.tab import HANDLERS
from cleanset.review.reasons import REASON_KEYS
from tests.browser_tab import PATIENCE, Server
from tests.review.texts import GOLDFISH

from .conftest import Open, Serve
from .reviewing import Reviewing, TabAlone, change_review, reviews
from .test_board import in_conflict
from .test_reviewing import with_one_model

LADYBUG = "n02165456"
SLOW_SECONDS = 4.0
"""Seconds per image, more than any machine takes from opening a class to the key that stops waiting for them."""

LINES = [
    ("c", "accept the image as clean"),
    (
        "a",
        "accept the rest of the class as clean: every image that is whole on the screen and that nobody has rejected",
    ),
    ("x", "crop: draw the box to keep"),
    ("r", "reject: then press the key of the reason"),
    ("u", "you are unsure"),
    ("z or ⌫", "undo your last step in this tab; press it again for the one before"),
    ("← → ↑ ↓ or 1 … 9", "move to another image"),
    ("Enter or Space", "enlarge the image, and back"),
    ("n or PgDn", "next class"),
    ("h", "read the guidelines, with examples of each reason"),
    ("Shift+1 … 9", "reject that image for the reason shown next to its ⇧; Shift+click does the same"),
    ("Shift+reason", "reject for the reason with that key, or change the reason"),
    ("i", "reject because it shows another class, and name that class"),
    ("d", "withdraw your verdict"),
    ("e", "write a note"),
    ("q held down", "magnify the image under the mouse, pixel by pixel"),
    ("wheel or + −", "enlarged or cropping: zoom in and out"),
    ("0 1 2 4", "enlarged or cropping: whole image, 100 %, 200 %, 400 %"),
    ("Shift+arrows", "enlarged: move the image"),
    ("m", "show all candidates, or only those you are asked about"),
    ("b", "look at your last verdicts again"),
    ("p or PgUp", "previous class"),
    ("s", "skip the class; it comes back at the end"),
    ("/", "search for a class by name or wnid"),
    (
        "f",
        "show only some classes: all, to review, boxes to draw, short, conflicts, with my verdicts; "
        "or by reason or hint",
    ),
    ("the browser's Back", "the class that was shown before"),
    ("mouse", "draw, move and resize the box"),
    ("Space+mouse", "move the image; the box stays on it"),
    ("j", "board only: show the next of the boxes in conflict"),
    ("arrows", "move the box by a pixel (by five while held down)"),
    ("Shift+arrows", "move the right or bottom edge"),
    ("Ctrl+arrows", "move the left or top edge"),
    ("p", "draw the proposed box again"),
    ("v", "confirm that the object is fully visible in the box; ends when the box changes"),
    ("Enter Esc", "save; cancel"),
    *((key, reason.replace("_", " ")) for key, reason in REASON_KEYS.items()),
]
"""The lines of the help, in their order: the ten that matter first, then the others by section."""

OWN_KEYS = {key: f"own_{key}" for key in KEYS_OF_REASONS}
KEYS = {**REASON_KEYS, **OWN_KEYS}
"""All keys that a reason may have, with the reasons in the tests of actions."""

ELSEWHERE = {
    HelpSection.FOOTER: ("", "footer", "? help"),
    HelpSection.FILTER: ("f", "footer", "m with my verdicts"),
    HelpSection.BACK: (
        "b",
        "#overlay p.foot:last-child",
        "← → ↑ ↓ another verdict · ↵ go to that class; b comes back · n p",
    ),
    HelpSection.TEXT: ("h", "#overlay p.foot", "↑ ↓ Space scroll"),
    HelpSection.CLOSE: ("h", "#overlay p.foot", "Esc close"),
    HelpSection.DIALOG: ("e", ".q-dialog", "↵ save Esc cancel"),
}
"""The sections that are not in the help: the key and the element that show them, and some of their words."""


def words(text: str) -> str:
    return " ".join(text.split())


def test_each_action_is_there_once_and_is_carried_out() -> None:
    assert [entry.action for entry in TABLE] == list(ENTRIES)
    assert set(ENTRIES) == set(Action)
    in_browser = {entry.action for entry in TABLE if any(binding.in_browser for binding in entry.bindings)}
    in_dialogs = {Action.SAVE_TEXT, Action.LEAVE_TEXT, Action.KEEP_NOTE}
    by_mouse = {entry.action for entry in TABLE if not entry.bindings}
    assert {*HANDLERS, Action.REJECT_FOR_REASON, *in_browser, *in_dialogs, *by_mouse} == set(Action)
    assert by_mouse == {Action.DRAW_BOX}


@pytest.mark.long
def test_the_help_lists_every_action(unchanged: Server, visit: Open) -> None:
    """Those of the cards and of a crop; the others are described where they are."""
    at = visit(unchanged)
    at.press("?")
    cells = [words(each) for each in at.page.locator("#overlay td").all_inner_texts()]
    assert list(zip(cells[::2], cells[1::2], strict=True)) == LINES
    assert words(at.page.inner_text("#overlay .sheet > p")).endswith("↑ ↓ Space scroll, Esc closes this.")
    titles = at.page.locator("#overlay h2").all_inner_texts()
    at.press("Escape")
    for key, element, text in ELSEWHERE.values():
        at.press(*key)
        at.page.wait_for_selector(element)
        assert text in words(at.page.inner_text(element))
        at.press(*key and ["Escape"])
    # WAIT is a line whose words the test of its action reads
    elsewhere = {*ELSEWHERE, HelpSection.WAIT, HelpSection.PAGE}
    assert titles[0] == "Begin with these"
    assert {entry.line.section for entry in TABLE} - elsewhere == set(titles[1:])


SINGLE = [*"abcdefghijklmnopqrstuvwxyz0123456789+=-/?ß§ä", " ", "Enter", "Escape", "Backspace", "Delete", "Home", "End"]
INTO: dict[Mode, tuple[str, ...]] = {
    "class": (), "zoom": ("Enter",), "reason": ("r",), "crop": ("x",), "filter": ("f",), "filter_by_reason": ("f", "r"),
    "filter_by_hint": ("f", "h"), "back": ("c", "b"), "help": ("?",), "guidelines": ("h",), "note": ("e",),
    "search": ("/",),
}  # fmt: skip
"""The keys that lead into each mode; into the end leads the last verdict."""


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_a_key_without_an_action_is_reported_and_changes_nothing(edition: Path, tab: TabAlone, mode: Mode) -> None:
    if mode == "end":
        tab.base = "end"
    else:
        tab.type(*INTO[mode])
    assert tab.mode == mode
    before = reviews(edition)
    for key in SINGLE:
        if action_of(mode, key) is None:
            tab.type(key)
            if mode in TYPING:
                assert (tab.mode, tab.said) == (mode, "")
                continue
            assert re.search(r"(does nothing|is not the key of)", tab.said), key
            assert not tab.failed
            assert tab.mode == ("class" if mode.startswith("filter") else mode)
            if mode.startswith("filter"):
                tab.type(*INTO[mode])
    assert mode not in IN_TEXT or action_of(mode, ANY_KEY) is Action.CLOSE
    assert reviews(edition) == before


class Stage:
    """A tab in a browser at the class GOLDFISH, its first image in focus, without a verdict, and what is saved."""

    def __init__(self, edition: Path, at: Reviewing) -> None:
        self.at = at
        self.page = at.page
        self._edition = edition

    @property
    def saved(self) -> dict[str, dict[str, Any]]:
        """The verdicts by image id, without how the images were seen: one that was opened before stays so."""
        return reviews(self._edition, without=("sha256", "seen")).get(GOLDFISH, {})

    def begin(self) -> None:
        """Undo all that the action before has changed."""
        if self.at.mode != "class":
            self.at.press("Escape")
        while reviews(self._edition):
            self.at.press("z")
        self.at.go(GOLDFISH)
        if self.at.focus != self.at.shown[0]:
            self.at.press("1")
        assert (self.at.mode, self.at.wnid, self.at.focus) == ("class", GOLDFISH, self.at.shown[0])

    def press_each(self, action: Action, mode: Mode, check: Callable[[str], None]) -> None:
        """Press each key that an action has in a mode, and check what it did; `check` leads back."""
        for binding in ENTRIES[action].bindings:
            for key in binding.keys if mode in binding.modes else ():
                if re.fullmatch(r"Shift\+[a-z]", key) and key[-1] not in KEYS:
                    continue
                if not re.fullmatch(r"[a-z]{4,}", key):  # else a click
                    self.at.press(on_keyboard(key))
                    check(key)

    def until(self, condition: str) -> None:
        self.page.wait_for_function(condition, timeout=PATIENCE)


def on_keyboard(key: str) -> str:
    """A key of the table as Playwright names it."""
    key = re.sub(r"^Shift\+([1-9])$", r"Shift+Digit\1", key)
    key = re.sub(r"^Shift\+([a-z])$", lambda found: f"Shift+Key{found[1].upper()}", key)
    return key.replace("Ctrl+", "Control+").replace(" ", "Space")


Check = Callable[[Stage], None]
CHECKS: dict[Action, Check] = {}


def does(*actions: Action) -> Callable[[Check], Check]:
    """Say which actions a function tries."""

    def entered(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(actions, check))
        return check

    return entered


@does(Action.TAKE_CLEAN, Action.BE_UNSURE, Action.UNDO, Action.TAKE_BACK)
def verdicts(on: Stage) -> None:
    first = on.at.focus
    for action, verdict in ((Action.TAKE_CLEAN, "clean"), (Action.BE_UNSURE, "unsure")):
        for mode, into in (("class", ()), ("zoom", ("Enter",))):
            for out in ("z", "Backspace", "d"):
                on.begin()
                on.at.press(*into, ENTRIES[action].bindings[0].keys[0])
                assert on.saved == {first: {"verdict": verdict}}
                if out == "d":
                    on.at.press(*(("Escape",) if mode == "zoom" else ()), "1")
                on.at.press(out)
                assert on.saved == {}
                on.begin()


@does(Action.TAKE_REST)
def rest(on: Stage) -> None:
    shown = on.at.shown
    on.at.look_for_long(SLOW_SECONDS * len(shown) + 1)
    on.at.press("a")
    assert on.saved == {each: {"verdict": "clean"} for each in shown}
    assert on.at.wnid != GOLDFISH
    on.begin()
    on.at.press("Enter", "a")
    assert on.at.notice == "a works on the images side by side: press Esc to go back to them."


@does(Action.STOP_WAITING)
def stop_waiting(on: Stage) -> None:
    for binding in ENTRIES[Action.STOP_WAITING].bindings:
        for key in binding.keys:
            on.page.reload()  # the time begins again
            on.at.ready()
            on.at.look(0.6)
            on.page.keyboard.press("a")
            on.page.wait_for_selector("#wait", timeout=PATIENCE)
            assert on.page.inner_text("#wait").endswith("Esc stops it.")
            on.page.keyboard.press(key)
            on.page.wait_for_selector("#wait", state="detached", timeout=PATIENCE)
            on.at.press("ArrowRight")  # answered after all that was sent
            assert on.saved == {}


@does(Action.BEGIN_REJECTION, Action.CHOOSE_REASON, Action.CANCEL)
def rejection(on: Stage) -> None:
    first = on.at.focus
    on.at.press("r", "Escape")
    assert (on.at.mode, on.saved) == ("class", {})

    def saved(key: str) -> None:
        assert on.saved == {first: {"verdict": "reject", "reason": KEYS[key]}}
        on.at.press("z", "r")

    on.at.press("r")
    on.press_each(Action.CHOOSE_REASON, "reason", saved)
    on.at.press("Escape", "Enter", "r", "Escape")
    assert on.at.mode == "zoom"


@does(Action.REJECT_BY_GUESS)
def guesses(on: Stage) -> None:
    on.until("[...document.querySelectorAll('[data-likeliest]')].every(each => each.dataset.likeliest)")
    shown = on.at.shown
    reason = {each: on.page.get_attribute(f"[data-card='{each}']", "data-likeliest") for each in shown}

    def saved(key: str) -> None:
        image = shown[int(key[-1]) - 1]
        assert on.saved == {image: {"verdict": "reject", "reason": reason[image]}}
        on.begin()

    for number in range(1, len(shown)):  # the last of a class brings another one
        on.at.press(f"Shift+Digit{number}")
        saved(str(number))
    before = on.at.of_view("pressed")
    on.page.click(f"[data-card='{shown[1]}']", modifiers=["Shift"])
    on.at.answered(before)
    saved("2")


@does(Action.REJECT_FOR_REASON)
def reasons(on: Stage) -> None:
    first = on.at.focus

    def saved(key: str) -> None:
        assert on.saved == {first: {"verdict": "reject", "reason": KEYS[key[-1]]}}
        on.at.press("z")

    on.press_each(Action.REJECT_FOR_REASON, "class", saved)
    on.at.press("Shift+KeyJ")
    assert on.at.notice == "Not saved: that is not the key of a reason: press ? to see them"


@does(Action.NAME_CLASS, Action.SAVE_TEXT, Action.LEAVE_TEXT, Action.WRITE_NOTE, Action.SEARCH_CLASS)
def dialogs(on: Stage) -> None:
    first = on.at.focus
    for key in ("i", "e", "/"):
        on.at.press(key)
        on.page.locator(".q-dialog input, .q-dialog textarea").press("Escape")
        on.until("document.querySelector('#view').dataset.mode === 'class'")
    assert on.saved == {}
    on.at.press("i")
    on.at.type_into_dialog(LADYBUG, found=LADYBUG)
    on.until("document.querySelector('#view').dataset.mode === 'class'")
    assert on.saved == {first: {"verdict": "reject", "reason": "wrong_class", "correct_class": LADYBUG}}
    on.begin()
    on.at.press("e")
    on.at.type_into_dialog("a stamp")
    on.page.wait_for_selector(".q-dialog__inner", state="detached", timeout=PATIENCE)
    on.at.press("u")
    assert on.saved == {first: {"verdict": "unsure", "note": "a stamp"}}
    on.begin()
    on.at.go(LADYBUG)
    assert on.at.wnid == LADYBUG


@does(Action.MOVE_FOCUS, Action.FOCUS_NUMBER, Action.FOCUS_CARD)
def focus(on: Stage) -> None:
    shown = on.at.shown
    for key, image in (("ArrowRight", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("ArrowLeft", 0), ("ArrowLeft", -1)):
        on.at.press(key)
        assert on.at.focus == shown[image]

    def focused(key: str) -> None:
        if int(key) <= len(shown):
            assert on.at.focus == shown[int(key) - 1]
        else:
            assert on.at.notice == f"{key} does nothing here; ? shows the keys."

    on.press_each(Action.FOCUS_NUMBER, "class", focused)
    before = on.at.of_view("pressed")
    on.page.click(f"[data-card='{shown[1]}']")
    on.at.answered(before)
    assert on.at.focus == shown[1]
    on.at.press("Enter", "ArrowRight", "Escape")
    assert (on.at.mode, on.at.focus) == ("class", shown[2])


@does(Action.TOGGLE_ZOOM, Action.LEAVE_ZOOM)
def zoom(on: Stage) -> None:
    for into, out in (("Enter", "Enter"), ("Space", "Space"), ("Enter", "Escape")):
        on.at.press(into)
        assert on.at.mode == "zoom"
        on.at.press(out)
        assert on.at.mode == "class"
    on.at.press("Escape")
    assert on.at.notice == "Escape does nothing here: nothing is open."


@does(Action.MAGNIFY)
def magnifier(on: Stage) -> None:
    place = on.page.locator("[data-card] img").first.bounding_box()
    assert place is not None
    on.page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    on.page.keyboard.down("q")
    on.page.wait_for_selector("#magnifier", state="attached", timeout=PATIENCE)
    on.page.keyboard.up("q")
    on.page.wait_for_selector("#magnifier", state="detached", timeout=PATIENCE)
    on.page.mouse.move(0, 0)
    on.at.press("q")
    assert on.at.notice == "q magnifies while it is held down with the mouse over an image."


WIDTH = "document.querySelector('.cropper-canvas img').getBoundingClientRect().width"
NATURAL = "document.querySelector('.cropper-canvas img').naturalWidth"
LEFT = "document.querySelector('.cropper-canvas img').getBoundingClientRect().left"
TOP = "document.querySelector('.cropper-canvas img').getBoundingClientRect().top"


@does(Action.ZOOM, Action.ZOOM_TO, Action.MOVE_IMAGE)
def closely(on: Stage) -> None:
    for into in ("Enter", "x"):
        on.at.press(into)
        on.page.wait_for_selector("[data-look][data-ready]", state="attached", timeout=PATIENCE)
        whole = on.page.evaluate(WIDTH)
        for nearer in ("+", "="):
            before = on.page.evaluate(WIDTH)
            on.page.keyboard.press(nearer)
            assert on.page.evaluate(WIDTH) > before
        before = on.page.evaluate(WIDTH)
        on.page.keyboard.press("-")
        assert on.page.evaluate(WIDTH) < before
        for ratio in (1, 2, 4):
            on.page.keyboard.press(str(ratio))
            assert on.page.evaluate(WIDTH) == pytest.approx(ratio * on.page.evaluate(NATURAL), abs=1)
        if into == "Enter":
            for key, side, sign in (
                ("ArrowLeft", LEFT, 1), ("ArrowRight", LEFT, -1), ("ArrowUp", TOP, 1), ("ArrowDown", TOP, -1),
            ):  # fmt: skip
                at = on.page.evaluate(side)
                on.page.keyboard.press(f"Shift+{key}")
                assert on.page.evaluate(side) == pytest.approx(at + 60 * sign, abs=0.1)
        on.page.keyboard.press("0")
        assert on.page.evaluate(WIDTH) == pytest.approx(whole, abs=0.1)
        on.at.press("Escape")


@does(Action.TOGGLE_EVERY)
def every(on: Stage) -> None:
    few = on.at.shown
    on.at.press("m")
    assert set(on.at.shown) > set(few)
    on.at.press("m")
    assert on.at.shown == few


@does(Action.SHOW_GUIDELINES, Action.SHOW_HELP, Action.SCROLL_TEXT, Action.CLOSE)
def texts(on: Stage) -> None:
    # the whole screen of the guidelines scrolls, of the help its sheet
    scrolled = "document.querySelector('#overlay').scrollTop + document.querySelector('#overlay .sheet').scrollTop"
    on.at.resize(1000, 500)
    for key, mode in (("h", "guidelines"), ("?", "help")):
        on.at.press(key)
        assert on.at.mode == mode
        for forth, back in (("ArrowDown", "ArrowUp"), ("PageDown", "PageUp"), ("End", "Home"), ("Space", "Home")):
            on.page.keyboard.press(forth)
            assert on.page.evaluate(scrolled) > 0
            on.page.keyboard.press(back)
            assert on.page.evaluate(scrolled) == 0
        on.at.press("Escape")
        assert on.at.mode == "class"
        on.at.press(key, "y")  # any other key, too
        assert on.at.mode == "class"
    on.at.resize(1280, 800)


@does(Action.NEXT_CLASS, Action.PREVIOUS_CLASS, Action.SKIP_CLASS, Action.VISIT_CLASS)
def classes(on: Stage) -> None:
    for forth, back in (("n", "p"), ("PageDown", "PageUp")):
        on.at.press(forth)
        following = on.at.wnid
        assert following != GOLDFISH
        on.at.press(back)
        assert on.at.wnid == GOLDFISH
    on.at.press("s")
    assert on.at.wnid == following
    on.page.go_back()
    on.until(f"document.querySelector('#view').dataset.classKey === '{GOLDFISH}'")


@does(Action.CHOOSE_CLASSES, Action.CHOOSE_FILTER, Action.ASK_FILTER_REASON, Action.CHOOSE_FILTER_REASON)
def filters(on: Stage) -> None:
    who = "#view .who"
    for key, name in FILTERS.items():
        on.at.press("f", key)
        shown = on.page.inner_text(who)
        assert shown.endswith(f"classes: {name}") or on.at.notice == f"No class with this filter: {name}."
    on.at.press("f", "a", "Shift+KeyB")
    for key, name in BY_KEYS.items():
        on.at.press("f", key)
        assert on.at.mode == f"filter_by_{name}"
        on.at.press("b")
        assert on.page.inner_text(who).endswith(f"classes: {name}: border") or on.at.notice.startswith(
            "No class with this filter"
        )
    on.at.press("f", "r", "b")
    assert on.page.inner_text(who).endswith("classes: reason: border")
    on.at.press("f", "Escape", "f", "r", "Escape")
    assert (on.at.mode, on.at.notice) == ("class", "")
    on.at.press("f", "u")


@does(Action.LOOK_BACK, Action.FOCUS_TILE, Action.GO_TO_TILE, Action.STEP_VERDICTS, Action.CHOOSE_VERDICTS)
def look_back(on: Stage) -> None:
    first, second = on.at.shown[:2]
    on.at.press("c", "u", "b")
    tile = "#overlay .focus img"
    chosen = "#overlay .which .on span"

    def image() -> str:
        found = re.search(r"ILSVRC2012_val_\d+", on.page.get_attribute(tile, "src") or "")
        assert found is not None
        return found[0]

    assert image() == second
    for key, expected in (("ArrowRight", first), ("ArrowLeft", second), ("ArrowDown", second), ("ArrowUp", second)):
        on.at.press(key)
        assert image() == expected
    for forth, back in (("n", "p"), ("PageDown", "PageUp")):
        on.at.press(forth)
        assert on.page.inner_text(chosen) != "all"
        on.at.press(back)
        assert on.page.inner_text(chosen) == "all"
    before = on.at.of_view("pressed")
    on.page.click("[data-choose='verdict: clean']")
    on.at.answered(before)
    assert (on.page.inner_text(chosen), image()) == ("verdict: clean", first)
    for key in ("Enter", "Space"):
        on.at.press(key)
        assert (on.at.mode, on.at.focus) == ("class", first)
        on.at.press("b")
    for key in ("Escape", "b"):
        on.at.press(key)
        assert on.at.mode == "class"
        on.at.press("b")
    on.at.press("Escape")


@does(Action.SHOW_MORE)
def more_verdicts(on: Stage) -> None:
    on.at.press("u", "b")
    on.at.press("m")
    assert on.page.locator("[data-tile]").count() == 1  # fewer than 50, all there before


@does(Action.BEGIN_CROP, Action.DRAW_BOX, Action.MOVE_BOX, Action.MOVE_FAR_EDGE, Action.MOVE_NEAR_EDGE)
def box(on: Stage) -> None:
    on.at.press("x")
    on.at.draw([40, 30, 200, 150])
    box = on.at.box()
    for held, moved in (("", (1, 1)), ("Shift+", (0, 1)), ("Control+", (1, 0))):
        for key, axis, by in (("ArrowLeft", 0, -1), ("ArrowUp", 1, -1), ("ArrowRight", 0, 1), ("ArrowDown", 1, 1)):
            on.page.keyboard.press(f"{held}{key}")
            box[axis] += by * moved[0]
            box[axis + 2] += by * moved[1]
            assert on.at.box() == box
    on.page.keyboard.down("ArrowRight")
    on.page.keyboard.down("ArrowRight")
    on.page.keyboard.up("ArrowRight")
    assert on.at.box() == [box[0] + 6, box[1], box[2] + 6, box[3]]
    on.at.press("Escape")


@does(Action.STATE_VISIBLE, Action.CHANGE_BOX, Action.SAVE_CROP, Action.PAN, Action.DRAW_PROPOSAL)
def crop(on: Stage) -> None:
    first = on.at.focus
    stated = "#panel [role=checkbox]"
    on.at.press("x", "w")
    on.at.draw([40, 30, 200, 150])
    on.page.evaluate("document.querySelector('#panel').dataset.proposal = '10,20,210,220'")
    on.page.keyboard.press("p")
    assert on.at.box() == [10, 20, 210, 220]
    left = on.page.evaluate(LEFT)
    place = on.page.locator("#overlay .cropper-container").bounding_box()
    assert place is not None
    on.page.keyboard.press("4")
    left = on.page.evaluate(LEFT)
    on.page.mouse.move(place["x"] + 100, place["y"] + 100)
    on.page.keyboard.down(" ")
    on.page.mouse.down()
    on.page.mouse.move(place["x"] + 80, place["y"] + 90, steps=3)
    on.page.mouse.up()
    on.page.keyboard.up(" ")
    assert on.page.evaluate(LEFT) != left
    assert on.at.box() == [10, 20, 210, 220]
    on.at.press("v")
    assert on.page.get_attribute(stated, "aria-checked") == "true"
    on.page.keyboard.press("Shift+ArrowLeft")
    on.at.look(0.2)
    on.page.wait_for_selector(f"{stated}[aria-checked=false]", timeout=PATIENCE)
    on.at.press("Enter")
    assert on.at.notice == "Not saved yet: confirm with v that the object is fully visible."
    on.at.press("v", "Enter")
    crop = {"crop": [10, 20, 209, 220], "object_fully_visible": True}
    assert on.saved == {first: {"verdict": "crop", "reason": "watermark", **crop}}


@does(Action.KEEP_NOTE)
def kept_note(on: Stage) -> None:
    on.page.evaluate(
        "(image) => sessionStorage.setItem(`cleanset-drafts ${location.pathname}`,"
        " JSON.stringify({ [JSON.stringify(['note', document.querySelector('#view').dataset.classKey, image])]:"
        " { text: 'kept' } }))",
        on.at.focus,
    )
    on.page.reload()
    on.at.ready()
    on.page.wait_for_selector("[data-unsaved=kept]", timeout=PATIENCE)
    on.at.press("u")
    assert [entry["note"] for entry in on.saved.values()] == ["kept"]


@does(Action.TELL_LOST)
def lost(on: Stage) -> None:
    on.page.evaluate("sessionStorage.setItem(`cleanset-lost-keys ${location.pathname}`, 2)")
    on.page.reload()
    on.page.wait_for_selector(".notice.error", timeout=PATIENCE)
    assert on.at.notice.startswith("Connection lost; 2 keys not saved")


BOARDS = {Action.NEXT_BOX}
"""Actions that only the board has."""

PARTS = (
    (verdicts, rejection, dialogs, focus, zoom),
    (guesses, reasons, magnifier, closely, every, texts),
    (classes, filters, look_back, more_verdicts, box, crop),
    (rest, stop_waiting, kept_note, lost),
)


def test_every_action_is_tried() -> None:
    assert {*CHECKS} == set(Action) - BOARDS
    assert sorted(each.__name__ for part in PARTS for each in part) == sorted(
        {each.__name__ for each in CHECKS.values()}
    )


@pytest.mark.long
@pytest.mark.parametrize("part", range(len(PARTS)))
def test_each_action_does_what_its_words_say(edition: Path, start: Serve, visit: Open, part: int) -> None:
    with_one_model(edition)
    if stop_waiting in PARTS[part]:
        change_review(edition, seconds_per_image=SLOW_SECONDS)
    change_review(edition, reasons={name: {"key": key, "rule": "."} for key, name in OWN_KEYS.items()})
    on = Stage(edition, visit(start()))
    for check in PARTS[part]:
        on.begin()
        check(on)


@pytest.mark.long
def test_the_board_takes_a_verdict_by_its_number_or_goes_through_the_boxes(
    edition: Path, start: Serve, visit: Open
) -> None:
    _, at = in_conflict(edition, start, visit)
    at.press("x")
    at.page.wait_for_selector("[data-look=crop][data-ready]", state="attached", timeout=PATIENCE)
    assert at.box() == [0, 0, 300, 200]
    at.page.keyboard.press("j")
    assert at.box() == [20, 10, 300, 200]
    at.page.keyboard.press("j")
    assert at.box() == [0, 0, 300, 200]
    at.press("Escape", "2")
    assert at.mode == "note"
