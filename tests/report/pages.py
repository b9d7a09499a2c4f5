"""Reading the report's pages as a person does: tables by their heading, without looking at the code."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Browser, Page, Request

AXE = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


def tables(page: BeautifulSoup, section: str) -> list[list[list[str]]]:
    """The rows of each table in a section, the header first, each cell's text without the white space around it."""
    return [[cells(row) for row in table("tr")] for table in page.select(f"#{section} table")]


def cells(row: Tag) -> list[str]:
    return [" ".join(cell.get_text().split()) for cell in row(["th", "td"])]


def numbers(rows: list[list[str]]) -> dict[str, list[int]]:
    """The whole numbers of each row but the header, by its first cell."""
    return {first: [int(cell.replace(",", "")) for cell in others] for first, *others in rows[1:]}


def all_pages(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.html"))


def rows_under(figure: Tag) -> list[list[str]]:
    """The lines of the table under an image, without its heading."""
    return [cells(row) for row in figure.select("figcaption tbody tr")]


def opened(browser: Browser, folder: Path, width: int = 1280) -> Iterator[tuple[Path, Page]]:
    """Each page in a window; fails on an error in the console and on a request that leaves the folder."""
    inside = f"{folder.resolve().as_uri()}/"
    page = browser.new_page(viewport={"width": width, "height": 900})
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("requestfailed", lambda request: trouble.extend(failed(request)))
    page.on("request", lambda request: trouble.extend(outside(request.url, inside)))
    for path in all_pages(folder):
        page.goto(path.resolve().as_uri())
        yield path, page
        assert trouble == [], path.name
    page.close()


def failed(request: Request) -> list[str]:
    """Nothing for an image that was not read yet when the next page was opened."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"failed: {request.url[:100]}: {request.failure}"]


def violations(page: Page, inside: str = "html") -> list[tuple[str, list[str]]]:
    """What axe finds wrong with a page, or with an element of it, as currently shown."""
    if not page.evaluate("() => window.axe !== undefined"):
        page.evaluate(AXE)
    # of what passes, one node each
    found: dict[str, Any] = page.evaluate("inside => axe.run(inside, {resultTypes: ['violations']})", inside)
    assert len(found["passes"]) > (10 if inside == "html" else 5)
    return [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found["violations"]]


def outside(url: str, inside: str) -> list[str]:
    return [] if url.startswith(inside) or urlsplit(url).scheme == "data" else [f"left the folder: {url[:100]}"]
