"""The page in a real browser, opened as a file: by mouse and by keyboard, to the file of answers."""

import hashlib
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from cleanset.studies.realness.ratings import parse_key, read_ratings, texts_of
from tests.report.pages import outside, violations
from tests.studies.realness.conftest import ANSWERABLE, FITS, rows


@pytest.fixture
def page(browser: Browser, planned: Path) -> Iterator[Page]:
    """A window; fails on any message in the console, an error, and a request that leaves the page's folder."""
    window = browser.new_page(viewport={"width": 1100, "height": 760})
    trouble: list[str] = []
    inside = f"{(planned / 'page').resolve().as_uri()}/"
    window.on("console", lambda message: trouble.append(message.text))
    window.on("pageerror", lambda error: trouble.append(str(error)))
    window.on("requestfailed", lambda request: trouble.append(f"failed: {request.url}"))
    window.on(
        "request",
        lambda request: trouble.extend([] if request.url.startswith("blob:") else outside(request.url, inside)),
    )
    yield window
    assert trouble == []
    window.close()


def address(planned: Path, query: str = "") -> str:
    return (planned / "page" / "index.html").resolve().as_uri() + query


def position(page: Page) -> tuple[int, int]:
    """Which of how many trials is shown."""
    found = re.fullmatch(r"(\d+) of (\d+) · about \d min left", page.inner_text(".progress"))
    assert found
    return int(found[1]), int(found[2])


@pytest.mark.long
def test_a_whole_list(page: Page, planned: Path, tmp_path: Path) -> None:
    """By mouse and by keyboard in turn; the answers are those of the list, and the analysis reads them."""
    page.goto(address(planned, "?list=5&person=ada-7"))
    assert "Was this image modified" not in page.content()
    page.get_by_text("Begin").click()
    trials = [each for each in rows(planned / "trials.csv") if each["list"] == "5"]
    key = {each["stimulus"]: each for each in rows(planned / "key.csv")}
    given = []
    with page.expect_download() as download:
        for place, trial in enumerate(trials, start=1):
            assert position(page) == (place, len(trials))
            shown = [
                page.evaluate("img => img.dataset.file.split('/').pop()", each)
                for each in page.query_selector_all("img")
            ]
            assert shown == [file for file in (trial["file"], trial["file_right"]) if file]
            page.wait_for_function("[...document.images].every(img => img.complete && img.naturalWidth === 40)")
            page.wait_for_selector(ANSWERABLE)
            buttons = page.query_selector_all("#study button")
            if trial["kind"] == "pair":
                chosen = ["left", "right"].index(key[trial["stimulus"]]["expected"])
                given.append(["left", "right"][chosen])
            elif trial["kind"] == "attention":
                chosen = 0 if trial["choose"] == "surely modified" else 4
                assert trial["choose"] in page.inner_text(".check")
                given.append(str(chosen - 2))
            else:
                chosen = place % 5
                given.append(str(chosen - 2))
            if place % 2:
                buttons[chosen].click()
            else:
                page.keyboard.press(str(chosen + 1))
    assert download.value.suggested_filename == "answers-5-ada-7.csv"
    download.value.save_as(tmp_path / "answers.csv")
    answers = rows(tmp_path / "answers.csv")
    assert [each["answer"] for each in answers] == given
    assert [each["stimulus"] for each in answers] == [each["stimulus"] for each in trials]
    assert [int(each["position"]) for each in answers] == list(range(1, 13))
    assert {(each["person"], each["list"]) for each in answers} == {("ada-7", "5")}
    assert all(300 <= int(each["milliseconds"]) < 60_000 for each in answers)
    found = read_ratings(texts_of([tmp_path / "answers.csv"]), parse_key((planned / "key.csv").read_text(), "key.csv"))
    assert len(found.ratings) == 8
    assert [each.passed for each in found.checks] == [True] * 4
    with page.expect_download() as again:
        page.get_by_text("Save my answers").click()
    again.value.save_as(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "answers.csv").read_bytes()


def test_the_list_is_asked_for(page: Page, planned: Path) -> None:
    page.goto(address(planned, "?list=9"))
    assert "There is no list 9. Please enter a number from 1 to 8." in " ".join(page.inner_text("main").split())
    page.get_by_label("The number of your list").fill("8")
    page.get_by_text("Continue").click()
    page.get_by_text("Begin").click()
    (first, *_) = [each for each in rows(planned / "trials.csv") if each["list"] == "8"]
    assert page.get_attribute(".pair img", "data-file") == f"images/{first['file']}"


def test_what_is_given_in_the_address_is_text(page: Page, planned: Path) -> None:
    page.goto(address(planned, "?list=%3Cimg%20src=x%20onerror=alert(1)%3E"))
    assert page.query_selector("main img") is None
    assert "<img src=x" in page.inner_text(".error")


def test_keys_that_are_not_answers(page: Page, planned: Path) -> None:
    page.goto(address(planned, "?list=1"))
    page.get_by_text("Begin").click()
    page.wait_for_selector(ANSWERABLE)
    for each in ("3", "0", "x", "Control+1", "Enter"):  # a pair has two answers
        page.keyboard.press(each)
    assert position(page) == (1, 12)


@pytest.mark.long
def test_every_kind_of_trial_can_be_read(browser: Browser, planned: Path) -> None:
    """No violation of axe's rules, and nothing outside the window, on the first page, a pair, an image, a check.

    In a window of its own: axe asks for the style sheet again, which a browser refuses of a file.
    """
    page = browser.new_page()
    page.goto(address(planned, "?list=1"))
    page.add_style_tag(content="* { transition: none !important; }")
    kinds = {each["kind"] for each in rows(planned / "trials.csv") if each["list"] == "1"}
    seen: set[str] = set()

    def check(kind: str) -> None:
        for width in (1100, 390):
            page.set_viewport_size({"width": width, "height": 800})
            assert violations(page) == [], (kind, width)
            page.wait_for_function(FITS)
            if kind == "pair":
                left, right = (each.bounding_box() for each in page.query_selector_all(".pair img"))
                assert left is not None
                assert right is not None
                assert left["x"] + left["width"] <= right["x"]

    check("instructions")
    page.get_by_text("Begin").click()
    while seen != kinds:
        page.wait_for_selector(ANSWERABLE)
        kind = "pair" if page.query_selector(".pair") else "attention" if page.query_selector(".check") else "image"
        if kind not in seen:
            check(kind)
        seen.add(kind)
        page.keyboard.press("1")


def test_the_vendored_files_are_those_of_the_registry() -> None:
    folder = files("cleanset.studies.realness") / "static"
    digests = dict(re.findall(r"(?m)^([0-9a-f]{64})  (\S+)$", (folder / "VENDORED.txt").read_text()))
    vendored = {name: digest for digest, name in digests.items() if not name.endswith(".tgz")}
    assert sorted(vendored) == ["html-button-response.min.js", "jspsych.LICENSE", "jspsych.min.js"]
    for name, digest in vendored.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert b"jspsych@8.3.0/" in (folder / "jspsych.min.js").read_bytes()


def test_our_files_name_no_other_host() -> None:
    for name in ("index.html", "study.css", "study.js"):
        text = (files("cleanset.studies.realness") / "static" / name).read_text()
        assert re.findall(r"https?:|//[a-z0-9.-]+\.[a-z]{2,}", text) == []
