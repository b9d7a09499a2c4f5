"""The actions of a reviewer on the page: one table of their keys, those of reasons too, their modes and words.

The tab (`tab.py`) looks up in it what a key means, the browser (`static/keys.js`) gets it with the page, and the help
and the buttons are rendered from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal, get_args

from cleanset.vocabulary import Reason

Base = Literal["class", "zoom", "end"]
"""What lies beneath: the cards of a class, the image in focus alone, or the end, where no class is shown."""

Overlay = Literal[
    "reason", "crop", "filter", "filter_by_reason", "filter_by_hint", "note", "search", "help", "guidelines", "back"
]
"""What lies over it: a question, the drawing of a crop, a dialog, a text, or one's own verdicts."""

Mode = Base | Overlay
"""What is on the screen, and so what a key means: the overlay, or the base without one."""

Waiting = Literal["waiting"]
"""The mode `class` while the browser waits to send the key for all the rest of the class."""

IN_CLASS: tuple[Mode, ...] = ("class",)
ON_IMAGE: tuple[Mode, ...] = ("class", "zoom")
ON_BASE: tuple[Mode, ...] = get_args(Base)
ASKING_FILTER: tuple[Mode, ...] = ("filter", "filter_by_reason", "filter_by_hint")
ASKING: tuple[Mode, ...] = ("reason", *ASKING_FILTER)
IN_TEXT: tuple[Mode, ...] = ("help", "guidelines")
TYPING: tuple[Mode, ...] = ("note", "search")
"""Modes in which keys are typed text."""

MODES: tuple[Mode, ...] = (*ON_BASE, *get_args(Overlay))

REASON_KEYS: Mapping[str, Reason] = {
    "w": "watermark",
    "t": "text",
    "b": "border",
    "o": "collage",
    "f": "filter",
    "n": "noise",
    "l": "blur",
    "d": "drawing",
    "i": "too_small",
    "a": "artificial_background",
    "m": "modification",
    "g": "wrong_class",
    "s": "several_objects",
    "k": "duplicate",
    "h": "other",
}
"""Reasons against an image, by key."""

FILTERS = {
    "a": "all",
    "u": "to review",
    "b": "boxes to draw",
    "s": "short",
    "c": "conflicts",
    "m": "with my verdicts",
}
"""Filters of the classes that next and previous go to, by key."""

BY_KEYS = {"r": "reason", "h": "hint"}
"""Filters that ask for a reason next: the reason of one's own verdict, or the one that a hint stands for, by key."""

ARROWS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")
DIGITS = tuple("123456789")
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")

ZOOM_LABELS = {
    "0": "whole",
    "1": "100 %",
    "2": "200 %",
    "4": "400 %",
    "+": "nearer",
    "-": "farther",
}
"""The words on the buttons that zoom, by key."""

ANY_KEY = "any key"
"""Stands for every key that the mode has no other action for."""


HIT = "hit"
"""What the page sends for a click on a class that the search has found."""


class Action(StrEnum):
    """What a reviewer, or the page itself, can ask of a tab."""

    TAKE_CLEAN = "take_clean"
    TAKE_REST = "take_rest"
    BEGIN_CROP = "begin_crop"
    BEGIN_REJECTION = "begin_rejection"
    REJECT_BY_GUESS = "reject_by_guess"
    REJECT_FOR_REASON = "reject_for_reason"
    NAME_CLASS = "name_class"
    BE_UNSURE = "be_unsure"
    TAKE_BACK = "take_back"
    WRITE_NOTE = "write_note"
    UNDO = "undo"
    STOP_WAITING = "stop_waiting"
    MOVE_FOCUS = "move_focus"
    FOCUS_NUMBER = "focus_number"
    FOCUS_CARD = "focus_card"
    TOGGLE_ZOOM = "toggle_zoom"
    LEAVE_ZOOM = "leave_zoom"
    MAGNIFY = "magnify"
    ZOOM = "zoom"
    ZOOM_TO = "zoom_to"
    MOVE_IMAGE = "move_image"
    TOGGLE_EVERY = "toggle_every"
    LOOK_BACK = "look_back"
    SHOW_GUIDELINES = "show_guidelines"
    NEXT_CLASS = "next_class"
    PREVIOUS_CLASS = "previous_class"
    SKIP_CLASS = "skip_class"
    SEARCH_CLASS = "search_class"
    CHOOSE_CLASSES = "choose_classes"
    VISIT_CLASS = "visit_class"
    SHOW_HELP = "show_help"
    DRAW_BOX = "draw_box"
    PAN = "pan"
    NEXT_BOX = "next_box"
    MOVE_BOX = "move_box"
    MOVE_FAR_EDGE = "move_far_edge"
    MOVE_NEAR_EDGE = "move_near_edge"
    DRAW_PROPOSAL = "draw_proposal"
    STATE_VISIBLE = "state_visible"
    SAVE_CROP = "save_crop"
    CANCEL = "cancel"
    CHOOSE_REASON = "choose_reason"
    CHOOSE_FILTER = "choose_filter"
    ASK_FILTER_REASON = "ask_filter_reason"
    CHOOSE_FILTER_REASON = "choose_filter_reason"
    FOCUS_TILE = "focus_tile"
    GO_TO_TILE = "go_to_tile"
    STEP_VERDICTS = "step_verdicts"
    CHOOSE_VERDICTS = "choose_verdicts"
    SHOW_MORE = "show_more"
    CLOSE = "close"
    SCROLL_TEXT = "scroll_text"
    SAVE_TEXT = "save_text"
    LEAVE_TEXT = "leave_text"
    CHANGE_BOX = "change_box"
    KEEP_NOTE = "keep_note"
    TELL_LOST = "tell_lost"


class Section(StrEnum):
    """Where the words of an action stand: the first five in the help, the others beneath what they belong to."""

    IMAGE = "The image in focus"
    LOOKING = "Looking"
    CLASSES = "Classes"
    CROP = "Drawing a crop"
    REASONS = "Reasons, after r or in a crop"
    FOOTER = "the buttons below the cards"
    WAIT = "the line while all clean waits"
    FILTER = "the buttons of the filters"
    BACK = "the line below one's own verdicts"
    TEXT = "the line below the help and the guidelines"
    CLOSE = "the button that closes what lies over the class"
    DIALOG = "the buttons of a dialog"
    PAGE = "nowhere: the page does it by itself"


HELP_SECTIONS = (Section.IMAGE, Section.LOOKING, Section.CLASSES, Section.CROP)
"""Sections of the help whose lines are the words of actions; that of the reasons has a line for each reason."""


@dataclass(frozen=True, slots=True)
class HelpLine:
    """The keys of an action, or of several, and their effect in words."""

    section: Section
    keys: str
    """As people read them, such as ← → ↑ ↓."""

    words: str
    """The effect; `{search_words}` stands for what classes are found by, such as name or wnid."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Keys of an action in some modes."""

    modes: tuple[Mode | Waiting, ...]
    keys: tuple[str, ...]
    """`KeyboardEvent.key`, with Shift+ or Ctrl+ before it where it is held; or the name of what the page sends for a
    click, as `ReviewKey` lists them."""

    in_browser: bool = False
    """Whether the browser carries it out by itself, or makes something else of it before it sends it."""

    repeats: bool = False
    """Whether a key that is held down counts again and again."""


@dataclass(frozen=True, slots=True)
class ActionEntry:
    """An action, its keys and its words."""

    action: Action
    line: HelpLine
    bindings: tuple[Binding, ...]
    """Empty for what only the mouse does."""

    label: str = ""
    """The word on its button; empty without one, and where it changes with what is shown."""


_ANOTHER_IMAGE = HelpLine(Section.LOOKING, "← → ↑ ↓  or  1 … 9", "another image")
_CLOSELY = HelpLine(Section.LOOKING, "Enter  or  Space", "look closely, and back")
_SAVE_OR_DISCARD = HelpLine(Section.CROP, "Enter  Esc", "save; discard the change")
_WHICH_VERDICTS = HelpLine(Section.BACK, "n p", "which verdicts")
_TEXT_DONE = HelpLine(Section.DIALOG, "↵ Esc", "save; cancel")
_OF_PAGE = HelpLine(Section.PAGE, "", "")

TABLE: tuple[ActionEntry, ...] = (
    ActionEntry(
        action=Action.TAKE_CLEAN,
        line=HelpLine(Section.IMAGE, "c", "clean"),
        bindings=(Binding(ON_IMAGE, ("c",)),),
        label="clean",
    ),
    ActionEntry(
        action=Action.TAKE_REST,
        line=HelpLine(
            Section.IMAGE,
            "a",
            "all the rest of the class is clean: what is whole on the screen, and rejected by nobody",
        ),
        bindings=(Binding(IN_CLASS, ("a",), in_browser=True), Binding(("zoom",), ("a",))),
        label="all clean",
    ),
    ActionEntry(
        action=Action.BEGIN_CROP,
        line=HelpLine(Section.IMAGE, "x", "crop: draw the box"),
        bindings=(Binding(ON_IMAGE, ("x",)),),
        label="crop",
    ),
    ActionEntry(
        action=Action.BEGIN_REJECTION,
        line=HelpLine(Section.IMAGE, "r", "reject: then the key of the reason"),
        bindings=(Binding(ON_IMAGE, ("r",)),),
        label="reject",
    ),
    ActionEntry(
        action=Action.REJECT_BY_GUESS,
        line=HelpLine(Section.IMAGE, "Shift+1 … 9  or  Shift+click", "reject that image for the reason at its ⇧"),
        bindings=(
            Binding(IN_CLASS, tuple(f"Shift+{digit}" for digit in DIGITS), in_browser=True),
            Binding((*ON_BASE, *ASKING), ("guess",)),
        ),
    ),
    ActionEntry(
        action=Action.REJECT_FOR_REASON,
        line=HelpLine(Section.IMAGE, "Shift and a reason's key", "reject for that reason, or change the reason"),
        bindings=(
            # every letter: one that is not the key of a reason says so
            Binding(ON_IMAGE, tuple(f"Shift+{letter}" for letter in LETTERS), in_browser=True),
            Binding(ON_BASE, ("reason",)),
        ),
    ),
    ActionEntry(
        action=Action.NAME_CLASS,
        line=HelpLine(Section.IMAGE, "i", "reject for its wrong class, and name the class that it shows"),
        bindings=(Binding(ON_IMAGE, ("i",)),),
        label="other class",
    ),
    ActionEntry(
        action=Action.BE_UNSURE,
        line=HelpLine(Section.IMAGE, "u", "unsure"),
        bindings=(Binding(ON_IMAGE, ("u",)),),
        label="unsure",
    ),
    ActionEntry(
        action=Action.TAKE_BACK,
        line=HelpLine(Section.IMAGE, "d", "take the verdict back"),
        bindings=(Binding(ON_IMAGE, ("d",)),),
        label="take back",
    ),
    ActionEntry(
        action=Action.WRITE_NOTE,
        line=HelpLine(Section.IMAGE, "e", "write a note"),
        bindings=(Binding(ON_IMAGE, ("e",)),),
        label="note",
    ),
    ActionEntry(
        action=Action.UNDO,
        line=HelpLine(Section.IMAGE, "z  or  ⌫", "undo the last step in this tab, as often as you like"),
        bindings=(Binding(ON_BASE, ("z", "Backspace")),),
        label="undo",
    ),
    ActionEntry(
        action=Action.STOP_WAITING,
        line=HelpLine(Section.WAIT, "Esc", "stops it"),
        bindings=(Binding(("waiting",), ("Escape", "z", "Backspace"), in_browser=True),),
    ),
    ActionEntry(
        action=Action.MOVE_FOCUS,
        line=_ANOTHER_IMAGE,
        bindings=(Binding(ON_IMAGE, ARROWS, repeats=True),),
    ),
    ActionEntry(
        action=Action.FOCUS_NUMBER,
        line=_ANOTHER_IMAGE,
        bindings=(Binding(IN_CLASS, DIGITS),),
    ),
    ActionEntry(
        action=Action.FOCUS_CARD,
        line=_ANOTHER_IMAGE,
        bindings=(Binding((*ON_BASE, *ASKING), ("focus",)),),
    ),
    ActionEntry(
        action=Action.TOGGLE_ZOOM,
        line=_CLOSELY,
        bindings=(Binding(ON_IMAGE, ("Enter", " ")),),
        label="closer",
    ),
    ActionEntry(
        action=Action.LEAVE_ZOOM,
        line=_CLOSELY,
        bindings=(Binding(ON_IMAGE, ("Escape",)),),
        label="back",
    ),
    ActionEntry(
        action=Action.MAGNIFY,
        line=HelpLine(Section.LOOKING, "q  held down", "the image under the mouse at its own pixels"),
        bindings=(Binding(IN_CLASS, ("q",), in_browser=True), Binding(("zoom",), ("q",))),
    ),
    ActionEntry(
        action=Action.ZOOM,
        line=HelpLine(Section.LOOKING, "wheel  or  +  −", "there and in a crop: nearer, farther"),
        bindings=(Binding(("zoom", "crop"), ("+", "=", "-"), in_browser=True),),
    ),
    ActionEntry(
        action=Action.ZOOM_TO,
        line=HelpLine(Section.LOOKING, "0  1  2  4", "there and in a crop: whole, 100 %, 200 %, 400 %"),
        bindings=(Binding(("zoom", "crop"), ("0", "1", "2", "4"), in_browser=True),),
    ),
    ActionEntry(
        action=Action.MOVE_IMAGE,
        line=HelpLine(Section.LOOKING, "Shift+arrows", "look closely: move the image"),
        bindings=(Binding(("zoom",), tuple(f"Shift+{arrow}" for arrow in ARROWS), in_browser=True, repeats=True),),
    ),
    ActionEntry(
        action=Action.TOGGLE_EVERY,
        line=HelpLine(Section.LOOKING, "m", "show every candidate, or only those asked for"),
        bindings=(Binding(ON_IMAGE, ("m",)),),
        label="more",
    ),
    ActionEntry(
        action=Action.LOOK_BACK,
        line=HelpLine(Section.LOOKING, "b", "look back at your last verdicts"),
        bindings=(Binding(ON_BASE, ("b",)),),
        label="look back",
    ),
    ActionEntry(
        action=Action.SHOW_GUIDELINES,
        line=HelpLine(Section.LOOKING, "h", "the rules, with an example of each reason"),
        bindings=(Binding(ON_BASE, ("h",)),),
        label="rules",
    ),
    ActionEntry(
        action=Action.NEXT_CLASS,
        line=HelpLine(Section.CLASSES, "n  or  PgDn", "next"),
        bindings=(Binding(ON_BASE, ("n", "PageDown"), repeats=True),),
        label="next",
    ),
    ActionEntry(
        action=Action.PREVIOUS_CLASS,
        line=HelpLine(Section.CLASSES, "p  or  PgUp", "previous"),
        bindings=(Binding(ON_BASE, ("p", "PageUp"), repeats=True),),
        label="previous",
    ),
    ActionEntry(
        action=Action.SKIP_CLASS,
        line=HelpLine(Section.CLASSES, "s", "skip: come back to it at the end"),
        bindings=(Binding(ON_IMAGE, ("s",)),),
        label="skip",
    ),
    ActionEntry(
        action=Action.SEARCH_CLASS,
        line=HelpLine(Section.CLASSES, "/", "search by {search_words}"),
        bindings=(Binding(ON_BASE, ("/",)),),
        label="search",
    ),
    ActionEntry(
        action=Action.CHOOSE_CLASSES,
        line=HelpLine(
            Section.CLASSES, "f", f"which classes: {', '.join(FILTERS.values())}; by {' or '.join(BY_KEYS.values())}"
        ),
        bindings=(Binding(ON_BASE, ("f",)),),
        label="filter",
    ),
    ActionEntry(
        action=Action.VISIT_CLASS,
        line=HelpLine(Section.CLASSES, "the browser's Back", "the class shown before"),
        bindings=(Binding(tuple(mode for mode in MODES if mode not in TYPING), ("visit",)),),
    ),
    ActionEntry(
        action=Action.SHOW_HELP,
        line=HelpLine(Section.FOOTER, "?", "help"),
        bindings=(Binding(ON_BASE, ("?",)),),
        label="help",
    ),
    ActionEntry(
        action=Action.DRAW_BOX,
        line=HelpLine(Section.CROP, "mouse", "draw, move and resize the box"),
        bindings=(),
    ),
    ActionEntry(
        action=Action.PAN,
        line=HelpLine(Section.CROP, "Space+mouse", "move the image; the box stays on it"),
        bindings=(Binding(("crop",), (" ",), in_browser=True),),
    ),
    ActionEntry(
        action=Action.NEXT_BOX,
        line=HelpLine(Section.CROP, "j", "the board: the next of the boxes in conflict"),
        bindings=(Binding(("crop",), ("j",), in_browser=True),),
    ),
    ActionEntry(
        action=Action.MOVE_BOX,
        line=HelpLine(Section.CROP, "arrows", "move it by a pixel (held down: by five)"),
        bindings=(Binding(("crop",), ARROWS, in_browser=True, repeats=True),),
    ),
    ActionEntry(
        action=Action.MOVE_FAR_EDGE,
        line=HelpLine(Section.CROP, "Shift+arrows", "move its right or bottom edge"),
        bindings=(Binding(("crop",), tuple(f"Shift+{arrow}" for arrow in ARROWS), in_browser=True, repeats=True),),
    ),
    ActionEntry(
        action=Action.MOVE_NEAR_EDGE,
        line=HelpLine(Section.CROP, "Ctrl+arrows", "move its left or top edge"),
        bindings=(Binding(("crop",), tuple(f"Ctrl+{arrow}" for arrow in ARROWS), in_browser=True, repeats=True),),
    ),
    ActionEntry(
        action=Action.DRAW_PROPOSAL,
        line=HelpLine(Section.CROP, "p", "draw the proposed box again"),
        bindings=(Binding(("crop",), ("p",), in_browser=True),),
        label="Proposed",
    ),
    ActionEntry(
        action=Action.STATE_VISIBLE,
        line=HelpLine(Section.CROP, "v", "the object stays fully visible; ends when the box changes"),
        bindings=(Binding(("crop",), ("v",)),),
    ),
    ActionEntry(
        action=Action.SAVE_CROP,
        line=_SAVE_OR_DISCARD,
        bindings=(Binding(("crop",), ("Enter",)),),
        label="save",
    ),
    ActionEntry(
        action=Action.CANCEL,
        line=_SAVE_OR_DISCARD,
        bindings=(Binding(("crop", *ASKING), ("Escape",)),),
        label="cancel",
    ),
    ActionEntry(
        action=Action.CHOOSE_REASON,
        line=HelpLine(Section.REASONS, "the key of a reason", "the reason"),
        bindings=(Binding(("reason", "crop"), tuple(REASON_KEYS)),),
    ),
    ActionEntry(
        action=Action.CHOOSE_FILTER,
        line=HelpLine(Section.FILTER, "the key of a filter", "the classes of this filter"),
        bindings=(Binding(("filter",), tuple(FILTERS)),),
    ),
    ActionEntry(
        action=Action.ASK_FILTER_REASON,
        line=HelpLine(Section.FILTER, "r h", "by reason or hint: then the key of the reason"),
        bindings=(Binding(("filter",), tuple(BY_KEYS)),),
    ),
    ActionEntry(
        action=Action.CHOOSE_FILTER_REASON,
        line=HelpLine(Section.FILTER, "the key of a reason", "the classes with this reason"),
        bindings=(Binding(("filter_by_reason", "filter_by_hint"), tuple(REASON_KEYS)),),
    ),
    ActionEntry(
        action=Action.FOCUS_TILE,
        line=HelpLine(Section.BACK, "← → ↑ ↓", "another verdict"),
        bindings=(Binding(("back",), ARROWS, in_browser=True, repeats=True), Binding(("back",), ("focus",))),
    ),
    ActionEntry(
        action=Action.GO_TO_TILE,
        line=HelpLine(Section.BACK, "↵", "go there; b comes back"),
        bindings=(Binding(("back",), ("Enter", " ")),),
    ),
    ActionEntry(
        action=Action.STEP_VERDICTS,
        line=_WHICH_VERDICTS,
        bindings=(Binding(("back",), ("n", "PageDown", "p", "PageUp"), repeats=True),),
    ),
    ActionEntry(
        action=Action.CHOOSE_VERDICTS,
        line=_WHICH_VERDICTS,
        bindings=(Binding(("back",), ("choose",)),),
    ),
    ActionEntry(
        action=Action.SHOW_MORE,
        line=HelpLine(Section.BACK, "m", "{more} more"),
        bindings=(Binding(("back",), ("m",)),),
    ),
    ActionEntry(
        action=Action.SCROLL_TEXT,
        line=HelpLine(Section.TEXT, "↑ ↓ Space", "scroll"),
        bindings=(
            Binding(IN_TEXT, ("ArrowUp", "ArrowDown", "PageUp", "PageDown", " ", "Home", "End"), in_browser=True),
        ),
    ),
    ActionEntry(
        action=Action.CLOSE,
        line=HelpLine(Section.CLOSE, "Esc", "closes this"),
        bindings=(Binding(("back",), ("Escape", "b")), Binding(IN_TEXT, ("Escape", ANY_KEY))),
        label="close",
    ),
    ActionEntry(
        action=Action.SAVE_TEXT,
        line=_TEXT_DONE,
        bindings=(Binding(TYPING, ("Enter",)), Binding(("search",), (HIT,))),
        label="save",
    ),
    ActionEntry(
        action=Action.LEAVE_TEXT,
        line=_TEXT_DONE,
        bindings=(Binding(TYPING, ("Escape",)),),
        label="cancel",
    ),
    ActionEntry(
        action=Action.CHANGE_BOX,
        line=_OF_PAGE,
        bindings=(Binding(("crop",), ("box",)),),
    ),
    ActionEntry(
        action=Action.KEEP_NOTE,
        line=_OF_PAGE,
        bindings=(Binding(MODES, ("keep",)),),
    ),
    ActionEntry(
        action=Action.TELL_LOST,
        line=_OF_PAGE,
        bindings=(Binding(tuple(mode for mode in MODES if mode not in TYPING), ("lost",)),),
    ),
)
"""Every action, in the order of the help."""

ENTRIES: Mapping[Action, ActionEntry] = MappingProxyType({entry.action: entry for entry in TABLE})
"""The entry of each action."""


def _by_key() -> dict[tuple[str, str], Action]:
    found: dict[tuple[str, str], Action] = {}
    for entry in TABLE:
        for binding in entry.bindings:
            for mode in binding.modes:
                for key in binding.keys:
                    if (mode, key) in found:
                        raise ValueError(f"{key} in mode {mode}: both {found[mode, key]} and {entry.action}")
                    found[mode, key] = entry.action
    return found


_ACTIONS = MappingProxyType(_by_key())


def action_of(mode: Mode | Waiting, key: str) -> Action | None:
    """The action of a key in a mode; None where it has none."""
    return _ACTIONS.get((mode, key)) or _ACTIONS.get((mode, ANY_KEY))


def help_lines(section: Section) -> list[HelpLine]:
    """The lines of a section, in the order of the table; one that several actions share is there once."""
    return list(dict.fromkeys(entry.line for entry in TABLE if entry.line.section == section))


def bindings_for_browser() -> list[dict[str, object]]:
    """All bindings, as `static/actions.js` reads them."""
    return [
        {
            "action": entry.action,
            "modes": binding.modes,
            "keys": binding.keys,
            "inBrowser": binding.in_browser,
            "repeats": binding.repeats,
        }
        for entry in TABLE
        for binding in entry.bindings
    ]
