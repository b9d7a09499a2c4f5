"""Who is at a page: no tab becomes another person's, another person's link asks, and what is refused is explained."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from cleanset.web.tokens import kept_tokens
from tests.browser_tab import PATIENCE, Server
from tests.remotes.servers import free_port
from tests.report.pages import violations

from .conftest import Serve
from .reviewing import Reviewing, reviews


def link(edition: Path, server: Server, name: str) -> str:
    token = kept_tokens(edition / ".dvc" / "tmp" / "review_links", [name])[name]
    return f"http://127.0.0.1:{server.port}/{name}/?token={token}"


def can_be_read(page: Page) -> bool:
    """A title, a heading, and no violation of axe's rules, on a phone and in a window."""
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert violations(page) == []
    return page.title() == page.inner_text("h1") and page.get_attribute("html", "lang") == "en"


@pytest.mark.exhaustive
def test_a_tab_stays_with_its_person(edition: Path, start: Serve, browser: Browser) -> None:
    """When another link is opened next to it, and when the server is started again."""
    options = ("--reviewer", "ben", "--port", str(free_port()))
    server = start("ada", *options)
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    ada = Reviewing(context.new_page(), link(edition, server, "ada"))
    page = context.new_page()
    page.goto(link(edition, server, "ben"))
    assert can_be_read(page)
    assert page.title() == "Continue as ben?"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("button", name="Continue as ben").click()
    page.wait_for_url(f"**:{server.port}/ben/**")
    assert "ben ·" in page.inner_text(".who")
    ada.page.evaluate("window.isOld = true")
    server.kill()
    start("ada", *options)
    ada.page.wait_for_function("!window.isOld", timeout=PATIENCE)
    ada.ready()
    assert "ada ·" in ada.page.inner_text(".who")
    ada.look()
    ada.press("c")
    assert [len(reviews(edition, name)) for name in ("ada", "ben")] == [1, 0]
    page.goto(f"http://127.0.0.1:{server.port}/ben/")  # known, and not asked again
    assert "ben ·" in page.inner_text(".who")
    page.goto(f"http://127.0.0.1:{server.port}/")  # without a name, it asks for one
    assert can_be_read(page)
    assert page.title() == "Who are you?"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("link", name="Continue as ada").click()
    page.wait_for_url(f"**:{server.port}/ada/**")
    context.close()


@pytest.mark.long
def test_a_refused_link_is_a_page(edition: Path, start: Serve, browser: Browser) -> None:
    server = start("ada", "--reviewer", "ben", "--port", "0")
    page = browser.new_page()
    for path in ("ada/?token=x", "ada/", "", "eve/"):
        refused = page.goto(f"http://127.0.0.1:{server.port}/{path}")
        assert refused is not None
        assert refused.status == 403
        assert can_be_read(page)
        assert "ask the sender for the new link" in page.inner_text("main")


@pytest.mark.long
def test_a_page_of_one_reviewer_is_not_that_of_the_next(edition: Path, start: Serve, browser: Browser) -> None:
    """A tab of ada, whose server has ended and whose port is ben's now: her link and her cookie do not open his."""
    port = str(free_port())
    server = start("ada", "--port", port)
    page = browser.new_page()
    page.goto(server.address)
    server.kill()
    ben = start("ben", "--port", port)
    for address in (server.address, f"http://127.0.0.1:{port}/", ben.page):
        page.goto(address)
        assert "There is no page of this name" in page.inner_text("main")
    page.goto(ben.address.replace("/ben/", "/"))
    assert page.url.startswith(f"http://127.0.0.1:{port}/ben/")
    assert "ben ·" in page.inner_text(".who")
    page.close()
