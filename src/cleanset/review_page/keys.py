"""The keys and their meaning in each mode; the help page is rendered from this."""

from collections.abc import Mapping
from dataclasses import dataclass, field

REASONS = {
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

FILTERS = {"a": "all", "u": "unsettled", "b": "boxes", "s": "short", "c": "conflicts", "m": "mine"}
"""Filters of the classes that next and previous go to, by key."""

VERDICTS = {"c": "clean", "x": "crop", "r": "reject", "u": "unsure"}


@dataclass(frozen=True, slots=True)
class Screen:
    """The screen when a key was pressed, beside the images on it; None: not known.

    `wnid`: the class. `seconds`: by image id, for how long the reviewer had an image before them, whole and wide
    enough. `answered`: the number of the last key answered then. `reason`: the one shown, or the key of one.
    `shown`: seconds since all images of the class were there.
    """

    wnid: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    answered: int | None = None
    reason: str | None = None
    shown: float | None = None


NO_SCREEN = Screen()


@dataclass(frozen=True, slots=True)
class Key:
    """One line of the help: the names of the keys, and their effect."""

    shown: str
    does: str


HELP: dict[str, tuple[Key, ...]] = {
    "The image in focus": (
        Key("c", "clean"),
        Key("a", "all the rest of the class is clean: what is whole on the screen, and rejected by nobody"),
        Key("x", "crop: draw the box"),
        Key("r", "reject: then the key of the reason"),
        Key(
            "Shift+1 … 9  or  Shift+click",
            "reject that image for the reason at its ⇧",
        ),
        Key("Shift and a reason's key", "reject for that reason, or change the reason"),
        Key("u", "unsure"),
        Key("d", "take the verdict back"),
        Key("e", "write a note"),
        Key("z  or  ⌫", "undo the last step in this tab, as often as you like"),
    ),
    "Looking": (
        Key("← → ↑ ↓  or  1 … 9", "another image"),
        Key("Enter  or  Space", "look closely, and back"),
        Key("q  held down", "the image under the mouse at its own pixels"),
        Key("wheel  or  +  −", "there and in a crop: nearer, farther"),
        Key("0  1  2  4", "there and in a crop: whole, 100 %, 200 %, 400 %"),
        Key("Shift+arrows", "look closely: move the image"),
        Key("m", "show every candidate, or only those asked for"),
        Key("b", "look back at your last verdicts"),
        Key("h", "the rules, with an example of each reason"),
    ),
    "Classes": (
        Key("n  or  PgDn", "next"),
        Key("p  or  PgUp", "previous"),
        Key("s", "skip: come back to it at the end"),
        Key("/", "search by name or wnid"),
        Key("f", "which classes: all, unsettled, short, conflicts, mine"),
        Key("the browser's Back", "the class shown before"),
    ),
    "Drawing a crop": (
        Key("mouse", "draw, move and resize the box"),
        Key("Space+mouse", "move the image; the box stays on it"),
        Key("j", "the board: the next of the boxes in conflict"),
        Key("arrows", "move it by a pixel (held down: by five)"),
        Key("Shift+arrows", "move its right or bottom edge"),
        Key("Ctrl+arrows", "move its left or top edge"),
        Key("p", "draw the proposed box again"),
        Key("v", "the object stays fully visible; ends when the box changes"),
        Key("Enter  Esc", "save; discard the change"),
    ),
}
