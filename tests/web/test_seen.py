"""What had been in sight is answered, and one click is one answer, on every page; by the browser's own clock."""

import pytest
from playwright.sync_api import Browser, Page

from tests.browser_tab import pinch
from tests.web.test_keyboard import STATIC


@pytest.fixture
def page(browser: Browser) -> Page:
    page = browser.new_page()
    page.clock.install()
    page.set_content("<button id=a style='position: absolute; inset: 0 auto auto 0'>a</button><p><input id=text></p>")
    page.add_script_tag(path=STATIC / "seen.js")
    page.evaluate("window.count = 0; addEventListener('click', () => window.count++)")
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
    return page


@pytest.mark.browser
def test_two_clicks_at_one_place_at_once_are_one(page: Page) -> None:
    """Wherever what is there has come from; a third one, or one elsewhere, is another."""
    counts = []
    for gap, aside in ((0, 0), (60, 0), (120, 0), (250, 0), (299, 5), (300, 0), (60, 30)):
        page.clock.run_for(1_000)
        page.evaluate("window.count = 0")
        page.mouse.click(5, 5)
        page.clock.run_for(gap)
        page.mouse.click(5 + aside, 5)
        counts.append(page.evaluate("window.count"))
    assert counts == [1, 1, 1, 1, 1, 2, 2]
    page.clock.run_for(1_000)
    page.evaluate("window.count = 0")
    page.locator("#a").focus()
    for _ in range(2):  # by keyboard, each press counts
        page.keyboard.press("Enter")
    page.locator("#text").dblclick()
    assert page.evaluate("window.count") == 4
    page.close()


@pytest.mark.browser
def test_what_changed_a_moment_ago_is_answered_as_it_was(page: Page) -> None:
    def found() -> list[object]:
        return list(page.evaluate("[secondsInSight('reason'), settledInSight('reason', 0.5) ?? null]"))

    page.evaluate("noteInSight({ reason: 'text' }, 0.5)")
    page.clock.run_for(499)
    assert found() == [0.499, None]
    page.clock.run_for(1)
    assert found() == [0.5, "text"]
    page.evaluate("noteInSight({ reason: 'filter' }, 0.5)")
    page.clock.run_for(60)
    page.evaluate("noteInSight({ reason: 'noise' }, 0.5)")  # filter had never been there for long enough
    page.clock.run_for(60)
    page.evaluate("noteInSight({ reason: 'noise', image: null }, 0.5)")
    assert found() == [0.06, "text"]
    page.clock.run_for(440)
    assert found() == [0.5, "noise"]
    page.evaluate("noteInSight({}, 0.5)")  # gone
    assert found() == [0, None]
    page.close()


IMAGES = """<body style="margin: 0"><div class=photo style="width: 300px; height: 200px"><img id=near></div>
<div style="height: 300px; overflow: auto"><div style="height: 200px"></div>
<div class=photo style="width: 300px; height: 200px"><img id=cut></div></div>"""
GREY = """() => Promise.all([...document.images].map((image) => { const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height] = [300, 200]; image.src = canvas.toDataURL();
  return image.decode(); }))"""
IN_SIGHT = """() => [...document.images].map((image) =>
  [isInSight(image), isWholeInSight(image), sizeOnScreen(image)[0]])"""


@pytest.mark.browser
@pytest.mark.parametrize("ratio", [1, 1.25, 1.5, 2, 3])
def test_a_pinch_and_what_scrolls_take_images_out_of_sight(chromium: Browser, ratio: float) -> None:
    """The window has 1,000 x 600 CSS pixels; at 1.3 it shows 769 x 462, at 4 only 250 x 150."""
    page = chromium.new_page(viewport={"width": 1000, "height": 600}, device_scale_factor=ratio)
    page.set_content(IMAGES)
    page.add_script_tag(path=STATIC / "seen.js")
    page.evaluate(GREY)
    wide = 300 * ratio
    assert page.evaluate(IN_SIGHT) == [[True, True, wide], [True, False, wide]]
    pinch(page, 1.3)
    (near, cut) = page.evaluate(IN_SIGHT)
    assert near == [True, True, pytest.approx(1.3 * wide, rel=0.001)]
    assert cut[:2] == [False, False]
    pinch(page, 4)
    assert [each[:2] for each in page.evaluate(IN_SIGHT)] == [[True, False], [False, False]]  # all over the screen
    pinch(page, 1)
    page.evaluate("document.querySelector('div + div').scrollTo(0, 100)")
    assert [each[:2] for each in page.evaluate(IN_SIGHT)] == [[True, True], [True, True]]
    page.evaluate("tellOver('lost', 'No connection.')")
    assert [each[1] for each in page.evaluate(IN_SIGHT)] == [False, True]  # a line is over it
    page.close()


@pytest.mark.browser
def test_a_page_of_exact_images_asks_to_undo_a_pinch(chromium: Browser) -> None:
    page = chromium.new_page(viewport={"width": 1000, "height": 600})
    page.set_content("<p style='height: 3000px'>words</p>")
    page.add_script_tag(path=STATIC / "seen.js")
    note = "noteInSight({ image: 'a' }, 0.5); secondsInSight('image')"
    page.evaluate(note)
    page.wait_for_timeout(50)
    pinch(page, 2)
    assert page.evaluate(note) > 0.05  # nobody minds yet
    page.evaluate("askToUndoZoom('Undo it.')")
    assert page.evaluate(note) == 0
    box = page.locator("#zoomed").bounding_box()
    assert box is not None
    assert [box["x"], box["y"]] == [0, 0]
    assert box["width"] == pytest.approx(500, abs=1)
    pinch(page, 1)
    page.locator("#zoomed").wait_for(state="detached")
    assert page.evaluate(note) < 0.05
    page.close()
