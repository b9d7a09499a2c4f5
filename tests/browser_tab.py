"""A browser's tab with a page whose view the server draws again after each key, and a person in front of it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, BrowserType, Error, Page, ViewportSize

from tests.forked_commands import forking

INSTALLED = str(Path(sys.executable).parent / "cleanset")
SOURCE = Path(__file__).resolve().parents[1] / "src"
PATIENCE = 60_000
"""Milliseconds."""
WINDOW: ViewportSize = {"width": 1280, "height": 800}
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first that is there is taken; Chromium without windows takes less than half of the processor time."""
OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


class Server:
    """A `cleanset` command, forked or installed, that serves a page; its errors are in `folder`.stderr next to it."""

    def __init__(self, folder: Path, *command: str, installed: bool = False, source: Path = SOURCE) -> None:
        log = folder.parent / f"{folder.name}.stderr"
        no_browser = () if "--browser" in command else ("--no-browser",)
        with log.open("a") as errors:
            self.process = subprocess.Popen(
                [INSTALLED if installed else "cleanset", *command, *no_browser], cwd=folder, text=True,
                stdout=subprocess.PIPE, stderr=errors, env=os.environ | forking(source),
            )  # fmt: skip
        assert self.process.stdout is not None
        found = next(filter(None, (re.search(r"https?://\S+", line) for line in self.process.stdout)), None)
        assert found, log.read_text()
        self.address = found[0]

    @property
    def page(self) -> str:
        """The address without its token."""
        return self.address.partition("?")[0]

    @property
    def cookie(self) -> dict[str, str]:
        """The header by which a browser is known that has opened the address."""
        person = urlsplit(self.address).path.strip("/")
        return {"Cookie": f"cleanset-{self.port}-{person}={self.address.partition('?token=')[2]}"}

    def link(self, query: str) -> str:
        """The address with more of a query, such as `class=n01443537`."""
        return f"{self.address}{'&' if '?' in self.address else '?'}{query}"

    @property
    def port(self) -> int:
        return int(re.search(r":(\d+)/", self.address)[1])  # type: ignore[index]

    def kill(self) -> None:
        """kill -9; a forked process ends after its command, and then nothing holds their output any more."""
        self.process.kill()
        if self.process.returncode is None:
            self.process.communicate()


def pinch(page: Page, scale: float) -> None:
    """Enlarge the page as two fingers do, around its upper left corner."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setPageScaleFactor", {"pageScaleFactor": scale})
    page.wait_for_function(f"Math.abs(visualViewport.scale - {scale}) < 0.01")


def chromium_path() -> str | None:
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


@contextmanager
def started(engine: BrowserType, *options: str) -> Iterator[Browser]:
    """Chromium with further options on its command line."""
    browser = engine.launch(executable_path=chromium_path(), args=[*OPTIONS, *options])
    try:
        yield browser
    finally:
        browser.close()


SCREENS = [pytest.param(each, marks=() if each == 1.25 else pytest.mark.exhaustive) for each in (1, 1.25, 1.5, 2, 3)]
"""Pixel ratios."""


@contextmanager
def on_screen_of(ratio: float, chromium: Browser) -> Iterator[Page]:
    """A page in a window of `WINDOW` on a screen that really has this pixel ratio, as at this zoom of a browser.

    There, lengths are rounded to device pixels; where developer tools emulate the ratio they are not.
    """
    with started(chromium.browser_type, f"--force-device-scale-factor={ratio}") as browser:
        page = browser.new_context(no_viewport=True).new_page()
        page.set_default_timeout(PATIENCE)
        assert page.evaluate("devicePixelRatio") == pytest.approx(ratio)
        resize_window(page, WINDOW)
        yield page


def resize_window(page: Page, size: ViewportSize) -> None:
    """Give the window of a page on a screen of its own this size in CSS pixels."""
    session = page.context.new_cdp_session(page)
    window = session.send("Browser.getWindowForTarget")["windowId"]
    session.send("Browser.setWindowBounds", {"windowId": window, "bounds": dict(size)})
    page.wait_for_function(
        "size => Math.max(Math.abs(innerWidth - size.width), Math.abs(innerHeight - size.height)) <= 1", arg=size
    )


class Pages:
    """Pages of a file's tests, with one cache; each serves many tests, as a new one takes twice as long to open."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._idle: list[Page] = []
        self._taken: list[Page] = []
        self._errors: list[str] = []

    def take(self) -> Page:
        """A page with nothing of the test before."""
        page = self._idle.pop() if self._idle else self.new()
        self._taken.append(page)
        return page

    def new(self, script: str = "") -> Page:
        """A page of one test, in which `script` runs before the page's own scripts."""
        page = self._context.new_page()
        page.on("pageerror", lambda error: self._errors.append(str(error)))
        if script:
            page.add_init_script(script)
        return page

    def end_test(self) -> list[str]:
        """Empty the pages that were taken, and close the others; the errors of all their scripts in the test."""
        errors, self._taken, taken = self._errors[:], [], self._taken
        for page in self._context.pages:
            try:
                if page in taken:
                    self._empty(page)
                    self._idle.append(page)
                elif page not in self._idle:
                    page.close()
            except Error as error:
                errors.append(f"a page crashed: {error}")
                page.close()
        self._context.clear_cookies()
        self._errors.clear()
        return errors

    def _empty(self, page: Page) -> None:
        page.unroute_all()
        self._leave(page)
        page.set_viewport_size(WINDOW)
        page.emulate_media(color_scheme="null")
        page.mouse.move(0, 0)

    @staticmethod
    def _leave(page: Page, attempts: int = 5) -> None:
        """Leave a page, which may be on its way to another when a test ends."""
        # unlike `evaluate`, this waits for the page that is coming, and not for ever
        page.wait_for_function("addEventListener('pagehide', () => sessionStorage.clear()) || true", timeout=PATIENCE)
        for attempt in range(attempts):
            try:
                page.goto("about:blank")
                return
            except Error as error:
                if attempt == attempts - 1 or "interrupted by another" not in str(error):
                    raise


class Tab:
    OPENED = "#view"
    """What the page has once it is open."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        page.goto(address)
        self.ready()

    def ready(self) -> None:
        """The view is there with all its images, and the server listens."""
        self.page.wait_for_selector(self.OPENED, timeout=PATIENCE, state="attached")
        self.page.wait_for_function(
            "window.did_handshake !== false && [...document.querySelectorAll('#view img')].every(i => i.complete)",
            timeout=PATIENCE,
        )

    def of_view(self, name: str) -> str:
        return self.page.get_attribute("#view", f"data-{name}") or ""

    @property
    def mode(self) -> str:
        return self.of_view("mode")

    @property
    def notice(self) -> str:
        """What the page shows, as words."""
        return " ".join(dict.fromkeys(self.page.locator(".notice").all_inner_texts()))

    def press(self, *keys: str) -> None:
        """Press keys, each when the one before was answered and the images are there."""
        for key in keys:
            before = self.of_view("pressed")
            self.page.keyboard.press(key)
            self.answered(before)

    def answered(self, before: str) -> None:
        """Wait for the answer to a key or click."""
        self.page.wait_for_function(
            "before => document.querySelector('#view').dataset.pressed !== before"
            " && [...document.querySelectorAll('#view img')].every(i => i.complete)",
            arg=before, timeout=PATIENCE,
        )  # fmt: skip
