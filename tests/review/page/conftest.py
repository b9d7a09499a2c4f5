"""A real browser, a real server, and the sample edition with empty reviews."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page

from tests.browser_tab import Server
from tests.checkouts import Checkout

from .reviewing import Reviewing, serve

Serve = Callable[..., Server]
Open = Callable[..., Reviewing]


@pytest.fixture
def edition(built: Checkout, tmp_path: Path) -> Path:
    """The sample edition as it was built, with empty reviews."""
    folder = tmp_path / "edition"
    (folder / "reviews").mkdir(parents=True)
    shutil.copy(built.folder / "params.yaml", folder)
    (folder / "data").symlink_to(built.folder / "data")
    return folder


@pytest.fixture
def start(edition: Path) -> Iterator[Serve]:
    """Start servers, which end with the test."""
    servers: list[Server] = []

    def started(reviewer: str = "ada", *options: str, installed: bool = False) -> Server:
        servers.append(serve(edition, reviewer, *options, installed=installed))
        return servers[-1]

    yield started
    for server in servers:
        server.kill()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    """Open pages, which close with the test; an error in the page's scripts fails it."""
    pages: list[Page] = []
    failures: list[str] = []

    def opened(server: Server, path: str = "") -> Reviewing:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.on("pageerror", lambda error: failures.append(str(error)))
        pages.append(page)
        return Reviewing(page, server.address + path)

    yield opened
    for page in pages:
        try:
            page.close()
        except Error:
            failures.append("a page crashed")
    assert failures == []
