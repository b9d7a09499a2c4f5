"""A real browser, the report of the sample edition, and small editions with any number of models."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, sync_playwright

from checkouts import Checkout

OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium; without one skips, saying so; fails if CLEANSET_NO_SKIP is set."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    reason = "no Chromium: install the package chromium"
    if path is None and os.environ.get("CLEANSET_NO_SKIP"):
        pytest.fail(reason)
    if path is None:
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(built: Checkout) -> Path:
    """The report of the sample edition."""
    return built.folder / "report"


@pytest.fixture(scope="session")
def index_page(report: Path) -> BeautifulSoup:
    return BeautifulSoup((report / "index.html").read_text("utf-8"), "html.parser")
