"""On the pages of report, look and evaluate nothing is cut, covered, outside the window, too small or too pale."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page

import cleanset as package
from cleanset.edition.paths import Edition
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.evaluate import run
from cleanset.report import look
from tests.boxes import WINDOWS, problems
from tests.checkouts import Checkout

PAGES = ("index.html", "classes.html", "rejected.html", "sheet-1.html", "classes/n07734744.html")
"""One of each kind of a report."""
LEFT = ["image", *(f"{column}_{rank}" for column in ("class", "probability") for rank in range(1, 6))]
BROKEN = {
    "11px": ("h1 { font-size: 11px; }", "11 px: h1"),
    "pale": ("h1 { color: #aaa; }", "contrast 2."),
    "over": ("h1 { margin-bottom: -30px; }", "overlapping: h1"),
    "beside": ("h1 { position: relative; left: 90vw; white-space: nowrap; }", "beside the window: h1"),
}
"""Rules that break a page, and what is found then."""


@pytest.fixture
def page(browser: Browser) -> Page:
    return browser.new_page()


@pytest.fixture(scope="module")
def export(built: Checkout) -> Path:
    return built.folder / "data" / "export" / "standard"


@pytest.fixture(scope="module")
def pages(export: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of look, and that of evaluate on two models."""
    out = tmp_path_factory.mktemp("pages")
    look.write(str(export), out / "look")
    images = package.load("standard", export)
    rng = np.random.default_rng(0)
    for name in ("convnext_large.fb_in22k_ft_in1k_384", "vit"):
        rows = []
        for image, label, record in images:
            first = label if rng.random() < 0.8 else (label + 1) % 1000
            others = [(first + step) % 1000 for step in (2, 3, 5, 7)]
            top = rng.uniform(0.5, 0.99)
            rows.append([Path(record["file"]).stem, first, *others, top, *((1 - top) / step for step in (4, 5, 6, 7))])
            image.close()
        pd.DataFrame(rows, columns=LEFT).to_csv(out / f"{name}.csv", index=False)
    predictions = [f"{path.stem}={path}" for path in sorted(out.glob("*.csv"))]
    run(Edition(out), Arguments(str(export), [], predictions=predictions, report=out / "evaluate"))
    return {name: out / name / "index.html" for name in ("look", "evaluate")}


@pytest.mark.long
@pytest.mark.parametrize("name", [PAGES[0], *(pytest.param(each, marks=pytest.mark.long) for each in PAGES[1:])])
def test_the_report(name: str, report: Path, page: Page) -> None:
    page.goto((report / name).as_uri())
    found = problems(page, f"report, {name}")
    if page.locator("a.enlarge").count():
        page.set_viewport_size({"width": 1280, "height": 800})
        page.locator("a.enlarge").first.click()
        page.wait_for_selector("dialog[open]")
        found += problems(page, f"report, {name}, enlarged", inside="dialog[open]")
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("name", ["look", "evaluate"])
def test_a_set_and_its_evaluation(name: str, pages: dict[str, Path], page: Page) -> None:
    page.goto(pages[name].as_uri())
    found = problems(page, f"page of {name}")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    found += problems(page, f"page of {name}, all open")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_page_is_found(broken: str, report: Path, page: Page) -> None:
    rule, expected = BROKEN[broken]
    page.goto((report / "index.html").as_uri())
    assert problems(page, "report", windows=WINDOWS[:1]) == []
    page.add_style_tag(content=rule)
    found = problems(page, "report", windows=WINDOWS[:1])
    assert any(each.startswith(f"report, 1280 x 800, light: {expected}") for each in found), found
