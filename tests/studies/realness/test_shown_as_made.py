"""What is on the screen is the file: each pixel as a square of device pixels, or nothing is asked."""

import io
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize

from cleanset.studies.realness.analysis import shown_sizes
from cleanset.studies.realness.ratings import Answer, StudyAnswers, View
from tests.browser_tab import PATIENCE, SCREENS, Server, on_screen_of, resize_window, started
from tests.studies.realness.conftest import ANSWERABLE, SIZES, command, rows
from tests.web.exact import shown_images

Plans = Callable[[int], tuple[Path, Server]]
"""A plan whose images have this many pixels a side, and its server."""


@pytest.fixture(scope="module")
def served(export_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plans]:
    folder = tmp_path_factory.mktemp("shown")
    servers: dict[int, Server] = {}

    def serve(side: int) -> tuple[Path, Server]:
        plan = folder / f"plan{side}"
        if side not in servers:
            checkerboards(folder / f"attacked{side}", side)
            command("plan", "--set", export_folder, "--attacked", folder / f"attacked{side}", "--out", plan, *SIZES)
            servers[side] = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", "people=100")
        return plan, servers[side]

    yield serve
    for server in servers.values():
        server.kill()
    shutil.rmtree(folder)


def checkerboards(folder: Path, side: int) -> None:
    """Eight images of a checkerboard of ±12 levels on a grey of their own."""
    folder.mkdir()
    board = np.indices((side, side)).sum(axis=0) % 2
    for number in range(8):
        levels = np.uint8(100 + number) + np.where(board, 12, -12)
        Image.fromarray(levels.astype(np.uint8)).convert("RGB").save(folder / f"{number}.png")


def begin(browser: Browser, server: Server, window: tuple[int, int], ratio: float) -> Page:
    """A study's first trial, in a window of CSS pixels."""
    size = {"width": window[0], "height": window[1]}
    page = browser.new_context(viewport=size, device_scale_factor=ratio).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE)
    page.goto(server.address)
    page.get_by_role("button", name="Begin").click()
    page.wait_for_selector(ANSWERABLE)
    return page


def on_screen(page: Page, ratio: float) -> list[NDArray[np.uint8]]:
    """The device pixels where each image of the trial is."""
    shot = np.asarray(Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB"))
    boxes = [each.bounding_box() for each in page.locator("#study img").all()]
    scrolled = page.evaluate("[scrollX, scrollY]")
    found = []
    for box in boxes:
        assert box is not None
        left = (box["x"] + scrolled[0]) * ratio
        top = (box["y"] + scrolled[1]) * ratio
        assert left == pytest.approx(round(left), abs=0.05)
        assert top == pytest.approx(round(top), abs=0.05)
        width = round(box["width"] * ratio)
        height = round(box["height"] * ratio)
        found.append(shot[round(top) : round(top) + height, round(left) : round(left) + width])
    return found


def files(page: Page, plan: Path) -> list[NDArray[np.uint8]]:
    """The stored pixels of each image of the trial."""
    names = page.locator("#study img").evaluate_all("all => all.map(each => each.dataset.file.split('/').pop())")
    return [np.asarray(Image.open(plan / "page" / "images" / name).convert("RGB")) for name in names]


@pytest.mark.long
def test_a_plan_names_the_window_that_the_page_asks_for(export_folder: Path, tmp_path: Path) -> None:
    """A pair is 2 x 512 pixels wide, with 20 between them and 20 at each end; below it are 260 of text and buttons."""
    checkerboards(tmp_path / "attacked", 512)
    arguments = ("plan", "--set", export_folder, "--attacked", tmp_path / "attacked")
    said = command(*arguments, "--out", tmp_path / "pairs", *SIZES)
    assert "smallest window: 1084 x 772 CSS pixels at a pixel ratio of 1, 572 x 516 at 2\n" in said
    alone = (*SIZES[:3], "real=4,modified=4,attention=2,pairs=0")
    said = command(*arguments, "--out", tmp_path / "alone", *alone)
    assert "smallest window: 552 x 772 CSS pixels at a pixel ratio of 1, 296 x 516 at 2\n" in said
    # 2 x 60 mm are 454 CSS pixels on a screen with 96 in an inch
    said = command(*arguments, "--out", tmp_path / "fixed", *SIZES[:3], SIZES[3] + ",width_mm=60")
    assert "smallest window: about 514 x 487 CSS pixels, by the screen" in said


@pytest.mark.long
def test_a_window_that_is_too_small_is_refused_before_the_study_and_within(served: Plans, browser: Browser) -> None:
    plan, server = served(512)
    page = browser.new_context(viewport={"width": 1000, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(server.address)
    begin_button = page.get_by_role("button", name="Begin")
    # a pair is 2 x 512 pixels wide, with 20 between them and 20 at each end; below it are 260 of text and buttons
    page.get_by_text("1000 x 900 pixels, and at least 1084 x 772 are needed").wait_for()
    assert begin_button.is_disabled()
    page.set_viewport_size({"width": 1084, "height": 772})
    begin_button.click()
    page.wait_for_selector(ANSWERABLE)
    (shown, _) = on_screen(page, 1)
    np.testing.assert_array_equal(shown, files(page, plan)[0])
    page.set_viewport_size({"width": 1083, "height": 772})
    page.get_by_text("1083 x 772 pixels").wait_for()
    page.keyboard.press("1")
    assert page.locator(ANSWERABLE).count() == 0
    page.set_viewport_size({"width": 1084, "height": 772})
    page.wait_for_selector(ANSWERABLE)
    assert page.locator(".progress", has_text="1 of ").is_visible()
    page.keyboard.press("1")
    page.locator(".progress", has_text="2 of ").wait_for()


@pytest.mark.long
@pytest.mark.parametrize(
    ("side", "window", "ratio", "factors"),
    [
        pytest.param(224, (1920, 1080), 1, (2, 2), marks=pytest.mark.exhaustive),
        pytest.param(224, (1920, 1080), 0.9, (1, 1), marks=pytest.mark.exhaustive),
        pytest.param(224, (1745, 982), 1.1, (2, 2), marks=pytest.mark.exhaustive),
        (224, (1920, 1080), 1.25, (2, 2)),
        pytest.param(224, (1280, 720), 1.5, (3, 3), marks=pytest.mark.exhaustive),
        (224, (1280, 800), 2, (4, 4)),
        # a browser at 200 % halves the window and doubles the ratio
        pytest.param(224, (640, 512), 2, (2, 2), marks=pytest.mark.exhaustive),
        (224, (390, 844), 3, (2, 4)),
        pytest.param(299, (1920, 1080), 1, (1, 1), marks=pytest.mark.exhaustive),
        (512, (1920, 1080), 1, (1, 1)),
        pytest.param(1024, (2560, 1440), 1, (1, 1), marks=pytest.mark.exhaustive),
    ],
)
def test_each_pixel_is_a_square_of_device_pixels(
    served: Plans,
    browser: Browser,
    side: int,
    window: tuple[int, int],
    ratio: float,
    factors: tuple[int, int],
) -> None:
    """Two pairs, then single images, an attention check between them: 12 levels in, 12 out, and stored so."""
    plan, server = served(side)
    page = begin(browser, server, window, ratio)
    before = set((plan / "answers").iterdir())
    seen = []
    sizes = []
    for number in range(5):
        shown = on_screen(page, ratio)
        seen.append(len(shown))
        factor = factors[number >= 2]
        sizes.append(tuple(map(str, shown[0].shape[1::-1])) if shown else ("0", "0"))
        for screen, stored in zip(shown, files(page, plan), strict=True):
            np.testing.assert_array_equal(screen, stored.repeat(factor, axis=0).repeat(factor, axis=1))
        page.keyboard.press("1")
        page.locator(".progress", has_text=f"{number + 2} of ").wait_for()
        page.wait_for_selector(ANSWERABLE)
    (mine,) = set((plan / "answers").iterdir()) - before
    answers = rows(mine)
    # as measured on the screen, not as the page says
    assert [(each["shown_width"], each["shown_height"]) for each in answers] == sizes
    expected = (str(window[0]), str(window[1]), f"{ratio:g}")
    assert {(each["window_width"], each["window_height"], each["pixel_ratio"]) for each in answers} == {expected}
    assert seen[:2] == [2, 2]
    assert sorted(seen[2:]) in ([0, 1, 1], [1, 1, 1])


@pytest.mark.long
@pytest.mark.parametrize("ratio", SCREENS)
def test_examples_and_images_are_exact_on_a_screen_of_this_ratio(
    export_folder: Path, tmp_path: Path, chromium: Browser, ratio: float
) -> None:
    """Examples of 512 pixels that are whole on the page, and those partly shown by a narrow window."""
    checkerboards(tmp_path / "attacked", 512)
    wish = (*SIZES[:3], f"{SIZES[3]},explanation=examples")
    command("plan", "--set", export_folder, "--attacked", tmp_path / "attacked", "--out", tmp_path / "plan", *wish)
    server = Server(tmp_path / "plan", "study", "serve", "--plan", ".", "--port", "0")
    try:
        with on_screen_of(ratio, chromium) as page:
            page.goto(server.address)
            for width, parts in ((391, 512 / ratio > 391 - 40), (1367, False)):
                resize_window(page, {"width": width, "height": 901})
                page.locator(".examples .frame:not(:has(.loading))").nth(4).scroll_into_view_if_needed()
                assert {each.differing for each in shown_images(page)} == {0}
                assert page.get_by_text("Shown in part").count() == (5 if parts else 0)
            page.get_by_role("button", name="Begin").click()
            page.wait_for_selector(ANSWERABLE)
            assert [each.differing for each in shown_images(page)] == [0, 0]
    finally:
        server.kill()


@pytest.mark.long
@pytest.mark.parametrize(("scheme", "darkened"), [("light", "1"), ("dark", "0")])
def test_a_browser_that_darkens_pages(served: Plans, chromium: Browser, scheme: Any, darkened: str) -> None:
    """In a dark system the page is exempt, as it asks; darkened, its images stay exact, and each answer reports it."""
    plan, server = served(224)
    before = set((plan / "answers").iterdir())
    with started(chromium.browser_type, "--blink-settings=forceDarkModeEnabled=true") as darkening:
        page = darkening.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
        page.set_default_timeout(PATIENCE)
        page.goto(server.address)
        page.get_by_role("button", name="Begin").click()
        page.wait_for_selector(ANSWERABLE)
        ground = Image.open(io.BytesIO(page.screenshot())).convert("RGB").getpixel((3, 3))
        assert (ground == (244, 244, 242)) is (darkened == "0")
        for screen, stored in zip(on_screen(page, 1), files(page, plan), strict=True):
            np.testing.assert_array_equal(screen, stored.repeat(2, axis=0).repeat(2, axis=1))
        page.keyboard.press("1")
        page.locator(".progress", has_text="2 of ").wait_for()
    (mine,) = set((plan / "answers").iterdir()) - before
    assert [each["darkened"] for each in rows(mine)] == [darkened]


def hold_card(page: Page, css_pixels: float) -> None:
    """Make the outline as wide as a card, later than a second click of one double click."""
    page.wait_for_timeout(350)
    page.locator("#card-width").fill(f"{css_pixels:g}")
    page.get_by_role("button", name="as large as the card").click()


@pytest.mark.long
@pytest.mark.parametrize(("width", "ratio", "css_pixels_per_mm"), [(1000, 1, 5), (1000, 1.5, 3.5), (400, 3, 4)])
def test_images_of_a_fixed_width(
    export_folder: Path, browser: Browser, tmp_path: Path, width: int, ratio: float, css_pixels_per_mm: float
) -> None:
    """A card is held to a screen, upright to a narrow one; an image of 40 mm then has 40 mm of that screen."""
    plan = tmp_path / "plan"
    checkerboards(tmp_path / "attacked", 224)
    command(
        "plan", "--set", export_folder, "--attacked", tmp_path / "attacked", "--out", plan, *SIZES[:3],
        SIZES[3] + ",width_mm=40",
    )  # fmt: skip
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0")
    try:
        size: ViewportSize = {"width": width, "height": 800}
        page = browser.new_context(viewport=size, device_scale_factor=ratio).new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(server.address)
        hold_card(page, 200)
        hold_card(page, 300)
        page.get_by_text("The two sizes differ").wait_for()
        card = (53.98 if width < 500 else 85.6) * css_pixels_per_mm
        hold_card(page, round(2 * card) / 2 + 1)
        hold_card(page, round(2 * card) / 2 - 1)
        page.get_by_role("button", name="Begin").click()
        page.wait_for_selector(ANSWERABLE)
        widths = {each.shape[1] for each in on_screen(page, ratio)}
        (shown,) = widths
        # the slider has steps of half a CSS pixel
        assert shown / ratio / css_pixels_per_mm == pytest.approx(40, rel=0.002)
        page.keyboard.press("1")
        page.locator(".progress", has_text="2 of ").wait_for()
        # smaller than two images of 40 mm
        page.set_viewport_size({"width": round(80 * css_pixels_per_mm), "height": 800})
        page.get_by_text("This window is too small").wait_for()
    finally:
        server.kill()
    (answers,) = (plan / "answers").iterdir()
    (answer,) = rows(answers)
    assert answer["shown_width"] == str(shown)
    assert float(answer["pixels_per_mm"]) == pytest.approx(ratio * css_pixels_per_mm, rel=0.002)


def test_widths_on_measured_screens_are_reported() -> None:
    seen = View(
        shown_width=240, shown_height=240, pixel_ratio=1.5, window_width=1280, window_height=800, pixels_per_mm=6.01
    )
    plain = replace(seen, pixels_per_mm=0.0)
    answers = [Answer(str(n), "real", "a", is_trial=True, view=view) for n, view in enumerate((seen, seen, plain))]
    found = shown_sizes(StudyAnswers(tuple(answers)))
    assert found is not None
    assert found.widths_mm == {"40": 2}
