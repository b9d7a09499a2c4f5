"""A real browser, a real server, and the sample edition with empty reviews."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser_tab import Pages, Server
from tests.checkouts import Checkout
from tests.once import once

from .reviewing import Reviewing, TabAlone, reviews, serve
from .shared_server import SharedServer

Serve = Callable[..., Server]
Open = Callable[..., Reviewing]


def with_empty_reviews(reviewable: Checkout, folder: Path) -> Path:
    """The sample edition with its candidates, and with empty reviews."""
    (folder / "reviews").mkdir(parents=True)
    shutil.copy(reviewable.folder / "params.yaml", folder)
    (folder / "data").symlink_to(reviewable.folder / "data")
    return folder


@pytest.fixture(scope="session")
def reviewable(
    repository: Path, pristine: Checkout, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Checkout:
    """A clone with the sample's candidates; not to be changed. The stages after these take longer, and are not shown.

    They come from the checkout's cache even if a stage would run again, so that a mutation of the page is found sooner.
    Without a cache they are those of `built`, which other tests need, too.
    """
    cache = repository / ".dvc" / "cache"

    def make(folder: Path) -> None:
        if not (cache / "files").is_dir():
            built: Checkout = request.getfixturevalue("built")
            built.clone_with_data(folder / "cleanset")
            return
        clone = pristine.clone(folder / "cleanset")
        clone.pull_what_is_in(cache)
        if not (clone.folder / "data" / "candidates").is_dir():
            clone.run("dvc", "repro", "select")

    return Checkout(once(tmp_path_factory, "reviewable", make) / "cleanset")


@pytest.fixture
def edition(reviewable: Checkout, tmp_path: Path) -> Path:
    return with_empty_reviews(reviewable, tmp_path / "edition")


@pytest.fixture
def tab(edition: Path) -> TabAlone:
    """A tab of ada, without a browser."""
    tab = TabAlone(edition)
    tab.type()
    return tab


@pytest.fixture(scope="session")
def unchanged(reviewable: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests that save no verdict: to start one takes longer than most of them."""
    folder = with_empty_reviews(reviewable, tmp_path_factory.mktemp("unchanged") / "edition")
    server = serve(folder, "ada")
    yield server
    server.kill()
    assert reviews(folder) == {}, "a test with the fixture unchanged has saved a verdict"


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    server = SharedServer(tmp_path_factory.mktemp("shared") / "stderr")
    yield server
    server.close()


@pytest.fixture
def start(edition: Path, request: pytest.FixtureRequest) -> Iterator[Serve]:
    """Serve the page of a reviewer: by the server of all tests, or, `alone` or with options, by one of its own."""
    servers: list[Server] = []
    begun: list[Path] = []

    def started(reviewer: str = "ada", *options: str, installed: bool = False, alone: bool = False) -> Server:
        if not (options or installed or alone):
            shared: SharedServer = request.getfixturevalue("shared")
            begun.append(edition)
            return shared.page(reviewer, edition if len(begun) == 1 else None)
        servers.append(serve(edition, reviewer, *options, installed=installed))
        return servers[-1]

    yield started
    for server in servers:
        server.kill()


@pytest.fixture
def visit(file_pages: Pages) -> Open:
    """Open pages; `script` runs in a page before its own scripts."""

    def opened(server: Server, query: str = "", script: str = "") -> Reviewing:
        page = file_pages.new(script) if script else file_pages.take()
        page.clock.resume()  # the clock of the context may still be stopped by the test before
        return Reviewing(page, server.link(query) if query else server.address)

    return opened
