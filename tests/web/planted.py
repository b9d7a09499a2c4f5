"""Scripts planted wherever a page shows a text, and what a browser makes of them."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from playwright.sync_api import Browser, Page

from cleanset.report import pages as report_pages
from cleanset.review.page import view
from cleanset.studies.contest.judge_page import server as judge_page
from cleanset.web import pages as web_pages
from tests import own_edition
from tests.edition.test_about import CARD

SOURCE = Path(__file__).resolve().parents[2] / "src" / "cleanset"

SCRIPT = '</script><script>planted()</script>"><img src=x onerror=planted()>{{7*7}} [x](javascript:planted())'
FILE = '"><img src=x onerror=planted()>.png'
"""The same as the name of a file, which has no slash."""

ARMED = "globalThis.runs = 0; globalThis.planted = () => { globalThis.runs += 1; };"
"""What runs before a page's own scripts."""

LIVE = """() => [...document.querySelectorAll("[onerror], [href^='javascript:' i], [src='x']")]
    .map((each) => each.outerHTML.slice(0, 300))"""
"""The elements that a planted text became."""


class PlantingEnvironment(jinja2.Environment):
    """An environment of pages, in which every text that a template prints has a script behind it."""

    used: set[Path]

    def __init__(self, used: set[Path], **options: Any) -> None:
        super().__init__(finalize=with_script, **options)
        self.used = used

    def get_template(self, *given: Any, **options: Any) -> jinja2.Template:
        """The template, which counts as used."""
        found = super().get_template(*given, **options)
        self.used.add(Path(str(found.filename)).relative_to(SOURCE))
        return found


def with_script(value: object) -> object:
    """What a template prints instead of a value: markup is already escaped."""
    return f"{value}{SCRIPT}" if isinstance(value, str) and not hasattr(value, "__html__") else value


@contextmanager
def planting(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[Path]]:
    """The templates that are used meanwhile."""
    used: set[Path] = set()
    for module in (report_pages, web_pages):
        monkeypatch.setattr(module, "Environment", lambda **options: PlantingEnvironment(used, **options))
    caches = (view._templates, judge_page._templates)
    for each in caches:
        each.cache_clear()
    yield used
    for each in caches:
        each.cache_clear()


def own_with_scripts(folder: Path) -> Path:
    """A finished edition of your own images with a script in every text that somebody writes."""
    classes = {"a": f"first {SCRIPT}", "b": f"second {SCRIPT}"}
    names = {key: [f"{key}/{file}" for file in ("000.png", "001.png", "002.png", FILE)] for key in classes}
    table(folder / "names.csv", [["class", "name"], *([key, name] for key, name in classes.items())])
    rows = [[file, key, f"group {key} {SCRIPT}"] for key, files in names.items() for file in files]
    table(folder / "labels.csv", [["file", "class", "group"], *rows])
    images = dict.fromkeys(("source", "licence", "people", "group", "access"), SCRIPT)
    about = CARD | {
        "title": f"title {SCRIPT}", "authors": [{"name": SCRIPT, "affiliation": SCRIPT}], "licence": SCRIPT,
        "funding": [SCRIPT], "keywords": [SCRIPT],
        "images": images | {"url": f"https://x.org/{SCRIPT}", "citation": f"```\n{SCRIPT}\n```"},
    }  # fmt: skip
    (folder / "card.yaml").write_text(yaml.safe_dump(about))
    options = ("--labels", "labels.csv", "--names", "names.csv", "--card", "card.yaml")
    copies = {f"{key}/{FILE}": f"{key}/000.png" for key in classes}
    edition = own_edition.make(folder, keys=list(classes), each=3, copies=copies, options=options)
    own_edition.change_params(edition, export={"date": "2026-01-31"})
    flawed = {"verdict": "reject", "reason": "blur", "note": SCRIPT}
    doubted = {"verdict": "unsure", "note": SCRIPT}
    own_edition.review(edition, "ada", {"a/001.png": flawed, "b/001.png": flawed, f"b/{FILE}": doubted})
    own_edition.review(edition, "bob", {"a/001.png": flawed, "b/002.png": flawed})
    (edition.reviews / "GUIDELINES.md").write_text(f"# Rules\n\n{SCRIPT}\n\n## Blur\n\n{SCRIPT}\n")
    own_edition.run(edition, "crops", "score_crops", "review_apply", "export", "count")
    return edition.folder


def table(path: Path, rows: list[list[str]]) -> None:
    cells = ('"' + cell.replace('"', '""') + '"' for row in rows for cell in row)
    text = "".join(",".join(next(cells) for _ in row) + "\n" for row in rows)
    path.write_text(text)


def opened(browser: Browser, page: Path | str) -> Page:
    """A page from the disk or a server in which a planted script would be counted."""
    found = browser.new_page()
    found.add_init_script(ARMED)
    found.goto(page.resolve().as_uri() if isinstance(page, Path) else page)
    return found


def check(page: Page, *, is_planted: bool = True) -> None:
    """No script ran, none is there to run, and the text is shown unchanged."""
    page.wait_for_load_state()
    # a broken image is reported after the page has loaded
    page.wait_for_timeout(50)
    assert page.evaluate("runs") == 0
    live = page.evaluate(LIVE)
    assert live == [], live
    text = page.evaluate("document.documentElement.textContent")
    assert "49" not in text or "{{7*7}}" in text
    assert not is_planted or "<script>planted()</script>" in text


def written(folder: Path, name: str, html: str) -> Path:
    """A file with a page, or with a part of one."""
    path = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.html"
    path.write_text(html if "<html" in html else f"<!doctype html><meta charset=utf-8><title>{path.stem}</title>{html}")
    return path
