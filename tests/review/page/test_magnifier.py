"""The magnifier and the guidelines show the file: each pixel as a square of device pixels, at every pixel ratio."""

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Page

from tests.browser_tab import PATIENCE, SCREENS, on_screen_of, resize_window
from tests.web.exact import shown_images

from .conftest import Serve
from .reviewing import Reviewing

SIZE = 320
"""Size of the magnifier, in CSS pixels."""
# drawn by the browser itself, so that another decoder of JPEGs makes no difference
PIXELS = """image => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  return [...context.getImageData(0, 0, canvas.width, canvas.height).data];
}"""


def magnified(page: Page, x: float, y: float, ratio: float) -> NDArray[np.uint8]:
    """The device pixels of the magnifier with the mouse at a place."""
    page.mouse.move(x, y)
    page.keyboard.down("q")
    page.wait_for_function("!document.querySelector('#magnifier')?.hidden", timeout=PATIENCE)
    page.wait_for_function("document.querySelector('#magnifier:not(:has(.loading)) img')?.complete", timeout=PATIENCE)
    page.add_style_tag(content="#magnifier .ratio {display: none}")
    box = page.locator("#magnifier .ground").bounding_box()
    assert box is not None
    shot = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    left, top, side = (round(each * ratio) for each in (box["x"], box["y"], SIZE))
    return shot[top : top + side, left : left + side]


@pytest.mark.long
@pytest.mark.parametrize("ratio", [1, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in (1.25, 2))])
def test_the_magnifier_shows_what_is_under_the_mouse(start: Serve, chromium: Browser, ratio: float) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, device_scale_factor=ratio)
    try:
        page = context.new_page()
        at = Reviewing(page, start().address)
        place = page.locator("[data-card] img").first.bounding_box()
        assert place is not None
        x = round(place["x"] + 0.5 * place["width"]) + 1
        y = round(place["y"] + 0.5 * place["height"]) + 1
        shown = magnified(at.page, x, y, ratio)
        image = page.locator("#magnifier img")
        width, height = image.evaluate("image => [image.naturalWidth, image.naturalHeight]")
        stored = np.array(image.evaluate(PIXELS), dtype=np.uint8).reshape(height, width, 4)[..., :3]
    finally:
        context.close()
    assert shown.shape == (SIZE * ratio, SIZE * ratio, 3)
    # the card shows the image whole, in the middle of its element
    scale = min(place["width"] / width, place["height"] / height)
    factor = next(n for n in range(1, 100) if n >= 2 * scale * ratio - 1e-6)
    large = stored.repeat(factor, axis=0).repeat(factor, axis=1)
    under_mouse = [
        (at_mouse - start - (room - natural * scale) / 2) / scale * factor
        for at_mouse, start, room, natural in (
            (x, place["x"], place["width"], width),
            (y, place["y"], place["height"], height),
        )
    ]
    # the pixel under the mouse is in the middle, to within two device pixels
    left, top = (round(each - SIZE * ratio / 2) for each in under_mouse)
    side = shown.shape[0]
    around = [
        large[top + down : top + down + side, left + across : left + across + side]
        for down in range(-2, 3)
        for across in range(-2, 3)
    ]
    assert any(np.array_equal(shown, each) for each in around)


@pytest.mark.long
@pytest.mark.parametrize("ratio", SCREENS)
def test_magnifier_and_guidelines_are_exact_on_a_screen_of_this_ratio(
    start: Serve, chromium: Browser, ratio: float
) -> None:
    with on_screen_of(ratio, chromium) as page:
        at = Reviewing(page, start().address)
        place = page.locator("[data-card] img").first.bounding_box()
        assert place is not None
        for share in (0.31, 0.5, 0.83):
            page.mouse.move(place["x"] + share * place["width"], place["y"] + share * place["height"])
            page.keyboard.down("q")
            page.locator("#magnifier .frame:not(:has(.loading)) img").wait_for()
            (glass,) = shown_images(page)
            assert (glass.in_sight > 0, glass.differing) == (True, 0)
            page.keyboard.up("q")
        at.press("h")
        for width in (1367, 641):
            resize_window(page, {"width": width, "height": 801})
            page.locator(".guidelines .frame:not(:has(.loading)) img").first.wait_for()
            # others that are loaded later move it
            page.wait_for_load_state("networkidle")
            examples = shown_images(page)
            assert {each.alt for each in examples} == {"clean (drawn)", "flawed (drawn)"}
            assert {each.differing for each in examples} == {0}
