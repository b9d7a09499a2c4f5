"""A real browser, the report of the sample edition, and small editions with any number of models."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.checkouts import Checkout


@pytest.fixture(scope="session")
def report(built: Checkout) -> Path:
    """The report of the sample edition."""
    return built.folder / "report"


@pytest.fixture(scope="session")
def index_page(report: Path) -> BeautifulSoup:
    return BeautifulSoup((report / "index.html").read_text("utf-8"), "html.parser")
