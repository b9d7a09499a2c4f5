"""A browser's tab with a page whose view the server draws anew after each key, and a person in front of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page

PATIENCE = 60_000
"""Milliseconds."""


def started(folder: Path, *command: str) -> tuple["subprocess.Popen[str]", str]:
    """A `cleanset` command that serves a page, in a process of its own, and the address that it prints."""
    log = folder.parent / f"{folder.name}.stderr"
    with log.open("a") as errors:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "cleanset"), *command, "--no-browser"],
            cwd=folder, env=os.environ, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found, log.read_text()
    return process, found[0]


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
        """What the page tells, as words."""
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
