"""The keys and their meaning in each mode, from which the help page is rendered; a key as it arrives.

A notice stays until a key is pressed with it on the screen.
"""

import time
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BeforeValidator, Field

from cleanset.images.boxes import Box, parse_box
from cleanset.web.keys import SentKey

REASON_KEYS = {
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
    "a": "all", "u": "to review", "b": "boxes to draw", "s": "short", "c": "conflicts", "m": "with my verdicts",
}  # fmt: skip
"""Filters of the classes that next and previous go to, by key."""

BY_KEYS = {"r": "reason", "h": "hint"}
"""Filters that ask for a reason next: the reason of one's own verdict, or the one that a hint stands for, by key."""

VERDICT_KEYS = {"c": "clean", "x": "crop", "r": "reject", "u": "unsure"}


def _box(box: object) -> Box | None:
    """A crop box as the browser sends it; None for anything else."""
    try:
        return parse_box(box)
    except ValueError:
        return None


class ReviewKey(SentKey):
    """A key of a reviewer as it arrives from the browser, with the screen that it was pressed on.

    Beside the keys of the keyboard: `focus` an image (`card`), `visit` a class (`card` is its wnid), `box`: the box
    drawn has changed, `guess`: reject an image (`card`) for the reason that it shows (`reason`), `reason`: reject the
    image in focus for that reason, `lost`: keys (`card`: how many) were lost with the connection,
    `keep`: a note (`text`) on an image (`card`) that the browser has kept.

    `box`: the box drawn. `text`: typed in a dialog. `tab`: the browser's name of the tab, also when it is loaded anew.
    Of the screen (None: not known) `class_key`: the class; `seconds`: by image id, for how long the reviewer had an
    image before them, whole and large enough; `answered`: the number of the last key answered then; `reason`: the one
    shown, or the key of one; `shown`: seconds since all images of the class were there.
    """

    box: Annotated[Box | None, BeforeValidator(_box)] = None
    card: str | None = None
    text: str = ""
    tab: Annotated[str, Field(max_length=64)] = ""
    class_key: str | None = None
    seconds: dict[str, float] = Field(default_factory=dict)
    answered: int | None = None
    reason: str | None = None
    shown: float | None = None


NO_KEY = ReviewKey(key="", number=0, seen=[])


# time in which somebody notices that keys did nothing
READ_SECONDS = 1.0


@dataclass
class Notice:
    """One line to the reviewer; an error stays until the next key, and means that nothing was saved."""

    text: str
    is_error: bool = False


@dataclass
class UnreadNotices:
    """The notices that nobody can have read yet, since all keys after them were typed ahead.

    `last`: the number of the key that gave the last one; `not_shown`: how many of the keys were about an image that was
    not shown, or only just, when they were pressed, and so did nothing. Who types on and on has no time to read: these
    are counted until READ_SECONDS after the last of them, which was answered at `counted_at`.
    """

    last: int = 0
    not_shown: int = 0
    counted_at: float = 0.0
    _texts: dict[str, bool] = field(default_factory=dict)

    def begin(self, answered: int | None) -> None:
        """Drop the notices that could be read when a key was pressed; `answered`: the last key answered then."""
        if answered is None or answered >= self.last:
            self._texts.clear()
            if time.monotonic() - self.counted_at >= READ_SECONDS:
                self.not_shown = 0

    def add(self, notice: Notice | None, number: int) -> Notice | None:
        """One notice of the one that key `number` gave, and all that are unread."""
        if notice is not None:
            self.last = number
            self._texts[notice.text] = notice.is_error
        return self._joined()

    def count_not_shown(self, number: int) -> Notice | None:
        """One notice of all that are unread, and of the number of keys that did nothing."""
        self.last = number
        self.counted_at = time.monotonic()
        self.not_shown += 1
        return self._joined()

    def _joined(self) -> Notice | None:
        texts = list(self._texts)[-2:]
        if self.not_shown:
            keys = "The key was"
            images = "image was"
            them = "it"
            if self.not_shown > 1:
                keys = f"{self.not_shown} keys were"
                images = "images were"
                them = "them"
            texts.append(
                f"Not saved. {keys} pressed before the {images} shown, or within half a second of it: look, and press "
                f"{them} again"
            )
        return Notice(" ".join(texts), self.not_shown > 0 or any(self._texts.values())) if texts else None
