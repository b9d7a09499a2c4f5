"""What a judge does at the page, and the server that they started."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Page

from cleanset.studies.contest.judge_page.session import JudgeSession
from cleanset.studies.contest.log import read
from cleanset.studies.contest.standing import replay
from tests.browser_tab import Server, Tab
from tests.studies.contest.made import day
from tests.studies.contest.sample_copy import cut

ADA, BEN = "3f9c2a71", "8b04d6e5"
DAY, WEEK = "2026-11-07", "2026-11-06"
PUBLISHED = 14
"""Lines of the log up to the publication of the first week."""


def serve(contest: Path, judge: str, *options: str, on: str = DAY, installed: bool = False) -> Server:
    """`cleanset contest judge`, once it serves its page."""
    return Server(contest, "contest", "judge", "--judge", judge, "--on", on, *options, installed=installed)


def unjudged(repository: Path, folder: Path) -> Path:
    """The sample's contest when its first week is published, and before anybody has judged anything."""
    shutil.copytree(repository / "studies" / "contest", folder / "contest", ignore=shutil.ignore_patterns("answers"))
    cut(folder / "contest", PUBLISHED)
    return folder / "contest"


def session_of(contest: Path, judge: str, on: str) -> JudgeSession:
    """A judge's work, as a server begins it on a day."""
    return JudgeSession(contest, replay(read(contest), day(on)), judge)


def answers(contest: Path, judge: str = ADA, week: str = WEEK) -> dict[str, dict[str, Any]]:
    """What is on disk."""
    path = contest / "answers" / judge / f"{week}.yaml"
    found: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["answers"] if path.exists() else {}
    return found


class Judging(Tab):
    """A tab, and a judge in front of it, who looks at each question before they answer it.

    The page's clock runs as any other; `look` sets it forward, instead of waiting.
    """

    def __init__(self, page: Page, address: str) -> None:
        page.clock.install()
        page.clock.resume()  # the clock of the context may still be stopped by the test before
        super().__init__(page, address)

    @property
    def step(self) -> str:
        return self.of_view("step")

    @property
    def token(self) -> str:
        return self.page.get_attribute("img[data-image]", "data-image") or ""

    def press(self, *keys: str) -> None:
        """Press keys as a judge who looks at the question before they answer."""
        for key in keys:
            if self.mode == "image" and key not in ("z", "s", "?"):
                self.look()
            super().press(key)

    def look(self) -> None:
        """Let the page's clock continue until an answer to the question counts."""
        self.page.clock.run_for(700)

    def click_corner(self, x: int, y: int) -> None:
        """Click on a point of the image, given in its own pixels, whose middle is on the screen."""
        box = self.page.locator("#outline").bounding_box()
        size = self.page.get_attribute("#outline", "viewBox")
        assert box
        assert size
        width, height = map(int, size.split()[2:])
        before = self.of_view("pressed")
        self.page.mouse.click(box["x"] + x * box["width"] / width, box["y"] + y * box["height"] / height)
        self.answered(before)

    def draw(self, corners: Sequence[Sequence[int]]) -> None:
        self.look()
        for x, y in corners:
            self.click_corner(x, y)
