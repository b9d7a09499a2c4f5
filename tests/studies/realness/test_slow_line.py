"""A slow line: what is on the screen arrives first, no byte comes twice, and people see that something is coming."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Request

from tests.browser_tab import PATIENCE, Server
from tests.remotes.servers import breaking, free_port
from tests.studies.realness.conftest import ANSWERABLE, SIZES, command, rows

BYTES_A_SECOND = 125_000
"""1 Mbit/s."""
HEAD_BYTES = 5_000
"""More than a PNG and its reply have besides the pixels."""


def planned_with(folder: Path, export_folder: Path, side: int) -> Path:
    """A plan whose images have this many pixels a side."""
    (folder / "attacked").mkdir()
    for number in range(8):
        pixels = np.random.default_rng(number).integers(0, 256, (side, side, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "attacked" / f"{number}.png")
    command("plan", "--set", export_folder, "--attacked", folder / "attacked", "--out", folder / "plan", *SIZES)
    return folder / "plan"


@contextmanager
def slow_page(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.get_by_role("button", name="Begin").wait_for()
    page.context.new_cdp_session(page).send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 40, "downloadThroughput": BYTES_A_SECOND, "uploadThroughput": BYTES_A_SECOND},
    )
    yield page
    page.context.close()


def names_of(page: Page) -> set[str]:
    return set(page.locator("#study img").evaluate_all("all => all.map(e => e.dataset.file.split('/').pop())"))


@pytest.mark.long
@pytest.mark.parametrize("side", [224, pytest.param(512, marks=pytest.mark.exhaustive)])
def test_the_first_pair_takes_what_its_bytes_take(
    export_folder: Path, browser: Browser, tmp_path: Path, side: int
) -> None:
    """And the next images are asked for when it is there; meanwhile the page says how much has come."""
    plan = planned_with(tmp_path, export_folder, side)
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0")
    with slow_page(browser, server.address) as page:
        asked: list[str] = []
        page.on(
            "request",
            lambda request: asked.append(request.url.rpartition("/")[2]) if "/images/" in request.url else None,
        )
        page.get_by_role("button", name="Begin").click()
        page.locator(".progress").wait_for()
        began = time.monotonic()
        page.wait_for_function("[...document.querySelectorAll('.loading')].some(e => parseInt(e.innerText) > 20)")
        first = names_of(page)
        assert set(asked) == first
        page.wait_for_selector(ANSWERABLE)
        seconds = time.monotonic() - began
        needed = 2 * (3 * side * side) / BYTES_A_SECOND
        print(f"{side} px: {seconds:.1f} s for {needed:.1f} s of bytes")
        assert needed * 0.9 <= seconds <= needed * 1.15 + 1.5  # 0.3 s in sight, and the time of the test itself
        assert page.locator(".loading").count() == 0
        page.wait_for_timeout(500)
        (*_, person) = rows(plan / "people.csv")
        trials = [each for each in rows(plan / "trials.csv") if each["list"] == person["list"]]
        assert asked[2:] == [trials[1]["file"]]  # its right one comes after that
        page.keyboard.press("1")
        page.locator(".progress", has_text="2 of 12").wait_for()
        page.wait_for_selector(ANSWERABLE)
        assert len(asked) == len(set(asked))
    server.kill()


@pytest.mark.exhaustive
def test_a_connection_that_breaks_loses_no_byte(export_folder: Path, browser: Browser, tmp_path: Path) -> None:
    """The rest is asked for alone, and the image is that of the file."""
    plan = planned_with(tmp_path, export_folder, 512)
    size = 3 * 512 * 512
    port = free_port()
    with breaking(port, after=600_000) as broken:
        url = f"http://localhost:{broken}"
        server = Server(plan, "study", "serve", "--plan", ".", "--port", str(port), "--public-url", url)
        check_ranges(plan, browser, url, size)
        server.kill()


def check_ranges(plan: Path, browser: Browser, url: str, size: int) -> None:
    with slow_page(browser, url) as page:
        ranges: list[tuple[str, str]] = []

        def note(request: Request) -> None:
            if "/images/" in request.url:
                ranges.append((request.url.rpartition("/")[2], request.headers.get("range", "")))

        page.on("request", note)
        page.get_by_role("button", name="Begin").click()
        page.get_by_text("An image has not loaded.").wait_for()
        page.wait_for_selector(ANSWERABLE)
        assert not page.get_by_text("An image has not loaded.").is_visible()
        shown = {name: [each for found, each in ranges if found == name] for name in names_of(page)}
        for asked in shown.values():
            starts = [int(each.removeprefix("bytes=").removesuffix("-")) for each in asked[1:]]
            assert asked[0] == ""
            assert starts == sorted(set(starts))  # each continues behind the one before
            assert all(100_000 < start < size + HEAD_BYTES for start in starts)
        assert any(len(asked) > 1 for asked in shown.values())
        for each in page.locator("#study img").all():
            data = each.evaluate("async e => Array.from(new Uint8Array(await (await fetch(e.src)).arrayBuffer()))")
            name = (each.get_attribute("data-file") or "").rpartition("/")[2]
            assert bytes(data) == (plan / "page" / "images" / name).read_bytes()
