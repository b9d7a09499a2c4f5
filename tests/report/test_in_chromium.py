"""The sample edition's report in a real browser: nothing missing, nothing fetched, nothing wider than the window."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from .pages import all_pages, opened, soup


def test_every_thumbnail_loads_and_nothing_is_fetched(report: Path, browser: Browser) -> None:
    images = 0
    for _, page in opened(browser, report):
        sizes = page.evaluate("""async () => {
            const images = [...document.images];
            await Promise.all(images.map((image) => image.decode()));
            return images.map((image) => [image.naturalWidth, image.naturalHeight, image.width, image.height]);
        }""")
        assert all(wide == width and high == height for wide, high, width, height in sizes)
        assert all(0 < max(width, height) <= 128 for _, _, width, height in sizes)
        images += len(sizes)
    assert images > 100


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_window(width: int, report: Path, browser: Browser) -> None:
    for path, page in opened(browser, report, width):
        assert page.evaluate("document.documentElement.scrollWidth") == width, path.name


def test_the_tables_of_three_models_fit_a_telephone(report: Path, browser: Browser) -> None:
    """All but those of many columns; what does not fit can be scrolled by keyboard, and has a name."""
    for path, page in opened(browser, report, 390):
        cut = page.evaluate("""[...document.querySelectorAll(".scroll")]
            .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel)""")
        assert set(cut) <= {"Sets", "Rejected", "Short classes", "All classes"}, path.name
        regions = page.evaluate(
            '[...document.querySelectorAll(".scroll")].map((each) => [each.tabIndex, each.ariaLabel])'
        )
        assert all(tab == 0 and label for tab, label in regions)


def test_images_stand_side_by_side_on_a_telephone(report: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto((report / "sheet-1.html").as_uri())
    first, second = (page.locator(".class li").nth(place).bounding_box() for place in (0, 1))
    assert first is not None
    assert second is not None
    assert first["y"] == second["y"]
    page.close()


def test_every_link_leads_somewhere(report: Path) -> None:
    ids = {path.name: {str(tag["id"]) for tag in soup(path)(id=True)} for path in all_pages(report)}
    links = 0
    for path in all_pages(report):
        for link in soup(path)("a"):
            file, _, anchor = str(link["href"]).partition("#")
            assert (file or path.name) in ids, link
            assert not anchor or anchor in ids[file or path.name], link
            links += 1
    assert links > 50


def test_pages_are_put_together_as_they_should(report: Path) -> None:
    for path in all_pages(report):
        page = soup(path)
        assert len(page("h1")) == 1
        assert page.html is not None
        assert page.html["lang"] == "en"
        assert all(image["alt"] for image in page("img"))
        assert page.title is not None
        assert page.title.get_text()
        ids = [tag["id"] for tag in page(id=True)]
        assert len(ids) == len(set(ids))
    assert (report / "index.html").stat().st_size < 2_000_000


def test_a_class_is_found_by_any_of_its_names(report: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto((report / "classes.html").as_uri())
    shown = page.locator("#classes tr:visible th a")
    assert shown.count() == 12
    for typed, names in (
        ("Carassius", ["goldfish"]),
        ("n02782093", ["balloon"]),
        ("ball", ["balloon", "soccer ball"]),
        ("light traffic", ["traffic light"]),
        ("zebra", []),
    ):
        page.fill("#wanted", typed)
        assert shown.all_inner_texts() == names
        assert page.inner_text("#found") == f"{len(names)} found"
    page.fill("#wanted", "")
    assert (shown.count(), page.inner_text("#found")) == (12, "")
    page.close()


def test_the_report_says_nothing_of_where_it_was_made(report: Path) -> None:
    text = "".join(path.read_text("utf-8") for path in report.rglob("*") if path.is_file())
    assert str(report.parent) not in text
