"""kill -9 at random moments, and two tabs at once: real processes and files, no browser."""

import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings

from cleanset.edition.paths import Edition
from cleanset.review.page.library import Library, open_library
from cleanset.review.page.server import open_session
from cleanset.review.page.tab import Tab
from cleanset.review.page.view import cards
from tests.properties import FAST
from tests.review.texts import sent
from tests.time_limits import at_most

from .reviewing import reviews

KILLS = 20 if settings.get_current_profile_name() != FAST else 10
Flat = dict[str, str]
"""The verdict by image id."""


def on_disk(edition: Path) -> Flat:
    return {
        image_id: entry["verdict"] for of_class in reviews(edition).values() for image_id, entry in of_class.items()
    }


def own(tab: Tab) -> Flat:
    """The verdicts as the page shows them."""
    return {
        image_id: votes["ada"].review.verdict.kind
        for status in tab.session.statuses.values()
        for (_, image_id), votes in status.votes.items()
        if "ada" in votes
    }


def tab_without_hints(edition: Path, library: Library) -> Tab:
    """A tab that measures no image: its process may be killed."""
    tab = Tab(open_session(Edition(edition), library, "ada"))
    tab.start()
    tab.history.shown = {card.image.image_id: card.own for card in cards(tab)}
    return tab


def press(tab: Tab, key: str) -> None:
    """Press a key with all images on the screen for long enough."""
    shown = tab.cursor.images()
    seconds = dict.fromkeys(shown, 9.0)
    screen: dict[str, Any] = {"subject": tab.wnid, "seconds": seconds, "answered": tab.pressed, "reason": "border"}
    tab.press(sent(key, shown, card=tab.cursor.focus, **screen))
    tab.session.refresh_class(tab.cursor.class_index)
    tab.history.shown = {card.image.image_id: card.own for card in cards(tab)}


def to_change(tab: Tab, key: str) -> list[str]:
    """The images on which a key will change the verdict."""
    if key == "z":
        return list(tab.history.steps[-1].changes)
    return tab.cursor.queued() if key == "a" else [tab.cursor.focus or ""]


def child(work: Callable[[int], None]) -> tuple[int, int]:
    """Fork a process that does `work` with the end of a pipe; its id, and the other end."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(reading)
            work(writing)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    return process, reading


def told(reading: int, first: bytes = b"") -> list[tuple[Flat, list[str]]]:
    """The whole lines that a process wrote: the verdicts that it showed, and those that its next key changes."""
    with os.fdopen(reading, "rb") as pipe:
        lines = (first + pipe.read()).split(b"\n")[:-1]
    return [tuple(json.loads(line)) for line in lines]


@pytest.mark.exhaustive
def test_no_verdict_is_lost_in_kills_at_random_moments(edition: Path) -> None:
    """What a tab showed is on the disk, and at most the one key after it, with all of its images or none."""
    rng, library = Random(20_11), open_library(Edition(edition))

    def work(writing: int) -> None:
        keys = Random(rounds)
        tab = tab_without_hints(edition, library)
        while not tab.ended:
            key = keys.choice("acgz" if tab.history.steps else "acg")
            os.write(writing, json.dumps((own(tab), to_change(tab, key))).encode() + b"\n")
            press(tab, {"g": "guess"}.get(key, key))

    for rounds in range(KILLS):
        process, reading = child(work)
        first = os.read(reading, 1)  # it has begun
        time.sleep(rng.uniform(0, 0.1))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        steps, found = told(reading, first), on_disk(edition)
        if steps:
            shown, next_images = steps[-1]
            changed = {
                image_id for image_id in shown.keys() | found.keys() if shown.get(image_id) != found.get(image_id)
            }
            assert changed in (set(), set(next_images)), rounds
        if rounds % 10 == 9:  # else all classes would be settled
            for path in (edition / "reviews" / "ada").glob("*.yaml"):
                path.unlink()


@pytest.mark.long
def test_no_verdict_is_lost_in_two_tabs(edition: Path) -> None:
    """Two processes of one reviewer in the same classes: all that either showed as saved is on the disk."""
    library = open_library(Edition(edition))

    def work(seed: int) -> Callable[[int], None]:
        def presses(writing: int) -> None:
            keys, tab = Random(seed), tab_without_hints(edition, library)
            while not tab.ended:
                # no verdict of the other tab is changed
                press(tab, keys.choice(["a", "c", "guess", "c"]) if tab.cursor.focus in tab.cursor.asked() else "a")
            os.write(writing, json.dumps((own(tab), [])).encode() + b"\n")

        return presses

    tabs = [child(work(seed)) for seed in (1, 2)]
    with at_most(60):
        ends = [told(reading)[-1][0] for _, reading in tabs]
    for process, _ in tabs:
        os.waitpid(process, 0)
    found = on_disk(edition)
    for end in ends:
        assert end.items() <= found.items()
    assert set().union(*ends) == found.keys()
