"""Nothing is rated that was not seen: images that do not arrive, double clicks, keys in a row, hidden tabs, phones."""

import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route

from tests.browser_tab import PATIENCE, Server, pinch
from tests.studies.realness.conftest import ANSWERABLE, FITS, rows

BUTTONS = "#jspsych-html-button-response-btngroup button"


@pytest.fixture(scope="module")
def plan(planned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan that all tests here answer, each as another person."""
    return shutil.copytree(planned, tmp_path_factory.mktemp("served") / "plan")


@pytest.fixture(scope="module")
def serving(plan: Path) -> Iterator[Server]:
    found = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", "people=100")
    yield found
    found.kill()


@pytest.fixture
def page(serving: Server, browser: Browser) -> Page:
    window = browser.new_page()
    window.set_default_timeout(PATIENCE)
    return window


def begin(page: Page, serving: Server) -> None:
    page.goto(serving.address)
    page.get_by_role("button", name="Begin").click()
    page.locator(".progress").wait_for()


def answered(plan: Path) -> list[dict[str, str]]:
    """The answers of the person who began last."""
    *_, last = rows(plan / "people.csv")
    path = plan / "answers" / f"answers-{last['list']}-{last['person']}.csv"
    return rows(path) if path.exists() else []


@pytest.mark.long
def test_an_image_that_fails_is_fetched_again_and_not_rated_before(page: Page, serving: Server, plan: Path) -> None:
    failing = True
    page.route("**/images/*", lambda route: route.abort() if failing else route.continue_())
    begin(page, serving)
    page.get_by_text("An image has not loaded.").wait_for()
    page.locator(BUTTONS).first.click(force=True)
    page.keyboard.press("1")
    page.wait_for_timeout(400)
    assert answered(plan) == []
    failing = False
    page.wait_for_selector(ANSWERABLE)
    assert not page.get_by_text("An image has not loaded.").is_visible()
    page.keyboard.press("1")
    page.locator(".progress", has_text="2 of 12").wait_for()
    assert len(answered(plan)) == 1


@pytest.mark.long
def test_a_button_that_takes_no_answer_yet_looks_so(page: Page, serving: Server) -> None:
    page.route("**/images/*", lambda _: None)
    begin(page, serving)
    colours = "all => all.map(getComputedStyle).map(style => [style.backgroundColor, style.color, style.cursor])"
    disabled = page.locator(f"{BUTTONS}:disabled").evaluate_all(colours)
    assert page.locator(".loading").all_inner_texts() == ["0 % loaded", "0 % loaded"]
    page.unroute_all()
    page.reload()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector(ANSWERABLE)
    enabled = page.locator(ANSWERABLE).evaluate_all(colours)
    assert len(disabled) == len(enabled) == 2
    for before, after in zip(disabled, enabled, strict=True):
        assert all(one != two for one, two in zip(before, after, strict=True))


@pytest.mark.long
def test_a_pair_whose_right_image_is_still_on_its_way(page: Page, serving: Server, plan: Path) -> None:
    held: list[Route] = []
    right = {trial["file_right"] for trial in rows(plan / "trials.csv")} - {""}
    page.route("**/images/*", lambda route: held.append(route) if route.request.url.rpartition("/")[2] in right
               else route.continue_())  # fmt: skip
    begin(page, serving)
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


@pytest.mark.long
def test_a_double_click_answers_once(page: Page, serving: Server, plan: Path) -> None:
    """By the page's own clock, which only advances by the gap between the two clicks."""
    page.clock.install()
    begin(page, serving)
    for number, gap in enumerate((0, 60, 120, 200), start=1):
        page.locator(".progress", has_text=f"{number} of 12").wait_for()
        page.wait_for_selector(ANSWERABLE)
        box = page.locator(BUTTONS).nth(1).bounding_box()
        assert box is not None
        place = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
        page.mouse.click(*place)
        for _ in range(gap // 20):
            page.wait_for_timeout(20)  # for what the page asks of the server
            page.clock.run_for(20)
        page.mouse.click(*place)
        page.keyboard.press("1")
        page.clock.resume()
        page.locator(".progress", has_text=f"{number + 1} of 12").wait_for()
        page.wait_for_selector(ANSWERABLE)
        found = answered(plan)
        assert len(found) == number
        assert (found[-1]["answer"], int(found[-1]["milliseconds"]) >= 300) == ("right" if number < 3 else "-1", True)


@pytest.mark.long
def test_time_in_a_hidden_tab_does_not_count(page: Page, serving: Server) -> None:
    page.add_init_script(
        "let state = 'hidden'; Object.defineProperty(document, 'visibilityState', {get: () => state});"
        "window.show = () => { state = 'visible' }"
    )
    begin(page, serving)
    page.wait_for_timeout(600)
    assert page.locator(ANSWERABLE).count() == 0
    page.evaluate("show()")
    page.wait_for_selector(ANSWERABLE)


@pytest.mark.long
@pytest.mark.parametrize("scale", [1.3, 4])
def test_a_pinch_has_to_be_undone(page: Page, serving: Server, plan: Path, scale: float) -> None:
    """Words may be enlarged; what is answered was seen, and is stored as without a pinch."""
    page.goto(serving.address)
    page.get_by_role("button", name="Begin").wait_for()
    pinch(page, scale)
    page.keyboard.press("1")  # a mouse would not reach the button
    page.get_by_text("Please undo the zoom").wait_for()
    page.wait_for_timeout(600)
    page.keyboard.press("1")
    assert (page.locator(ANSWERABLE).count(), answered(plan)) == (0, [])
    pinch(page, 1)
    page.wait_for_selector(ANSWERABLE)
    assert not page.get_by_text("Please undo the zoom").is_visible()
    pinch(page, scale)
    page.locator(f"{BUTTONS}:disabled").first.wait_for()
    page.keyboard.press("1")
    pinch(page, 1)
    page.wait_for_selector(ANSWERABLE)
    page.keyboard.press("1")
    page.locator(".progress", has_text="2 of 12").wait_for()
    assert [each["shown_width"] for each in answered(plan)] == ["440"]


@pytest.mark.long
def test_the_scale_is_one_row_on_a_phone(page: Page, serving: Server) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    begin(page, serving)
    while page.locator(BUTTONS).count() < 5:
        page.wait_for_selector(ANSWERABLE)
        at = page.inner_text(".progress")
        page.keyboard.press("1")
        page.wait_for_function(f"![undefined, '{at}'].includes(document.querySelector('.progress')?.innerText)")
    boxes = page.locator(BUTTONS).evaluate_all("all => all.map(e => e.getBoundingClientRect().toJSON())")
    assert len({box["top"] for box in boxes}) == 1
    assert all(one["right"] <= two["left"] for one, two in pairwise(boxes))
    page.wait_for_function(FITS)
    assert page.locator(BUTTONS).evaluate_all("all => all.every(e => e.scrollWidth <= e.clientWidth)")


def rate(page: Page, press: Callable[[Locator], None], trials: int = 12) -> None:
    """Answer the first trials, each by pressing the second button; nothing is outside the window."""
    for place in range(1, trials + 1):
        page.locator(".progress", has_text=f"{place} of 12").wait_for()
        page.wait_for_selector(ANSWERABLE)
        parts = "document.querySelectorAll('h1, #study img, #study button')"
        shown = f"[...{parts}].every(e => e.getBoundingClientRect().bottom <= innerHeight)"
        assert page.evaluate(shown), f"trial {place} needs scrolling"
        press(page.locator(ANSWERABLE).nth(1))


@pytest.mark.long
def test_each_kind_of_trial_on_a_phone(serving: Server, plan: Path, browser: Browser) -> None:
    """By touch, with nothing outside the window, and buttons that a thumb hits."""
    phone = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = phone.new_page()
    page.set_default_timeout(PATIENCE)
    begin(page, serving)

    def tap(button: Locator) -> None:
        box = button.bounding_box()
        assert box
        assert min(box["width"], box["height"]) >= 44
        button.tap()

    *_, person = rows(plan / "people.csv")
    kinds = [trial["kind"] for trial in rows(plan / "trials.csv") if trial["list"] == person["list"]]
    trials = max(map(kinds.index, set(kinds))) + 1
    rate(page, tap, trials)
    page.locator(".progress", has_text=f"{trials + 1} of 12").wait_for()
    assert [row["answer"] for row in answered(plan)] == ["right"] * 2 + ["-1"] * (trials - 2)


def test_a_whole_list_in_firefox(serving: Server, plan: Path, firefox: Browser) -> None:
    page = firefox.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(PATIENCE)
    begin(page, serving)
    rate(page, lambda button: button.click())
    page.get_by_role("heading", name="Thank you").wait_for()
    assert [row["answer"] for row in answered(plan)] == ["right"] * 2 + ["-1"] * 10
    page.close()
