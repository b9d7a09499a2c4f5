"""A key of a reviewer as it arrives from the browser, with the screen that it was pressed on."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from cleanset.images.boxes import Box, parse_box
from cleanset.web.keys import SentKey


def _box(box: object) -> Box | None:
    """A crop box as the browser sends it; None for anything else."""
    try:
        return parse_box(box)
    except ValueError:
        return None


class ReviewKey(SentKey):
    """A key of a reviewer as it arrives from the browser, with the screen that it was pressed on.

    Its subject is a class.

    Besides the keys of the keyboard, `key` may be: `focus` an image (`card`), or among the reviewer's verdicts a tile;
    `guess`: reject an image (`card`) for the reason that it shows (`reason`); `reason`: reject the image in focus for
    that reason; `visit` a class (`card` is its wnid); `hit`: a class (`card`) that the search found was clicked;
    `choose` some of the reviewer's verdicts (`card`: the name of their filter); `box`: the drawn box has changed;
    `keep`: a note (`text`) on an image (`card`) that the browser has kept; `lost`: keys (`card`: how many) were lost
    with the connection.
    """

    box: Annotated[Box | None, BeforeValidator(_box)] = None
    """The box that is drawn, in pixels of the image."""

    card: str | None = None
    """What the key is about: an image id, or as above."""

    text: str = ""
    """The text typed in a dialog."""

    tab: Annotated[str, Field(max_length=64)] = ""
    """The browser's name of the tab, the same when it is loaded again."""

    seconds: dict[str, float] = Field(default_factory=dict)
    """By image id, for how long the reviewer had an image before them, whole and large enough."""

    answered: int | None = None
    """The number of the last key that was answered when this one was pressed."""

    reason: str | None = None
    """For `guess` the reason that the card shows, for `reason` the key of one."""
