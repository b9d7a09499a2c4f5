"""What a reviewer finds on the page: plain words, buttons for each action, filters, what is read aloud."""

import re
from pathlib import Path

import pytest

from cleanset.review.hints.background import BackgroundHints
from tests import own_edition
from tests.browser_tab import PATIENCE

from .conftest import Open, Serve
from .reviewing import Reviewing, TabAlone, reviews, wait_until

IN_VIEW = """
selector => { const { top, bottom, height } = document.querySelector(selector).getBoundingClientRect();
  return height > 0 && top >= 0 && bottom <= innerHeight }
"""


def click(at: Reviewing, selector: str) -> None:
    before = at.of_view("pressed")
    at.page.click(selector)
    at.answered(before)


@pytest.mark.long
def test_a_crop_at_200_percent(edition: Path, start: Serve, visit: Open) -> None:
    """The size of the box, the error and the way out stay in view, whatever is scrolled."""
    at = visit(start())
    at.resize(640, 400)
    at.press("x")
    at.page.wait_for_selector("[data-look=crop][data-ready]", state="attached", timeout=PATIENCE)
    click(at, "#panel button[data-key=Enter]")
    assert at.notice.startswith("Not saved yet")
    for scroll in (0, 999):
        at.page.evaluate(
            "by => ['#panel', '.side'].forEach((each) => document.querySelector(each).scrollTo(0, by))", scroll
        )
        for selector in ("#crop-size", "#panel .notice", "#panel .save"):
            assert at.page.evaluate(IN_VIEW, selector), selector
    assert at.page.evaluate("document.querySelector('#panel').scrollTop") > 0


@pytest.mark.long
def test_each_action_of_the_close_up_has_a_button(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    first, second = at.shown[:2]
    at.press("Enter")
    at.page.wait_for_selector("[data-look=zoom][data-ready]", state="attached", timeout=PATIENCE)
    for key in ("1", "2", "4", "+", "-", "0"):
        before = at.page.inner_text("#zoom-ratio")
        at.page.click(f"#below button[data-key='{key}']")
        assert at.page.inner_text("#zoom-ratio") != before
    at.page.click("#below button[data-key=ArrowRight]")
    at.page.wait_for_selector(f"#view[data-focus={second}]", state="attached")
    at.page.click("#below button[data-key=ArrowLeft]")
    at.page.wait_for_selector(f"#view[data-focus={first}]", state="attached")
    click(at, "#below button[data-key=r]")
    at.look()  # the buttons of the reasons have only just come
    click(at, "#below button[data-key=b]")
    assert list(next(iter(reviews(edition).values()))) == [first]
    click(at, "#below button[data-key=z]")  # leads to the cards
    assert (at.mode, reviews(edition)) == ("class", {})


@pytest.mark.long
def test_filters_by_reason_and_by_hint(edition: Path) -> None:
    tab = TabAlone(edition, measures=True)
    goldfish = tab.wnid
    tab.type("r", "w", "n", "f", "r", "w")
    assert (tab.order.filter, tab.wnid) == ("reason: watermark", goldfish)
    assert "with a verdict" not in tab.type("f", "r")["view"]
    tab.type("b")
    assert tab.said == "No class with this filter: reason: border."
    while not tab.session.hints.complete(tab.cursor.images()):
        tab.type("f", "Escape")
    kinds = {hint.kind for hints in tab.session.hints.of(tab.cursor.images()).values() for hint in hints}
    assert "collage" in kinds
    tab.type("f", "h", "o")
    assert tab.order.filter == "hint: collage"
    assert tab.cursor.class_index in tab.order.matching()
    tab.type("f", "h", "Escape")
    assert tab.mode == "class"
    tab.session.hints.close()


@pytest.mark.exhaustive
def test_hints_of_classes_that_nobody_has_opened(edition: Path) -> None:
    """Measured in the background; until then the filter says how many images are not, and never that there are none."""
    tab = TabAlone(edition, measures=True)
    hints, library = tab.session.hints, tab.library
    tab.type("f", "h", "u")
    assert re.fullmatch(r"No class with this filter yet: hint: dark\. \d+ images are not measured yet\.", tab.said)
    footer = tab.type("f", "h")["view"]
    assert re.search(r"<small>\d+ images are not measured yet</small>", footer)
    assert re.search(r"dark <small>\?</small>", footer)
    classes = list(library.by_class)[:4]
    hints.measure_all([list(library.candidates(index)) for index in classes])
    images = [each for index in classes for each in library.candidates(index)]
    wait_until(lambda: not hints.unmeasured(images, ""))
    opened = BackgroundHints(library.photos.read, library.classes)  # as if each class were opened
    opened.request(images)
    wait_until(lambda: bool(opened.complete(images)))
    measured = {
        image_id: {hint.kind for hint in found}
        for index in classes
        for image_id, found in opened.of(library.candidates(index)).items()
    }
    opened.close()
    assert hints.kinds(images) == measured
    assert any("collage" in each for each in measured.values())
    tab.type("o")
    assert "Classes found so far" in tab.said
    hints.close()


UNCLEAR = ("top5", "unsettled", "relaxed", "–")


def test_own_images_without_scores_have_neither_model_nor_rank(tmp_path: Path) -> None:
    own = own_edition.make(tmp_path, each=3).folder
    html = TabAlone(own).type()["view"]
    text = " ".join(re.sub(r"<[^>]*>", " ", html).split())
    for word in (*UNCLEAR, "rank", "confidence"):
        assert word not in text, word
    assert 'alt="001, image 1, not reviewed yet"' in html
    assert not re.search(r"<i>images</i>", html)
    assert "classes: to review" in text


def test_the_page_of_the_sample_has_words_for_tiers(tab: TabAlone) -> None:
    text = re.sub(r"<[^>]*>", " ", tab.type()["view"])
    assert not [word for word in UNCLEAR if word in text]
    assert re.search(r"rank \d+, reserve", text)
    assert re.search(r"rank 1\s", text)


@pytest.mark.long
def test_what_changes_is_read_aloud_and_focus_stays_with_the_task(start: Serve, visit: Open) -> None:
    at = visit(start())
    first, second = at.shown[:2]
    at.page.wait_for_selector("body > [role=status]:has-text('goldfish. 8 to review')", state="attached")
    at.press("c")
    at.page.wait_for_selector(
        "body > [role=status]:has-text('goldfish, image 1'):has-text(', clean')", state="attached"
    )
    assert at.page.evaluate("document.activeElement.dataset.card") == second
    for key, out in (("x", "Escape"), ("Enter", "Escape"), ("h", "Escape"), ("b", "Escape"), ("?", "Escape")):
        at.press(key)
        assert at.page.evaluate("document.activeElement.closest('#overlay') !== null"), key
        at.press(out)
        assert at.page.evaluate("document.activeElement.dataset.card") == second, key
    at.press("f", "c")
    at.page.wait_for_selector(
        "body > [role=status]:has-text('No class with this filter: conflicts.')", state="attached"
    )
    at.press("n")
    at.page.wait_for_selector("body > [role=status]:has-text('ladybug')", state="attached")
    assert first != at.focus == at.page.evaluate("document.activeElement.dataset.card")
