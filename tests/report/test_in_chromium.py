"""The sample edition's report in a real browser: what is shown, found, filtered, sorted, enlarged and printed."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from .pages import all_pages, opened, soup, violations

WIDTHS = (390, 1280, 2560)
ENLARGED = {"rejected.html": 53, "sheet-1.html": 85, "classes/n07734744.html": 18}
"""The images that can be enlarged by page."""
REGIONS = (
    "Accuracy", "Agreement by verdict", "Agreement of pairs", "All classes", "Classes by number of images",
    "Combinations of models", "Funnel", "Hardest classes", "Images in common", "Rejected", "Sets", "Short classes",
    "Verdicts",
)  # fmt: skip
"""The tables that are on one page alone."""
KINDS = ("index.html", "classes.html", "rejected.html", "sheet-1.html", "classes/n07734744.html")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield page
    page.close()


def show(page: Page, report: Path, name: str) -> None:
    page.goto((report / name).as_uri())


LOAD_ALL_IMAGES = """async () => {
    const images = [...document.images];
    const before = images.map((image) => image.width);
    for (const image of images) image.loading = "eager";
    await Promise.all(images.map((image) => image.decode()));
    return images.map((image, place) => [
        before[place], image.width, image.naturalWidth, image.naturalHeight,
        Number(image.getAttribute("width")), Number(image.getAttribute("height")),
    ]);
}"""
REGIONS_SHOWN = """() => [...document.querySelectorAll(".scroll")]
    .map((each) => [each.ariaLabel, each.tabIndex, each.scrollWidth > each.clientWidth])"""
CUT_CARDS = """() => [...document.querySelectorAll(".images figure")]
    .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.innerText)"""


@pytest.mark.long
def test_every_page_is_whole_and_fits_every_window(report: Path, browser: Browser) -> None:
    """Its images load, nothing is fetched, and nothing is wider than the window.

    The tables of three models fit a telephone, all but those of many columns; what does not fit can be scrolled by
    keyboard, and has a name.
    """
    images = 0
    regions, cut = Counter[tuple[str, int]](), set[str]()
    for path, page in opened(browser, report):
        sizes = page.evaluate(LOAD_ALL_IMAGES)
        for before, after, *natural, width, height in sizes:
            assert before == after > 0, "an image that is not loaded yet takes up its space"
            assert natural == [width, height]
            assert max(natural) <= 400
        images += len(sizes)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width, path.name
            if width == min(WIDTHS):
                shown = page.evaluate(REGIONS_SHOWN)
                regions.update((label, tab) for label, tab, _ in shown)
                cut |= {label for label, _, is_cut in shown if is_cut}
            # a card cuts nothing off; what is far below the window is laid out only if it is asked for
            page.add_style_tag(content=".class { content-visibility: visible !important; }")
            assert page.evaluate(CUT_CARDS) == [], path.name
    assert images == 286
    assert regions == dict.fromkeys(((label, 0) for label in REGIONS), 1) | {("Other candidates", 0): 11}
    # how wide the others are depends on the fonts
    assert {"All classes", "Rejected"} <= cut
    assert cut <= {"Sets", "Rejected", "Short classes", "All classes", "Hardest classes", "Other candidates"}


def test_a_table_scrolls_with_the_keyboard(report: Path, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    show(page, report, "index.html")
    region = page.get_by_role("region", name="Sets", exact=True)
    region.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("region => region.scrollLeft > 20", arg=region.element_handle())  # it scrolls smoothly
    assert region.evaluate("(region) => region.scrollLeft") > 20


def test_images_stand_side_by_side_on_a_telephone(report: Path, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    show(page, report, "sheet-1.html")
    first, second = (page.locator(".class .images > li").nth(place).bounding_box() for place in (0, 1))
    assert first is not None
    assert second is not None
    assert first["y"] == second["y"]


@pytest.mark.long
@pytest.mark.parametrize("name", [KINDS[0], *(pytest.param(each, marks=pytest.mark.long) for each in KINDS[1:])])
@pytest.mark.parametrize(
    "looks",
    [
        [(390, "light")],
        pytest.param([(1280, "dark")], marks=pytest.mark.exhaustive),
        pytest.param([(1280, "light"), (2560, "light")], marks=pytest.mark.exhaustive),
    ],
)
def test_axe_finds_nothing(name: str, looks: list[tuple[int, Any]], report: Path, page: Page) -> None:
    show(page, report, name)
    assert page.locator("a.enlarge").count() == ENLARGED.get(name, 0)
    for width, scheme in looks:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        if name in ENLARGED:
            page.locator("a.enlarge").first.click()
            assert violations(page, "dialog[open]") == []
            page.keyboard.press("Escape")


def test_an_image_is_enlarged_in_place(report: Path, page: Page) -> None:
    show(page, report, "rejected.html")
    link = page.locator("#text a.enlarge").first
    link.click()
    dialog = page.get_by_role("dialog", name="Enlarged image")
    image = dialog.locator("img")
    assert (image.get_attribute("src") or "").endswith("/images/ILSVRC2012_val_00000407.jpg")
    box, small = image.bounding_box(), link.bounding_box()
    assert box is not None
    assert small is not None
    assert box["height"] > 3 * small["height"]
    assert "00000407 soccer ball" in dialog.inner_text()
    assert "ada: reject, text" in dialog.inner_text()
    page.keyboard.press("ArrowRight")
    assert (image.get_attribute("src") or "").endswith("/images/ILSVRC2012_val_00000224.jpg")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    expect(link).to_be_focused()
    link.click()
    dialog.get_by_role("link", name="00000407").click()
    assert page.url.endswith("/classes/n04254680.html#ILSVRC2012_val_00000407")
    assert page.locator("li:target").inner_text().startswith("00000407")


def test_no_image_is_above_the_caption_of_the_next(report: Path, page: Page) -> None:
    show(page, report, "rejected.html")
    page.locator("#text a.enlarge").first.click()
    image = page.locator("dialog[open] img")
    image.evaluate("image => { window.before = image; return image.decode(); }")
    page.keyboard.press("ArrowRight")
    assert (image.get_attribute("src") or "").endswith("/images/ILSVRC2012_val_00000224.jpg")
    assert not page.evaluate("window.before.isConnected")


@pytest.mark.long
def test_without_a_script_nothing_dead_is_shown(report: Path, browser: Browser) -> None:
    """No control that does nothing; what is enlarged by script is a link to the image."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for path in all_pages(report):
        page.goto(path.as_uri())
        assert page.locator("button, input, select, form, dialog").count() == 0, path.name
        for empty in page.locator("[data-controls], [data-find]").all():
            box = empty.bounding_box()
            assert box is None or box["height"] == 0
    show(page, report, "rejected.html")
    page.locator("#text a.enlarge").first.click()
    assert page.url.endswith("/images/ILSVRC2012_val_00000407.jpg")
    context.close()


def shown(page: Page) -> int:
    return page.locator(".images > li:visible").count()


def test_rejected_images_by_model_tier_reason_and_class(report: Path, page: Page) -> None:
    """The three choices hold for one and the same model: four of eight texts are candidates in tier reserve."""
    show(page, report, "rejected.html")
    assert shown(page) == 52
    page.locator("#filter-reason").select_option("text")
    assert (shown(page), page.inner_text("#found")) == (9, "9 images")
    assert page.locator("section:visible").count() == 1
    page.locator("#filter-model").select_option("corruption_robust")
    assert shown(page) == 8
    page.locator("#filter-tier").select_option("top5")
    assert shown(page) == 1
    page.reload()
    assert (shown(page), page.inner_text("#found")) == (1, "1 image")
    for label in ("reason", "model", "tier"):
        page.locator(f"#filter-{label}").select_option("")
    assert (shown(page), page.inner_text("#found")) == (52, "")
    page.get_by_role("searchbox").fill("light traffic")
    assert (shown(page), page.inner_text("#found")) == (14, "14 images")
    page.get_by_role("searchbox").fill("00000407")
    assert shown(page) == 1


def test_rejected_images_in_another_order(report: Path, page: Page) -> None:
    show(page, report, "rejected.html")
    noise = page.locator("#noise .images > li")

    def order(name: str) -> list[float]:
        page.locator("#sort").select_option(name)
        return [float(each.get_attribute(f"data-{name}") or "") for each in noise.all()]

    confidences = order("confidence")
    assert confidences == sorted(confidences, reverse=True)
    assert [noise.nth(place).locator("figcaption > a").inner_text() for place in range(2)] == ["00000464", "00000166"]
    classes = order("class")
    assert classes == sorted(classes)
    assert classes[0] == 409
    ranks = order("rank")
    assert ranks == sorted(ranks)
    assert len(set(ranks)) > 3


def test_the_images_of_one_model_on_a_sheet(report: Path, page: Page) -> None:
    show(page, report, "sheet-1.html")
    page.locator("#filter-model").select_option("standard")
    assert (shown(page), page.inner_text("#found")) == (34, "34 images")
    page.locator("#filter-tier").select_option("relaxed")
    assert shown(page) == 3
    titles = [" ".join(each.split()) for each in page.locator("section:visible h2").all_text_contents()]
    assert titles == ["strawberry n07745940 class 949", "banana n07753592 class 954"]


def test_a_class_is_found_by_any_of_its_names(report: Path, page: Page) -> None:
    show(page, report, "classes.html")
    names = page.locator("#classes tr:visible th a")
    assert names.count() == 12
    for typed, expected in (
        ("Carassius", ["goldfish"]),
        ("n02782093", ["balloon"]),
        ("ball", ["balloon", "soccer ball"]),
        ("light traffic", ["traffic light"]),
        ("zebra", []),
    ):
        page.fill("#wanted", typed)
        assert names.all_inner_texts() == expected
        assert page.inner_text("#found") == f"{len(expected)} class{'es' if len(expected) != 1 else ''}"
    page.fill("#wanted", "")
    assert (names.count(), page.inner_text("#found")) == (12, "")


def test_classes_by_state_and_reason(report: Path, page: Page) -> None:
    show(page, report, "classes.html")
    names = page.locator("#classes tr:visible th a")
    for label, value, expected in (
        ("state", "short", ["mushroom"]),
        ("state", "open", ["ladybug"]),
        ("reason", "text", ["beacon", "soccer ball", "traffic light", "mushroom"]),
        ("reason", "wrong_after_crop", ["umbrella"]),
    ):
        page.locator(f"#filter-{label}").select_option(value)
        assert names.all_inner_texts() == expected
        page.locator(f"#filter-{label}").select_option("")


def test_classes_are_sorted_by_their_headings(report: Path, page: Page) -> None:
    show(page, report, "classes.html")
    names = page.locator("#classes th a")
    page.get_by_role("button", name="rejected").focus()
    page.keyboard.press("Enter")
    assert names.all_inner_texts()[:3] == ["mushroom", "traffic light", "soccer ball"]
    assert page.get_by_role("columnheader", name="rejected").get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert names.all_inner_texts()[-1] == "mushroom"
    page.get_by_role("button", name="class", exact=True).click()
    assert names.all_inner_texts()[:3] == ["analog clock", "balloon", "banana"]
    assert page.locator("[aria-sort]").count() == 1


def test_from_the_first_page_to_a_class(report: Path, page: Page) -> None:
    show(page, report, "index.html")
    page.get_by_label("Find a class").fill("ball")
    page.keyboard.press("Enter")
    page.wait_for_url("**/classes.html?find=ball")
    page.wait_for_selector("#found:has-text('2 classes')")
    assert page.locator("#classes tr:visible th a").all_inner_texts() == ["balloon", "soccer ball"]


@pytest.mark.long
def test_why_an_image_is_in_two_clicks(report: Path, page: Page) -> None:
    """From the first page to the sheet, and then from an image to its ranks and votes, and the rejected ones."""
    show(page, report, "index.html")
    page.get_by_role("link", name="goldfish – banana").click()
    page.get_by_role("link", name="00000256").click()
    image = page.locator("li:target")
    assert [row.split("\t") for row in image.locator("tbody tr").all_inner_texts()] == [
        ["standard reserve", "kept, place 1", "8", "0.922"],
        ["norm_robust reserve", "kept, place 1", "8", "0.818"],
    ]
    assert image.locator(".votes").inner_text() == "ada: clean"
    assert page.inner_text("#rejected h2") == "Rejected 17 images"
    assert page.locator("#rejected .images > li").count() == 17


@pytest.mark.parametrize("name", KINDS)
def test_what_is_printed_fits_the_page(name: str, report: Path, page: Page) -> None:
    """A4 with margins of 14 mm is 688 CSS pixels wide; nothing can be scrolled or chosen on paper."""
    page.set_viewport_size({"width": 688, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    show(page, report, name)
    assert page.evaluate("document.documentElement.scrollWidth") == 688
    assert page.locator("nav:visible, input:visible, select:visible, main button:visible:not(th button)").count() == 0
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert page.locator("h1").is_visible()
    assert page.pdf(prefer_css_page_size=True)[:5] == b"%PDF-"


@pytest.mark.long
def test_every_link_leads_somewhere(report: Path) -> None:
    pages = {path: soup(path) for path in all_pages(report)}
    ids = {path.resolve(): {str(tag["id"]) for tag in page(id=True)} for path, page in pages.items()}
    links = 0
    for path, page in pages.items():
        for link in page("a"):
            file, _, anchor = str(link["href"]).partition("#")
            target = (path.parent / file).resolve() if file else path.resolve()
            assert target.is_file(), link
            assert report.resolve() in target.parents, link
            assert not anchor or anchor in ids[target], link
            links += 1
    assert links > 500


@pytest.mark.long
def test_pages_are_put_together_as_they_should(report: Path) -> None:
    for path in all_pages(report):
        page = soup(path)
        assert len(page("h1")) == 1
        assert page.html is not None
        assert page.html["lang"] == "en"
        assert all("alt" in image.attrs for image in page("img"))
        assert page.title is not None
        assert page.title.get_text()
        ids = [tag["id"] for tag in page(id=True)]
        assert len(ids) == len(set(ids))
    assert (report / "index.html").stat().st_size < 100_000


def test_the_report_says_nothing_of_where_it_was_made(report: Path) -> None:
    text = b"".join(path.read_bytes() for path in report.rglob("*") if path.is_file())
    assert str(report.parent).encode() not in text
