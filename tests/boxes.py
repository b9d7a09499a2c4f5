"""What is wrong with the boxes of a page: cut text, overlaps, what is outside the window, small letters, contrast.

Boxes are compared instead of pictures, since pixels of letters differ from machine to machine.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from playwright.sync_api import Page

BOXES = (Path(__file__).parent / "boxes.js").read_text("utf-8")
ROWS = """
selectors => selectors.filter(each => new Set([...document.querySelectorAll(each)]
  .map(one => Math.round(one.getBoundingClientRect().top))).size > 1)
"""
LAID_OUT = "() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))"


class Window(NamedTuple):
    """A window, in pixels, and its color scheme."""

    width: int
    height: int
    scheme: Literal["light", "dark"]

    def __str__(self) -> str:
        return f"{self.width} x {self.height}, {self.scheme}"


SIZES = ((1280, 800), (1920, 1080), (390, 844))
WINDOWS = [Window(width, height, scheme) for scheme in ("light", "dark") for width, height in SIZES]


def resize(page: Page, window: Window) -> None:
    """Give a page another window, and let it lay itself out."""
    page.set_viewport_size({"width": window.width, "height": window.height})
    page.emulate_media(color_scheme=window.scheme, reduced_motion="reduce")


def problems(
    page: Page,
    title: str,
    *,
    inside: str = "body",
    in_one_row: Sequence[str] = (),
    windows: Sequence[Window] = WINDOWS,
    lay_out: Callable[[], Any] | None = None,
) -> list[str]:
    """All that is wrong with the state that a page shows, in every window: page and state, window, element.

    `inside`: the part that is looked at, such as a dialog; `in_one_row`: selectors of elements that have to be in
    one row; `lay_out` is called after each change of the window.
    """
    found = []
    for window in windows:
        resize(page, window)
        if lay_out is None:
            page.evaluate(LAID_OUT)
        else:
            lay_out()
        # a color that changes slowly would be measured on its way
        page.evaluate("document.getAnimations().forEach(each => each.finish())")
        told = page.evaluate(BOXES, inside)
        told += [f"in several rows: {each}" for each in page.evaluate(ROWS, list(in_one_row))]
        found += [f"{title}, {window}: {each}" for each in told]
    return found
