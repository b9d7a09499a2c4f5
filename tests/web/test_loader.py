"""The loader of images: those on the screen first, then the next; what is on its way is never thrown away."""

import io

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Route

from tests.web.test_keyboard import STATIC

SITE = "http://study.test/"


def png(level: int = 0) -> bytes:
    out = io.BytesIO()
    Image.new("L", (64, 64), level).save(out, "PNG")
    return out.getvalue()


class Line:
    """A line on which each image waits until it is let through."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[str] = []
        self.waiting: dict[str, Route] = {}
        page.route(f"{SITE}*", self._note)
        page.goto(SITE)
        page.add_script_tag(path=STATIC / "loader.js")

    def _note(self, route: Route) -> None:
        name = route.request.url.removeprefix(SITE)
        if not name:
            return route.fulfill(body="<title>x</title>", content_type="text/html")
        self.asked.append(name)
        self.waiting[name] = route
        return None

    def wait_for(self, *names: str) -> None:
        """Wait until these images, and no others, were asked for."""
        for _ in range(200):
            if self.asked == [*names]:
                return
            self.page.wait_for_timeout(50)
        assert self.asked == [*names]

    def let(self, name: str) -> None:
        self.waiting.pop(name).fulfill(body=png(), content_type="image/png")


@pytest.fixture
def page(browser: Browser) -> Page:
    return browser.new_page()


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("load", ["loadBytes", "loadElement"])
def test_the_images_on_the_screen_come_first(page: Page, load: str) -> None:
    line = Line(page)
    page.evaluate(f"window.loader = imageLoader({load}); void loader.want(['a', 'b'], ['c', 'd'])")
    line.wait_for("a", "b")
    line.let("b")
    page.wait_for_timeout(200)
    assert line.asked == ["a", "b"]
    line.let("a")
    line.wait_for("a", "b", "c")
    # what comes next is on the screen before it is there: its fetch continues
    page.evaluate("void loader.want(['c'], ['e'])")
    page.wait_for_timeout(100)
    assert line.asked == ["a", "b", "c"]
    line.let("c")
    address = page.evaluate("loader.arrived('c')")
    line.wait_for("a", "b", "c", "e")  # d is not needed any more
    assert (
        page.evaluate("async a => { const i = new Image(); i.src = a; await i.decode(); return i.width }", address)
        == 64
    )
    page.close()


@pytest.mark.long
@pytest.mark.browser
def test_an_image_that_fails_is_asked_for_again_while_it_is_wanted(page: Page) -> None:
    line = Line(page)
    page.evaluate(
        "window.failed = []; window.loader = imageLoader(loadBytes, { troubled: (url) => failed.push(url) });"
        "void loader.want(['a'], [])"
    )
    line.wait_for("a")
    line.waiting.pop("a").fulfill(status=404)
    line.wait_for("a", "a")
    line.waiting.pop("a").fulfill(body=b"no image", content_type="image/png")
    line.wait_for("a", "a", "a")
    assert page.evaluate("failed") == ["a", "a"]
    page.evaluate("void loader.want([], [])")
    line.waiting.pop("a").fulfill(status=404)
    page.wait_for_timeout(3_500)
    assert line.asked == ["a", "a", "a"]
    page.close()


@pytest.mark.browser
def test_images_that_are_not_needed_any_more_are_forgotten(page: Page) -> None:
    line = Line(page)
    page.evaluate("window.loader = imageLoader(loadBytes); void loader.want(['a'], [])")
    line.wait_for("a")
    line.let("a")
    address = page.evaluate("loader.arrived('a')")
    assert page.evaluate("async a => (await fetch(a)).status", address) == 200
    page.evaluate("void loader.want([], [])")
    assert page.evaluate("a => fetch(a).then(() => true, () => false)", address) is False
    page.close()
