"""What a reviewer does at the page, and the server that they started."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Page

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.images.boxes import Box
from cleanset.review.file_format import parse_review
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.page import tab
from cleanset.review.page.library import open_library
from cleanset.review.page.server import open_session
from cleanset.review.page.session import Session
from cleanset.review.page.view import render
from cleanset.tables import INDEX, read_table
from tests.browser_tab import PATIENCE, SOURCE, Server, Tab
from tests.review.texts import GOLDFISH, save, sent

REASONS = {
    "watermark": "w", "text": "t", "border": "b", "collage": "o", "filter": "f", "noise": "n", "blur": "l",
    "drawing": "d", "too_small": "i", "artificial_background": "a", "modification": "m", "wrong_class": "g",
    "several_objects": "s", "duplicate": "k", "other": "h",
}  # fmt: skip
VERDICT_KEYS = (*"acuri123456789",)
IS_SEEN = """
key => { const card = document.querySelectorAll("#view [data-card]")[/^Shift.Digit([1-9])$/.exec(key)?.[1] - 1];
  const image = card?.dataset.card ?? document.querySelector("#view").dataset.focus;
  return key === "a" || secondsInSight(`image ${image}`) >= 0.5 }
"""
"""Whether the image that a key is about has been in sight for long enough."""
LOOK_SECONDS = 0.7
"""From a class's appearance until a verdict; the page counts none of the first half second."""


def wait_until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def serve(edition: Path, reviewer: str, *options: str, source: Path = SOURCE, installed: bool = False) -> Server:
    """`cleanset review serve`, once it serves its page; `options` may name another command that does."""
    command = () if options and not options[0].startswith("-") else ("serve",)
    return Server(edition, "review", *command, *options, "--reviewer", reviewer, source=source, installed=installed)


def reviews(
    edition: Path, reviewer: str = "ada", without: Sequence[str] = ("sha256",)
) -> dict[str, dict[str, dict[str, Any]]]:
    """What is on disk: the verdicts by class and image id, without some of their keys."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for path in sorted((edition / "reviews" / reviewer).glob("*.yaml")):
        for wnid, entries in yaml.safe_load(path.read_text()).items():
            found[wnid] = {
                image_id: {key: value for key, value in entry.items() if key not in without}
                for image_id, entry in entries.items()
            }
    return found


def write(edition: Path, reviewer: str, image_id: str, fields: Mapping[str, object], wnid: str = GOLDFISH) -> None:
    """Save a reviewer's verdict."""
    index = read_table(edition / "data" / "index.parquet", INDEX, imagenet()).set_index("image_id")
    review = parse_review({"sha256": index.loc[image_id, "sha256"], **fields}, "here")
    save(edition / "reviews", reviewer, wnid, image_id, review)


def change_review(edition: Path, **changes: Any) -> None:
    """Set keys of section `review` of params.yaml."""
    params = yaml.safe_load((edition / "params.yaml").read_text())
    params["review"] |= changes
    (edition / "params.yaml").write_text(yaml.safe_dump(params))


class Unmeasured(BackgroundHints):
    """Hints without measuring an image: a process takes longer to start than most tests to end."""

    def request(self, image_ids: Iterable[str]) -> None:
        """Nothing."""


class TabAlone(tab.Tab):
    """A tab without a browser: `type` presses keys with the whole class on the screen for long enough."""

    def __init__(
        self, edition: Path, reviewer: str = "ada", session: Session | None = None, at: int | None = None,
        measures: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        """`session`: that of another tab; `at`: the class to start with."""
        of = Edition(edition)
        library = open_library(of)
        hints = None if measures else Unmeasured(library.photos.read, imagenet())
        super().__init__(session or open_session(of, library, reviewer, hints=hints, **options))
        self.library = self.session.library
        self.start(at)

    def type(
        self, *keys: str, box: Box | None = None, card: str | None = None, shown: float = 9.0, reason: str | None = None
    ) -> dict[str, str]:
        """Press keys, one after another; the HTML that is then shown."""
        html = render(self)
        for key in keys:
            ids = self.cursor.images()
            seconds = dict.fromkeys(ids, 9.0)
            screen = {"subject": self.wnid, "seconds": seconds, "answered": self.pressed, "shown": shown}
            self.press(sent(key, ids, box, card, shown, reason=reason, **screen))
            html = render(self)
        return html

    @property
    def said(self) -> str:
        """The notice."""
        return self.notice.text if self.notice else ""

    @property
    def failed(self) -> bool:
        """Whether the notice is an error."""
        return self.notice is not None and self.notice.is_error


class Reviewing(Tab):
    """A tab, and a reviewer in front of it, who looks at a class before deciding on it.

    The page's clock runs as any other; `look` sets it forward, instead of waiting.
    """

    OPENED = "#view[data-class-key]"
    _class, _has_looked = "", False

    def __init__(self, page: Page, address: str) -> None:
        page.clock.install()
        super().__init__(page, address)
        self.look()

    def look(self, seconds: float = LOOK_SECONDS) -> None:
        """Let the page's clock continue, with each of its timers that is due meanwhile."""
        self.page.clock.run_for(round(1000 * seconds))

    def look_for_long(self, seconds: float) -> None:
        """Look; the page asks the server meanwhile, and a slow machine may answer only after the clock has moved.

        Until then the page reports that the connection is lost, over images.
        """
        self.look(seconds)
        self.page.wait_for_selector("#lost", state="detached", timeout=PATIENCE)

    def resize(self, width: int, height: int) -> None:
        """Make the window another one, and lay the cards out again, as the event that follows does."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate("async () => (await import('./static/grid.js')).layOut()")

    def stop_clock(self) -> None:
        """Let time pass on the page by `look` alone, however slow the machine."""
        self.page.clock.pause_at(self.page.evaluate("Date.now()") / 1000 + 1)

    def press(self, *keys: str) -> None:
        for key in keys:
            if self.wnid != self._class:
                self._class, self._has_looked = self.wnid, False
            is_verdict = key in VERDICT_KEYS or key.startswith("Shift+")
            if is_verdict and not (self._has_looked and self.page.evaluate(IS_SEEN, key)):
                self.look()
                self._has_looked = True
            super().press(key)

    @property
    def wnid(self) -> str:
        return self.of_view("class-key")

    @property
    def focus(self) -> str:
        return self.of_view("focus")

    @property
    def shown(self) -> list[str]:
        """The image ids of the images side by side."""
        ids: list[str] = self.page.eval_on_selector_all("[data-card]", "cards => cards.map(c => c.dataset.card)")
        return ids

    def caption(self, image_id: str) -> str:
        """What is saved of an image."""
        return self.page.inner_text(f"[data-card='{image_id}'] .line b")

    def go(self, wnid: str) -> None:
        """Search for a class and go there."""
        if self.wnid == wnid:
            return
        self.press("/")
        self.type_into_dialog(wnid, found=wnid)
        self.page.wait_for_function(
            "wnid => document.querySelector('#view').dataset.classKey === wnid", arg=wnid, timeout=PATIENCE
        )
        self.page.wait_for_selector(".q-dialog__inner", state="detached", timeout=PATIENCE)
        self.ready()

    def open(self, wnid: str, image_id: str) -> None:
        """Go to an image, asked for or not, by search and mouse."""
        self.go(wnid)
        if image_id not in self.shown:
            self.press("m")
        if image_id != self.focus:
            before = self.of_view("pressed")
            self.page.click(f"[data-card='{image_id}']")
            self.answered(before)

    def type_into_dialog(self, text: str, found: str | None = None) -> None:
        """Type, wait until a class is found where one is searched, and press Enter."""
        field = self.page.locator(".q-dialog input, .q-dialog textarea")
        field.fill(text)
        if found:
            self.page.wait_for_selector(f".q-item--active:has-text('{found}')", timeout=PATIENCE)
        field.press("Enter")

    def enter(self, entry: dict[str, Any]) -> None:
        """Say of the image in focus what an entry of a review file says."""
        if entry.get("note"):
            self.press("e")
            self.type_into_dialog(entry["note"])
            self.page.wait_for_selector(".q-dialog__inner", state="detached", timeout=PATIENCE)
        if entry["verdict"] == "crop":
            self.crop(entry["crop"], entry["reason"])
        elif entry["verdict"] == "reject":
            self.press("r", REASONS[entry["reason"]])
        else:
            self.press({"clean": "c", "unsure": "u"}[entry["verdict"]])

    def crop(self, box: Sequence[int], reason: str) -> None:
        """Draw a box with the mouse, put it right to the pixel with the keyboard, and save it."""
        self.press("x")
        self.draw(box)
        self.adjust(box)
        self.press(REASONS[reason], "v", "Enter")

    def draw(self, box: Sequence[int]) -> None:
        """Draw a box with the mouse, or drag the corners of the one that is there, as near as the pixels allow."""
        self.page.wait_for_selector("[data-look=crop][data-ready]", state="attached", timeout=PATIENCE)
        there = self.box()
        if there:
            self.drag(there[:2], box[:2], corner=0)
        self.drag(there[2:] or box[:2], box[2:], corner=2)

    def drag(self, start: Sequence[int], end: Sequence[int], corner: int) -> None:
        """Drag the mouse between two pixels of the image, until a corner of the box has followed it."""
        if start == end:
            return
        left, top, scale = self.page.evaluate(
            "() => { const image = document.querySelector('.cropper-canvas img');"
            " const at = image.getBoundingClientRect(); return [at.left, at.top, at.width / image.naturalWidth] }"
        )
        mouse = self.page.mouse
        mouse.move(left + start[0] * scale + 0.01, top + start[1] * scale + 0.01)
        mouse.down()
        mouse.move(left + end[0] * scale, top + end[1] * scale, steps=3)
        self.page.wait_for_function(
            "([corner, x, y]) => {"
            " const edges = document.querySelector('#crop-size').dataset.box.split(',').map(Number);"
            " return Math.abs(edges[corner] - x) <= 1 && Math.abs(edges[corner + 1] - y) <= 1 }",
            arg=[corner, *end], timeout=PATIENCE,
        )  # fmt: skip
        mouse.up()

    def box(self) -> list[int]:
        """The box that the page says is drawn."""
        text = self.page.get_attribute("#crop-size", "data-box") or ""
        return [int(edge) for edge in text.split(",") if edge]

    def adjust(self, box: Sequence[int]) -> None:
        """Move the edges by arrow keys, a pixel each."""
        for place, (modifier, less, more) in enumerate(
            (
                ("Control", "ArrowLeft", "ArrowRight"), ("Control", "ArrowUp", "ArrowDown"),
                ("Shift", "ArrowLeft", "ArrowRight"), ("Shift", "ArrowUp", "ArrowDown"),
            )
        ):  # fmt: skip
            missing = box[place] - self.box()[place]
            for _ in range(abs(missing)):
                self.page.keyboard.press(f"{modifier}+{more if missing > 0 else less}")
        assert self.box() == list(box)
