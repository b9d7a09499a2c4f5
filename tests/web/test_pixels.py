"""An exact image is the file on the screen, whatever moves it; at emulated and at real pixel ratios."""

import base64
import io
import shutil

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Page

from tests.conftest import BROWSERS, CHROMIUM_OPTIONS
from tests.web.test_keyboard import STATIC

SIZES = ((61, 47), (64, 64), (75, 99), (33, 57), (50, 50))
RATIOS = [
    pytest.param(ratio, marks=() if ratio in (1.25, 1.5) else pytest.mark.exhaustive)
    for ratio in (0.9, 1, 1.1, 1.25, 1.33, 1.5, 1.75, 2, 2.5, 3)
]
WIDTHS = (391, 801, 1367)
"""Of windows, in CSS pixels: with odd ones, what is in the middle is at halves of pixels."""
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
TWO_FRAMES = "new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)))"


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


def differing(page: Page, factor: int) -> list[int]:
    """The number of device pixels of each image that are not those of the file."""
    page.evaluate(TWO_FRAMES)
    ratio = page.evaluate("devicePixelRatio")
    screen = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    found = []
    for image, size in zip(page.locator(".frame img").all(), SIZES, strict=True):
        box = image.bounding_box()
        assert box is not None
        stored = noise(*size).repeat(factor, axis=0).repeat(factor, axis=1)
        left = round(box["x"] * ratio)
        top = round(box["y"] * ratio)
        shown = screen[top : top + stored.shape[0], left : left + stored.shape[1]]
        assert shown.shape == stored.shape
        found.append(int((shown != stored).any(axis=2).sum()))
    return found


def assert_exact(page: Page, scrolled: int) -> None:
    factor = open_images(page)
    assert differing(page, factor) == [0] * len(SIZES)
    # a line more, a smaller gap, a scrolled window
    page.add_style_tag(content="#all { padding-top: 13.3px; gap: 5.1px !important } body { height: 3000px }")
    assert differing(page, factor) == [0] * len(SIZES)
    page.mouse.wheel(0, scrolled)
    assert differing(page, factor) == [0] * len(SIZES)


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
    """There, and at this zoom of a browser, lengths are rounded to device pixels, emulated they are not."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    options = [*CHROMIUM_OPTIONS, f"--force-device-scale-factor={ratio}"]
    screen = chromium.browser_type.launch(executable_path=path, args=options)
    try:
        page = screen.new_context(no_viewport=True).new_page()
        assert page.evaluate("devicePixelRatio") == pytest.approx(ratio)
        session = page.context.new_cdp_session(page)
        window = session.send("Browser.getWindowForTarget")["windowId"]
        for width in WIDTHS:
            session.send("Browser.setWindowBounds", {"windowId": window, "bounds": {"width": width, "height": 801}})
            assert_exact(page, scrolled=9)
    finally:
        screen.close()
