"""A real browser, a real server, and the sample edition with empty reviews."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page

from tests.browser_tab import Server
from tests.checkouts import Checkout

from .reviewing import Reviewing, reviews, serve

Serve = Callable[..., Server]
Open = Callable[..., Reviewing]


def with_empty_reviews(built: Checkout, folder: Path) -> Path:
    """The sample edition as it was built, with empty reviews."""
    (folder / "reviews").mkdir(parents=True)
    shutil.copy(built.folder / "params.yaml", folder)
    (folder / "data").symlink_to(built.folder / "data")
    return folder


@pytest.fixture
def edition(built: Checkout, tmp_path: Path) -> Path:
    return with_empty_reviews(built, tmp_path / "edition")


@pytest.fixture(scope="session")
def unchanged(built: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests that save no verdict: to start one takes longer than most of them."""
    folder = with_empty_reviews(built, tmp_path_factory.mktemp("unchanged") / "edition")
    server = serve(folder, "ada")
    yield server
    server.kill()
    assert reviews(folder) == {}, "a test with the fixture unchanged has saved a verdict"


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
