"""In every state of the study's page nothing is cut, covered, outside the window, too small or too pale."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Page

from tests.boxes import WINDOWS, problems
from tests.browser_tab import PATIENCE, Server
from tests.studies.realness.conftest import ANSWERABLE, rows

GROUP = "#jspsych-html-button-response-btngroup"
SCALE = f"{GROUP} button"
GERMAN = ["sicher verändert", "wahrscheinlich verändert", "nicht zu entscheiden", "wahrscheinlich echt", "sicher echt"]
"""The answers in a language with long words."""
WRAPPING = f"{GROUP} {{ flex-wrap: wrap !important }} {SCALE} {{ flex: none !important; min-width: 120px !important }}"
"""The former layout of the answers, above 700 pixels: in German three and two."""


@pytest.fixture
def german(plan: Path) -> Path:
    """A plan with German answers, to be served."""
    texts = yaml.safe_load((plan / "texts.yaml").read_text())
    (plan / "texts.yaml").write_text(yaml.safe_dump({**texts, "language": "de", "scale": GERMAN}, allow_unicode=True))
    (plan.parent / "consent.html").write_text("<p>I take part. Nothing about me is saved but my answers.</p>")
    return plan


@pytest.fixture
def serving(german: Path) -> Iterator[Server]:
    settings = f"people=8,consent={german.parent / 'consent.html'}"
    found = Server(german, "study", "serve", "--plan", ".", "--port", "0", "--settings", settings)
    yield found
    found.kill()


@pytest.fixture
def page(browser: Browser) -> Page:
    window = browser.new_page()
    window.set_default_timeout(PATIENCE)
    return window


def look_at(page: Page, title: str) -> list[str]:
    return problems(page, f"study's page, {title}", in_one_row=[SCALE])


def kind_of(page: Page) -> str:
    """The kind of the trial that is shown, once it can be answered."""
    page.wait_for_selector(ANSWERABLE)
    return "pair" if page.query_selector(".pair") else "attention" if page.query_selector(".check") else "image"


@pytest.mark.long
def test_from_consent_to_thanks(serving: Server, german: Path, page: Page) -> None:
    page.goto(serving.link("person=ada"))
    page.get_by_role("button", name="I agree").wait_for()
    found = look_at(page, "consent")
    page.get_by_role("button", name="I do not agree").click()
    found += look_at(page, "declined")
    page.reload()
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").wait_for()
    found += look_at(page, "instructions")
    page.get_by_role("button", name="Begin").click()
    trials = [each for each in rows(german / "trials.csv") if each["list"] == "1"]
    seen = set()
    for place, _ in enumerate(trials, start=1):
        page.locator(".progress", has_text=f"{place} of {len(trials)}").wait_for()
        kind = kind_of(page)
        if kind not in seen:
            found += look_at(page, kind)
            if kind == "image":
                assert_the_old_scale_is_found(page)
        seen.add(kind)
        page.keyboard.press("1")
    assert seen == {"pair", "image", "attention"}
    page.get_by_role("heading", name="Thank you").wait_for()
    found += look_at(page, "thanks")
    assert not found, "\n".join(found)


def assert_the_old_scale_is_found(page: Page) -> None:
    """With its answers in three and two, on a desktop."""
    rule = page.add_style_tag(content=WRAPPING)
    found = problems(page, "study's page, image", in_one_row=[SCALE], windows=WINDOWS[:1])
    assert f"study's page, image, 1280 x 800, light: in several rows: {SCALE}" in found
    rule.evaluate("each => each.remove()")


@pytest.mark.exhaustive
def test_lists_from_the_disk(planned: Path, page: Page) -> None:
    """Which list, one that is not there, and the file at the end."""
    address = (planned / "page" / "index.html").resolve().as_uri()
    page.goto(address)
    found = look_at(page, "which list")
    page.goto(f"{address}?list=9")
    found += look_at(page, "unknown list")
    page.goto(f"{address}?list=2&person=ada")
    page.get_by_role("button", name="Begin").click()
    for place in range(1, 13):
        page.locator(".progress", has_text=f"{place} of 12").wait_for()
        kind_of(page)
        page.keyboard.press("1")
    page.get_by_text("Save my answers").wait_for()
    found += look_at(page, "answers as a file")
    assert not found, "\n".join(found)


@pytest.mark.long
def test_what_does_not_arrive(serving: Server, page: Page) -> None:
    """An image, and an answer on its way."""
    page.route("**/images/*", lambda route: route.abort())
    page.goto(serving.address)
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").click()
    page.get_by_text("An image has not loaded.").wait_for()
    found = look_at(page, "an image that has not arrived")
    page.unroute_all()
    kind_of(page)
    page.route("**/answer*", lambda route: route.abort())
    page.keyboard.press("1")
    page.get_by_text("No connection.").wait_for()
    found += look_at(page, "no connection")
    assert not found, "\n".join(found)


@pytest.mark.long
def test_who_may_not_begin(german: Path, page: Page, browser: Browser) -> None:
    """Without an id where one is required, in another browser, and after all places are taken."""
    server = Server(
        german, "study", "serve", "--plan", ".", "--port", "0", "--settings", "id_parameter=PROLIFIC_PID,people=1"
    )
    page.goto(server.address)
    page.get_by_role("heading").wait_for()
    found = look_at(page, "no id")
    page.goto(server.link("PROLIFIC_PID=one"))
    page.get_by_role("button", name="Begin").click()
    kind_of(page)
    other = browser.new_page()
    other.goto(server.link("PROLIFIC_PID=one"))
    other.get_by_role("heading", name="You started in another browser").wait_for()
    found += look_at(other, "another browser")
    other.goto(server.link("PROLIFIC_PID=two"))
    other.get_by_role("heading", name="All places are taken").wait_for()
    found += look_at(other, "all places taken")
    server.kill()
    assert not found, "\n".join(found)
