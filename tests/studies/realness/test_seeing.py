"""Nothing is rated that was not seen: images that do not arrive, double clicks, keys in a row, hidden tabs, phones."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route

from tests.browser_tab import PATIENCE, Server
from tests.studies.realness.conftest import ANSWERABLE, rows

BUTTONS = "#jspsych-html-button-response-btngroup button"


@pytest.fixture
def server(plan: Path) -> Iterator[Server]:
    found = Server(plan, "study", "serve", "--plan", ".", "--port", "0")
    yield found
    found.kill()


@pytest.fixture
def page(server: Server, browser: Browser) -> Iterator[Page]:
    window = browser.new_page()
    window.set_default_timeout(PATIENCE)
    yield window
    window.close()


def begin(page: Page, server: Server) -> None:
    page.goto(server.address)
    page.get_by_role("button", name="Begin").click()
    page.wait_for_selector(BUTTONS)


def answered(plan: Path) -> list[dict[str, str]]:
    return [row for path in sorted((plan / "answers").iterdir()) for row in rows(path)]


def test_an_image_that_fails_is_fetched_again_and_not_rated_before(page: Page, server: Server, plan: Path) -> None:
    failing = True
    page.route("**/images/*", lambda route: route.abort() if failing else route.continue_())
    begin(page, server)
    page.get_by_text("An image has not arrived.").wait_for()
    page.locator(BUTTONS).first.click(force=True)
    page.keyboard.press("1")
    page.wait_for_timeout(400)
    assert answered(plan) == []
    failing = False
    page.wait_for_selector(ANSWERABLE)
    assert not page.get_by_text("An image has not arrived.").is_visible()
    page.keyboard.press("1")
    page.locator(".progress", has_text="2 of 12").wait_for()
    assert len(answered(plan)) == 1


def test_a_pair_whose_right_image_is_still_on_its_way(page: Page, server: Server, plan: Path) -> None:
    held: list[Route] = []
    right = {trial["file_right"] for trial in rows(plan / "trials.csv")} - {""}
    page.route("**/images/*", lambda route: held.append(route) if route.request.url.rpartition("/")[2] in right
               else route.continue_())  # fmt: skip
    begin(page, server)
    page.wait_for_timeout(500)
    page.keyboard.press("1")
    style = page.locator(".pair img").evaluate_all("all => all.map(e => getComputedStyle(e).visibility)")
    assert style == ["hidden", "hidden"]
    before = page.locator(BUTTONS).first.bounding_box()
    assert answered(plan) == []
    for route in held:
        route.continue_()
    page.unroute_all()
    page.wait_for_selector(ANSWERABLE)
    assert page.locator(BUTTONS).first.bounding_box() == before
    page.keyboard.press("1")
    page.locator(".progress", has_text="2 of 12").wait_for()


@pytest.mark.parametrize("gap", [0, 60, 120, 200])
def test_a_double_click_answers_once(page: Page, server: Server, plan: Path, gap: int) -> None:
    begin(page, server)
    page.wait_for_selector(ANSWERABLE)
    box = page.locator(BUTTONS).nth(1).bounding_box()
    assert box is not None
    place = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.click(*place)
    page.wait_for_timeout(gap)
    page.mouse.click(*place)
    page.keyboard.press("1")
    page.locator(".progress", has_text="2 of 12").wait_for()
    page.wait_for_selector(ANSWERABLE)
    (row,) = answered(plan)
    assert (row["answer"], int(row["milliseconds"]) >= 300) == ("right", True)


def test_time_in_a_hidden_tab_does_not_count(page: Page, server: Server) -> None:
    page.add_init_script(
        "let state = 'hidden'; Object.defineProperty(document, 'visibilityState', {get: () => state});"
        "window.show = () => { state = 'visible' }"
    )
    begin(page, server)
    page.wait_for_timeout(600)
    assert page.locator(ANSWERABLE).count() == 0
    page.evaluate("show()")
    page.wait_for_selector(ANSWERABLE)


def test_the_scale_is_one_row_on_a_phone(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    begin(page, server)
    while page.locator(BUTTONS).count() < 5:
        page.wait_for_selector(ANSWERABLE)
        at = page.inner_text(".progress")
        page.keyboard.press("1")
        page.wait_for_function(f"![undefined, '{at}'].includes(document.querySelector('.progress')?.innerText)")
    boxes = page.locator(BUTTONS).evaluate_all("all => all.map(e => e.getBoundingClientRect().toJSON())")
    assert len({box["top"] for box in boxes}) == 1
    assert all(one["right"] <= two["left"] for one, two in pairwise(boxes))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(BUTTONS).evaluate_all("all => all.every(e => e.scrollWidth <= e.clientWidth)")


def rate_all(page: Page, plan: Path, press: Callable[[Locator], None]) -> list[str]:
    """Answer the whole list, each trial by pressing the second button; the answers that are saved."""
    for place in range(1, 13):
        page.locator(".progress", has_text=f"{place} of 12").wait_for()
        page.wait_for_selector(ANSWERABLE)
        parts = "document.querySelectorAll('h1, #study img, #study button')"
        shown = f"[...{parts}].every(e => e.getBoundingClientRect().bottom <= innerHeight)"
        assert page.evaluate(shown), f"trial {place} needs scrolling"
        press(page.locator(ANSWERABLE).nth(1))
    page.get_by_role("heading", name="Thank you").wait_for()
    return [row["answer"] for row in answered(plan)]


def test_a_whole_list_on_a_phone(server: Server, plan: Path, browser: Browser) -> None:
    """By touch, with nothing outside the window, and buttons that a thumb hits."""
    phone = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = phone.new_page()
    page.set_default_timeout(PATIENCE)
    begin(page, server)

    def tap(button: Locator) -> None:
        box = button.bounding_box()
        assert box
        assert min(box["width"], box["height"]) >= 44
        button.tap()

    assert rate_all(page, plan, tap) == ["right"] * 2 + ["-1"] * 10
    phone.close()


def test_a_whole_list_in_firefox(server: Server, plan: Path, firefox: Browser) -> None:
    page = firefox.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(PATIENCE)
    begin(page, server)
    assert rate_all(page, plan, lambda button: button.click()) == ["right"] * 2 + ["-1"] * 10
    page.close()
