"""What had been in sight is answered, and one click is one answer, on every page; by the browser's own clock."""

import pytest
from playwright.sync_api import Browser, Page

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
    """Wherever what lies there has come from; a third one, or one elsewhere, is another."""
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
