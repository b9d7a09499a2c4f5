"""A study in another language is a file of texts, and reads in its direction; who does not agree leaves nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser

from cleanset.errors import CleansetError
from cleanset.studies.realness.plan_files import USUAL_TEXTS, read_texts
from tests.browser_tab import PATIENCE, Server
from tests.report.pages import violations
from tests.studies.realness.conftest import ANSWERABLE, FITS, SIZES, command, rows

USUAL: dict[str, Any] = yaml.safe_load(USUAL_TEXTS.read_text())
CONSENT = "<p>\N{ARABIC LETTER SEEN} I take part.</p>"


def translated(text: Any) -> Any:
    """Each text with an Arabic letter before it, so that what is not translated is seen."""
    if isinstance(text, list):
        return [translated(each) for each in text]
    return text.replace("<p>", "<p>\N{ARABIC LETTER SEEN} ") if "<p>" in text else f"\N{ARABIC LETTER SEEN} {text}"


@pytest.fixture
def translation(tmp_path: Path) -> Path:
    texts = {name: translated(text) for name, text in USUAL.items()}
    texts |= {"language": "ar", "direction": "rtl"}
    texts["instructions"] = texts["instructions"].replace("<h1>", "<h1>\N{ARABIC LETTER SEEN} ")
    (tmp_path / "arabic.yaml").write_text(yaml.safe_dump(texts))
    return tmp_path / "arabic.yaml"


UNTRANSLATED = """
() => [...document.querySelectorAll("main h1, main p:not(:has(button, a)), main button > span, main strong, main a,"
  + " main button:not(:has(span))")].map((each) => each.textContent.trim()).filter((each) => !each.startsWith("\u0633"))
"""


WIDTHS = (1280, 390)


@pytest.mark.exhaustive
def test_a_whole_list_in_another_language(plan: Path, translation: Path, browser: Browser) -> None:
    """From consent to thanks, with the left image of a pair on the left, and no word of the usual texts."""
    (plan.parent / "consent.html").write_text(CONSENT)
    shutil.copy(translation, plan / "texts.yaml")
    settings = f"consent={plan.parent / 'consent.html'},completion=https://example.org/done"
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", settings)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(server.address)
    page.get_by_role("button", name="I do not agree").wait_for()
    assert (page.get_attribute("html", "lang"), page.get_attribute("html", "dir")) == ("ar", "rtl")
    seen = set()

    def check(kind: str, width: int) -> None:
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate(UNTRANSLATED) == [], kind
        page.wait_for_function(FITS)
        if (kind, width) not in seen:
            assert violations(page) == [], kind
        seen.add((kind, width))

    for width in WIDTHS:
        check("consent", width)
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").click()
    trials = [each for each in rows(plan / "trials.csv") if each["list"] == "1"]
    for place, trial in enumerate(trials, start=1):
        page.locator(".progress", has_text=f"{place} of 12").wait_for()
        page.wait_for_selector(ANSWERABLE)
        assert page.evaluate("document.activeElement.tagName") == "H1"
        assert page.inner_text("#told") == page.inner_text(".progress")
        if trial["kind"] == "attention":
            assert trial["choose"] in page.inner_text(".check strong")
        for width in WIDTHS:
            check(trial["kind"], width)
            if trial["kind"] == "pair":
                for parts in (".pair img", ANSWERABLE):
                    left, right = (each.bounding_box() for each in page.query_selector_all(parts))
                    assert left
                    assert right
                    assert left["x"] < right["x"]
            else:
                tops = page.locator(ANSWERABLE).evaluate_all("all => all.map(e => e.getBoundingClientRect().top)")
                assert (len(tops), len(set(tops))) == (5, 1)
        page.locator(ANSWERABLE).nth(1).click()
    page.get_by_role("link", name="Return and complete the study").wait_for()
    for width in WIDTHS:
        check("done", width)
    page.close()
    server.kill()
    (file,) = (plan / "answers").iterdir()
    assert [row["answer"] for row in rows(file)] == ["right"] * 2 + ["-1"] * 10


@pytest.mark.long
def test_who_does_not_agree_leaves_nothing(plan: Path, browser: Browser) -> None:
    (plan.parent / "consent.html").write_text(CONSENT)
    settings = f"consent={plan.parent / 'consent.html'}"
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", settings)
    page = browser.new_page()
    page.goto(server.link("person=ada"))
    assert page.inner_text("h1") == "Which images are real?"
    page.get_by_role("button", name="I do not agree").click()
    page.get_by_role("heading", name="You are not taking part").wait_for()
    assert violations(page) == []
    assert (page.evaluate("localStorage.length"), (plan / "people.csv").read_text()) == (0, "")
    page.reload()
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").click()
    page.locator(".progress").wait_for()
    assert "key" not in page.url
    page.close()
    elsewhere = browser.new_page()
    elsewhere.goto(server.link("person=ada"))
    elsewhere.get_by_role("heading", name="You started in another browser").wait_for()
    assert violations(elsewhere) == []
    elsewhere.close()
    server.kill()


def test_a_plan_keeps_its_texts(export_folder: Path, attacked: Path, translation: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan"
    people, number, option, sizes, *seed = SIZES
    named = (people, number, option, f"{sizes},texts={translation}", *seed)
    command("plan", "--set", export_folder, "--attacked", attacked, "--out", out, *named)
    assert (out / "texts.yaml").read_text() == translation.read_text()
    assert '"language":"ar"' in (out / "page" / "lists.js").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda texts: texts.pop("done"), "missing or unknown: done; expected the keys of a plan's texts.yaml"),
        (lambda texts: texts.update(thanks="x"), "missing or unknown: thanks"),
        (lambda texts: texts["scale"].pop(), "scale: .*; expected a translation of"),
        (lambda texts: texts.update(progress="{position} von {alle}"), "progress: '{position} von {alle}'; expected"),
        (lambda texts: texts.update(title=" "), "title: ' '; expected a translation of 'Which images are real"),
        (lambda texts: texts.update(title=7), "title: 7"),
        (lambda texts: texts.update(direction="down"), "direction: 'down'; expected"),
    ],
)
def test_texts_that_are_not_a_translation(
    change: Callable[[dict[str, Any]], object], message: str, tmp_path: Path
) -> None:
    texts = yaml.safe_load(USUAL_TEXTS.read_text())
    change(texts)
    path = tmp_path / "german.yaml"
    path.write_text(yaml.safe_dump(texts))
    with pytest.raises(CleansetError, match=message):
        read_texts(path)
    path.write_text("[]")
    with pytest.raises(CleansetError, match=r"german\.yaml: missing or unknown: agree"):
        read_texts(path)


@pytest.mark.long
def test_no_text_is_html_but_the_instructions(plan: Path, browser: Browser) -> None:
    """For a translation: elements of a text are shown unchanged."""

    def marked(text: Any) -> Any:
        return [marked(each) for each in text] if isinstance(text, list) else f"<i class='x'>&amp;</i> {text}"

    kept = ("language", "direction", "instructions")
    texts = {name: text if name in kept else marked(text) for name, text in USUAL.items()}
    (plan / "texts.yaml").write_text(yaml.safe_dump(texts))
    (plan.parent / "consent.html").write_text("<p>Consent</p>")
    settings = f"consent={plan.parent / 'consent.html'},completion=https://example.org/done"
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", settings)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)

    def check() -> None:
        assert page.locator("i").count() == 0
        assert "<i class='x'>&amp;</i>" in page.inner_text("main")

    page.goto(server.address)
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").wait_for()
    check()
    page.get_by_role("button", name="Begin").click()
    for place in range(1, 13):
        page.locator(".progress", has_text=f"{place} of 12").wait_for()
        page.wait_for_selector(ANSWERABLE)
        check()
        page.keyboard.press("1")
    page.get_by_role("link").wait_for()
    check()
    page.goto(server.link("person=%5BID%5D"))
    page.get_by_text("where your id should be").wait_for()
    check()
    page.close()
    server.kill()


GERMAN_SCALE = [
    "sicher verändert",
    "wahrscheinlich verändert",
    "nicht zu entscheiden",
    "wahrscheinlich echt",
    "sicher echt",
]
FINNISH_SCALE = ["epäjärjestelmällistyttämättömyys", "todennäköisesti", "en osaa sanoa", "luultavasti", "varmasti aito"]


@pytest.mark.long
@pytest.mark.parametrize("scale", [GERMAN_SCALE, FINNISH_SCALE], ids=["german", "finnish"])
def test_a_scale_of_long_words_is_one_row(plan: Path, browser: Browser, scale: list[str]) -> None:
    """On a desktop, a tablet and a phone, with all words within their buttons."""
    (plan / "texts.yaml").write_text(yaml.safe_dump(USUAL | {"language": "de", "scale": scale}))
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0")
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE)
    page.goto(server.address)
    page.get_by_role("button", name="Begin").click()
    for place in range(1, 4):
        page.locator(".progress", has_text=f"{place} of 12").wait_for()
        page.wait_for_selector(ANSWERABLE)
        if page.locator(ANSWERABLE).count() == 5:
            break
        page.keyboard.press("1")
    for width in (1920, 1280, 768, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(FITS)
        boxes = page.locator(ANSWERABLE).evaluate_all(
            "all => all.map(e => [e.getBoundingClientRect().top, e.scrollWidth <= e.clientWidth])"
        )
        assert len(boxes) == 5
        assert {tuple(box) for box in boxes} == {(boxes[0][0], True)}, width
    page.close()
    server.kill()
