"""An exact image is the file on the screen, whatever moves it; at emulated and at real pixel ratios."""

import base64
import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Page

from tests.browser_tab import on_screen_of, resize_window
from tests.web.exact import shown_images
from tests.web.test_keyboard import STATIC

SIZES = ((61, 47), (64, 64), (75, 99), (33, 57), (50, 50))
RATIOS = [
    pytest.param(ratio, marks=() if ratio == 1.25 else pytest.mark.exhaustive)
    for ratio in (0.9, 1, 1.1, 1.25, 1.33, 1.5, 1.75, 2, 2.5, 3)
]
WIDTHS = (391, 801, 1367)
"""Sizes of windows, in CSS pixels: with odd ones, what is in the middle is at halves of pixels."""
PAGE = """<body style="margin: 7.3px"><div id=all style="display: flex; flex-wrap: wrap; gap: 7.77px; justify-content:
center">{figures}</div>"""
# one after the other, as images arrive: each moves those before it
SHOW = """async () => {
  const images = [...document.images];
  await Promise.all(images.map((image) => image.decode()));
  const factor = Math.max(1, Math.round(devicePixelRatio));
  for (const image of images) {
    showAtPixels(image.parentElement, [image.naturalWidth, image.naturalHeight], factor);
    await new Promise(requestAnimationFrame);
  }
  return factor;
}"""


def noise(width: int, height: int) -> NDArray[np.uint8]:
    return np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)


def open_images(page: Page) -> int:
    """Show the images; device pixels for each of their own."""
    figures = ""
    for size in SIZES:
        file = io.BytesIO()
        Image.fromarray(noise(*size)).save(file, "PNG")
        address = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
        figures += f'<figure style="margin: 3.3px"><div class=frame><img src="{address}"></div></figure>'
    page.set_content(PAGE.format(figures=figures))
    for script in ("seen.js", "loader.js", "pixels.js"):
        page.add_script_tag(path=STATIC / script)
    factor: int = page.evaluate(SHOW)
    return factor


def assert_exact(page: Page, scrolled: int) -> None:
    factor = open_images(page)

    def assert_shown() -> None:
        found = [(each.factor, each.in_sight, each.differing) for each in shown_images(page)]
        assert found == [(factor, factor**2 * width * height, 0) for width, height in SIZES]

    assert_shown()
    # a line more, a smaller gap, a scrolled window
    page.add_style_tag(content="#all { padding-top: 13.3px; gap: 5.1px !important } body { height: 3000px }")
    assert_shown()
    page.mouse.wheel(0, scrolled)
    assert_shown()


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("ratio", RATIOS)
def test_images_are_exact_wherever_they_are_moved(browser: Browser, ratio: float) -> None:
    for width in WIDTHS:
        context = browser.new_context(viewport={"width": width, "height": 701}, device_scale_factor=ratio)
        # emulated, windows are scrolled by CSS pixels, and images with them
        assert_exact(context.new_page(), scrolled=0)
        context.close()


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("ratio", RATIOS)
def test_images_are_exact_on_a_screen_of_this_ratio(chromium: Browser, ratio: float) -> None:
    with on_screen_of(ratio, chromium) as page:
        for width in WIDTHS:
            resize_window(page, {"width": width, "height": 801})
            assert_exact(page, scrolled=9)
