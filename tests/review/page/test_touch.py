"""Fingers move the image, where it is looked at and where it is cropped."""

import pytest
from playwright.sync_api import Browser, CDPSession

from .conftest import Serve
from .reviewing import Reviewing

PLACE = "() => { const { left, top } = document.querySelector('.cropper-canvas img').getBoundingClientRect();" \
    " return [Math.round(left), Math.round(top)] }"  # fmt: skip


def drag(fingers: CDPSession, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Drag one finger over the screen."""

    def touch(kind: str, x: float, y: float) -> None:
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})

    touch("touchStart", *start)
    for step in range(1, 6):
        touch("touchMove", *(a + (b - a) * step / 5 for a, b in zip(start, end, strict=True)))
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.mark.long
def test_an_image_is_moved_by_touch(browser: Browser, start: Serve) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, has_touch=True)
    page = context.new_page()
    at = Reviewing(page, start().address)
    fingers = context.new_cdp_session(page)
    at.press("Enter")
    page.wait_for_selector("[data-look=zoom][data-ready]", state="attached")
    left, top = page.evaluate(PLACE)
    drag(fingers, (640, 300), (740, 350))
    page.wait_for_function(f"({PLACE})().join() === '{left + 100},{top + 50}'")
    at.press("Escape", "x")
    page.wait_for_selector("[data-look=crop][data-ready]", state="attached")
    for _ in range(4):
        page.keyboard.press("+")
    drag(fingers, (300, 300), (500, 450))
    box, (left, top) = at.box(), page.evaluate(PLACE)
    assert len(box) == 4
    # hints that arrive replace the button: a tap in that moment is lost, and a finger repeats it
    while not page.locator("[data-pan][aria-pressed=true]").count():
        page.tap("[data-pan]")
        page.wait_for_timeout(300)
    drag(fingers, (300, 300), (330, 280))
    page.wait_for_function(f"({PLACE})().join() === '{left + 30},{top - 20}'")
    assert at.box() == box
    context.close()
