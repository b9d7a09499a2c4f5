"""A judge sees the file: each pixel as a square of device pixels, at every pixel ratio and magnification."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Page

from tests.browser_tab import SCREENS, Server, on_screen_of, pinch, resize_window
from tests.studies.contest.judging_page import Judging, serve, unjudged
from tests.web.exact import shown_images


@pytest.fixture(scope="module")
def server(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = serve(unjudged(repository, tmp_path_factory.mktemp("judged")), "3f9c2a71", "--port", "0")
    yield started
    started.kill()


def on_stage(page: Page, ratio: float) -> NDArray[np.uint8]:
    """The device pixels of the window."""
    page.add_style_tag(content=".seen { display: none }")
    return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))


def stored(page: Page) -> NDArray[np.uint8]:
    """The pixels that the server sent."""
    address = page.eval_on_selector("img[data-image]", "image => image.src")
    sent = page.request.get(address).body()
    return np.asarray(Image.open(io.BytesIO(sent)).convert("RGB"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("window", "ratio", "factors"),
    [
        ((1280, 800), 1, (4, 5)),
        pytest.param((1280, 800), 1.25, (5, 6), marks=pytest.mark.exhaustive),
        pytest.param((1000, 500), 1.5, (3, 4), marks=pytest.mark.exhaustive),
        pytest.param((1280, 800), 2, (8, 9), marks=pytest.mark.exhaustive),
        ((390, 844), 3, (5, 6)),
    ],
)
def test_a_judge_sees_each_pixel_as_a_square(
    server: Server, chromium: Browser, window: tuple[int, int], ratio: float, factors: tuple[int, int]
) -> None:
    context = chromium.new_context(viewport={"width": window[0], "height": window[1]}, device_scale_factor=ratio)
    try:
        at = Judging(context.new_page(), server.address)
        at.press("Enter")
        image = stored(at.page)
        whole = on_stage(at.page, ratio)
        at.page.keyboard.press("+")
        larger = on_stage(at.page, ratio)
    finally:
        context.close()
    height, width = image.shape[:2]
    assert contains(whole, image.repeat(factors[0], axis=0).repeat(factors[0], axis=1))
    # of the magnified image, which may be larger than the stage, what is in its middle
    part = image[height // 2 - 12 : height // 2 + 12, width // 2 - 12 : width // 2 + 12]
    assert contains(larger, part.repeat(factors[1], axis=0).repeat(factors[1], axis=1))


@pytest.mark.long
@pytest.mark.parametrize("ratio", SCREENS)
def test_a_judge_sees_each_pixel_on_a_screen_of_this_ratio(server: Server, chromium: Browser, ratio: float) -> None:
    with on_screen_of(ratio, chromium) as page:
        Judging(page, server.address).press("Enter")
        for width in (1367, 391):
            resize_window(page, {"width": width, "height": 801})
            (whole,) = shown_images(page)
            page.keyboard.press("+")
            page.wait_for_timeout(300)
            (larger,) = shown_images(page)
            page.keyboard.press("-")
            page.wait_for_timeout(300)
            assert (whole.differing, larger.differing) == (0, 0)
            assert larger.factor > whole.factor


@pytest.mark.long
def test_a_judge_undoes_a_pinch_before_answering(server: Server, chromium: Browser) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    try:
        at = Judging(context.new_page(), server.address)
        pinch(at.page, 1.3)
        at.press("Enter")
        at.page.get_by_text("Please undo the zoom").wait_for()
        at.look()
        at.page.keyboard.press("1")
        pinch(at.page, 1)
        at.press("4", "z")
        assert at.of_view("pressed") == "3"  # Enter, 4 and z
    finally:
        context.close()


def contains(screen: NDArray[np.uint8], part: NDArray[np.uint8]) -> bool:
    """Whether these pixels are anywhere on the screen."""
    height, width = part.shape[:2]
    first = part[0, :, :].tobytes()
    for top in range(screen.shape[0] - height + 1):
        row = screen[top].tobytes()
        at = row.find(first)
        while at >= 0:
            left, odd = divmod(at, 3)
            if odd == 0 and np.array_equal(screen[top : top + height, left : left + width], part):
                return True
            at = row.find(first, at + 1)
    return False
