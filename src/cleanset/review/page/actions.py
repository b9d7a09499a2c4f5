"""The actions of a reviewer on the page: their keys, modes and words, from the table `actions.yaml`.

The tab (`tab.py`) looks up in it what a key means, the browser (`static/keys.js`) gets it with the page, and the help
and the buttons are rendered from it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationInfo

from cleanset.edition.params import KEYS_OF_REASONS
from cleanset.plumbing.validation import Section, validate
from cleanset.plumbing.yaml_files import data_beside
from cleanset.review.reasons import REASON_KEYS

Base = Literal["class", "zoom", "end"]
"""What is beneath: the cards of a class, the image in focus alone, or the end, if no class is shown."""

Overlay = Literal[
    "reason", "crop", "filter", "filter_by_reason", "filter_by_hint", "note", "search", "help", "guidelines", "back"
]
"""What is over it: a question, the drawing of a crop, a dialog, a text, or the reviewer's verdicts."""

Mode = Base | Overlay
"""What is on the screen, and so what a key means: the overlay, or the base without one."""

Waiting = Literal["waiting"]
"""The mode `class` while the browser waits to send the key for all the rest of the class."""

ASKING_FILTER: tuple[Mode, ...] = ("filter", "filter_by_reason", "filter_by_hint")
ASKING: tuple[Mode, ...] = ("reason", *ASKING_FILTER)
IN_TEXT: tuple[Mode, ...] = ("help", "guidelines")
TYPING: tuple[Mode, ...] = ("note", "search")
"""Modes in which keys are typed text."""

MODES: tuple[Mode, ...] = (*get_args(Base), *get_args(Overlay))

ARROWS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")
DIGITS = tuple("123456789")
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")

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


class HelpSection(StrEnum):
    """Where the words of an action appear: the first five in the help, the others beneath what they belong to."""

    IMAGE = "The image in focus"
    LOOKING = "Looking at images"
    CLASSES = "Classes"
    CROP = "Drawing a crop"
    REASONS = "Reasons, after r or while cropping"
    FOOTER = "the buttons below the cards"
    WAIT = "the line while all clean waits"
    FILTER = "the buttons of the filters"
    BACK = "the line below your own verdicts"
    TEXT = "the line below the help and the guidelines"
    CLOSE = "the button that closes what is over the class"
    DIALOG = "the buttons of a dialog"
    PAGE = "nowhere: the page does it by itself"


HELP_SECTIONS = (HelpSection.IMAGE, HelpSection.LOOKING, HelpSection.CLASSES, HelpSection.CROP)
"""Sections of the help whose lines are the words of actions; that of the reasons has a line for each reason."""


@dataclass(frozen=True, slots=True)
class HelpLine:
    """The keys of an action, or of several, and their effect in words."""

    section: HelpSection
    keys: str
    """As people read them, such as ← → ↑ ↓."""

    words: str
    """The effect; `{search_words}` stands for what classes are found by, such as name or wnid."""


MODE_GROUPS: Mapping[str, tuple[Mode, ...]] = {
    "image": ("class", "zoom"),
    "base": get_args(Base),
    "asking": ASKING,
    "text": IN_TEXT,
    "typing": TYPING,
    "not typing": tuple(mode for mode in MODES if mode not in TYPING),
    "any": MODES,
}
"""Names of several modes in actions.yaml."""


def _modes(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(mode for name in names for mode in MODE_GROUPS.get(name, (name,)))


def _keys(names: Iterable[str], info: ValidationInfo) -> tuple[str, ...]:
    """Each key; a group of keys, with Shift+ or Ctrl+ before it, stands for its members with the same before them."""
    groups: Mapping[str, tuple[str, ...]] = info.context or {}
    found = list[str]()
    for name in names:
        held = next((each for each in ("Shift+", "Ctrl+") if name.startswith(each)), "")
        key = name.removeprefix(held)
        found += [f"{held}{each}" for each in groups.get(key, (key,))]
    return tuple(found)


class Binding(Section):
    """Keys of an action in some modes."""

    modes: Annotated[tuple[Mode | Waiting, ...], BeforeValidator(_modes)]
    keys: Annotated[tuple[str, ...], BeforeValidator(_keys)]
    """`KeyboardEvent.key`, with Shift+ or Ctrl+ before it where it is held; or the name of what the page sends for a
    click, as `ReviewKey` lists them."""

    in_browser: bool = False
    """Whether the browser carries it out by itself, or makes something else of it before it sends it."""

    repeats: bool = False
    """Whether a key that is held down counts again and again."""


class _BoundAction(Section):
    action: Annotated[Action, Field(strict=False)]
    label: str = ""
    bindings: Annotated[tuple[Binding, ...], Field(strict=False)] = ()


class _Line(Section):
    keys: str = ""
    words: str = ""
    actions: list[_BoundAction]


class _File(Section):
    most_used: list[Annotated[Action, Field(strict=False)]]
    filters: dict[str, str]
    asked_filters: dict[str, str]
    zoom_labels: dict[str, str]
    sections: dict[str, list[_Line]]


@dataclass(frozen=True, slots=True)
class ActionEntry:
    """An action, its keys and its words."""

    action: Action
    line: HelpLine
    bindings: tuple[Binding, ...]
    """Empty for what only the mouse does."""

    label: str = ""
    """The word on its button; empty without one, and where it changes with what is shown."""


def _read(content: Any) -> _File:
    key_groups = {
        "arrows": ARROWS,
        "digits": DIGITS,
        "letters": LETTERS,
        "reasons": (*REASON_KEYS, *KEYS_OF_REASONS),
        "filters": tuple(content["filters"]),
        "asked filters": tuple(content["asked_filters"]),
    }
    return validate(_File, content, "actions.yaml", context=key_groups)


_READ = _read(data_beside(__file__, "actions.yaml"))

FILTERS: Mapping[str, str] = MappingProxyType(_READ.filters)
"""Filters of the classes that next and previous go to, by key."""

BY_KEYS: Mapping[str, str] = MappingProxyType(_READ.asked_filters)
"""Filters that ask next for the reason of an own verdict, or for the kind of a hint, by key."""

ZOOM_LABELS: Mapping[str, str] = MappingProxyType(_READ.zoom_labels)
"""The words on the buttons that zoom, by key."""


def _entries() -> Iterator[ActionEntry]:
    filters = {"{filters}": ", ".join(FILTERS.values()), "{asked_filters}": " or ".join(BY_KEYS.values())}
    for section, lines in _READ.sections.items():
        for line in lines:
            words = line.words
            for name, listed in filters.items():
                words = words.replace(name, listed)
            shown = HelpLine(HelpSection[section], line.keys, words)
            for each in line.actions:
                yield ActionEntry(action=each.action, line=shown, bindings=each.bindings, label=each.label)


TABLE: tuple[ActionEntry, ...] = tuple(_entries())
"""Every action, in the order of the help."""

ENTRIES: Mapping[Action, ActionEntry] = MappingProxyType({entry.action: entry for entry in TABLE})
"""The entry of each action."""


def _by_key() -> dict[tuple[str, str], Action]:
    if len(TABLE) != len(ENTRIES) or set(ENTRIES) != set(Action):
        raise ValueError(f"actions.yaml: {len(TABLE)} actions; expected each of {', '.join(Action)} once")
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
    """The action of a key in a mode; None if it has none."""
    return _ACTIONS.get((mode, key)) or _ACTIONS.get((mode, ANY_KEY))


MOST_USED: tuple[HelpLine, ...] = tuple(ENTRIES[action].line for action in _READ.most_used)
"""The lines that the help has first."""


def help_lines(section: HelpSection) -> list[HelpLine]:
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
