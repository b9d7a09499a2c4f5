"""The board sees each verdict with its box, and takes one unchanged."""

from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.review.file_format import parse_review
from cleanset.review.page.library import IndexedImage
from cleanset.review.page.options import verdict_options
from cleanset.review.verdicts import Vote
from cleanset.tables import CANDIDATES, read_table
from tests.review.texts import GOLDFISH

from .conftest import Open, Serve
from .reviewing import Reviewing, TabAlone, reviews, write

WIDE = IndexedImage("ILSVRC2012_val_00000001", "0" * 64, 600, 200, ())
TALL = IndexedImage("ILSVRC2012_val_00000002", "0" * 64, 200, 600, ())
BOXES = "() => [...document.querySelectorAll('.options figure')].map((f) => ['x', 'y', 'width', 'height']" \
    ".map((name) => Number(f.querySelector('rect.box')?.getAttribute(name))))"  # fmt: skip


def vote(verdict: str, **fields: object) -> Vote:
    entry = {"verdict": verdict, "sha256": "0" * 64, **fields}
    if "crop" in fields:
        entry |= {"object_fully_visible": True, "reason": "text"}
    return Vote(GOLDFISH, WIDE.image_id, parse_review(entry, "here"), "here")


def test_equal_verdicts_are_one_option() -> None:
    """By number of reviewers, then verdict, reason, and boxes as numbers; the board's own verdict is not among them."""
    found = verdict_options(
        {
            "ada": vote("crop", crop=(10, 0, 400, 200)),
            "ben": vote("reject", reason="filter", note="sepia"),
            "board": vote("clean", note="no"),
            "cy": vote("reject", reason="filter"),
            "dot": vote("crop", crop=(9, 0, 400, 200)),
            "eve": vote("crop", crop="unknown"),
            "flo": vote("unsure"),
        }
    )
    assert [(each.number, each.review.verdict.kind, list(each.reviews), each.drawn_box) for each in found] == [
        (1, "reject", ["ben", "cy"], None),
        (2, "crop", ["dot"], (9, 0, 400, 200)),
        (3, "crop", ["ada"], (10, 0, 400, 200)),
        (4, "crop", ["eve"], None),
        (5, "unsure", ["flo"], None),
    ]
    assert found[0].notes == {"ben": "sepia"}
    assert (found[0].kept(WIDE), found[2].kept(WIDE)) == (1, 390 / 600)


def in_conflict(edition: Path, start: Serve, visit: Open) -> tuple[str, Reviewing]:
    """The board, in front of two crops of one image by other boxes."""
    table = read_table(Edition(edition).candidates("standard"), CANDIDATES, imagenet())
    image = str(
        table[(table["class_index"] == 1) & (table["tier"] == "top5") & (table["rank"] == 1)]["image_id"].item()
    )
    crop = {"verdict": "crop", "reason": "text", "object_fully_visible": True}
    write(edition, "ada", image, crop | {"crop": (0, 0, 300, 200), "note": "a date"})
    write(edition, "ben", image, crop | {"crop": (20, 10, 300, 200)})
    at = visit(start("board"))
    assert (at.wnid, at.focus, at.mode) == (GOLDFISH, image, "class")
    return image, at


@pytest.mark.long
def test_two_crops_are_distinguished_and_one_is_taken(edition: Path, start: Serve, visit: Open) -> None:
    image, at = in_conflict(edition, start, visit)
    assert at.page.evaluate(BOXES) == [[0, 0, 300, 200], [20, 10, 280, 190]]
    assert at.page.locator("[data-key='c']").count() == 1
    assert at.page.locator("[data-key='a']").count() == 0  # the board decides on one image after the other
    captions = at.page.locator(".options figcaption").all_inner_texts()
    assert "300 × 200 at 0, 0" in captions[0]
    assert "“a date”" in captions[0]
    assert "280 × 190 at 20, 10" in captions[1]
    large = at.page.locator(".options .photo").first.bounding_box()
    assert large is not None
    assert large["width"] > 580
    at.press("1")
    assert at.page.locator(".q-dialog textarea").input_value() == "a date"
    at.page.keyboard.press("Escape")
    at.page.wait_for_selector("[data-mode=class]")
    assert reviews(edition, "board") == {}
    at.press("2")
    at.type_into_dialog("   ")
    at.page.wait_for_selector("[data-mode=class]")
    assert at.notice.endswith("Not saved: a board verdict needs a note.")
    at.press("2")
    at.type_into_dialog("the frame goes all around")
    at.page.wait_for_selector("[data-mode=end]")
    assert reviews(edition, "board") == {
        GOLDFISH: {
            image: {
                "verdict": "crop", "reason": "text", "crop": [20, 10, 300, 200], "object_fully_visible": True,
                "note": "the frame goes all around",
            }
        }
    }  # fmt: skip


def test_another_decision_needs_a_note_of_its_own(edition: Path) -> None:
    image = TabAlone(edition).cursor.images()[0]
    write(edition, "ada", image, {"verdict": "clean"})
    write(edition, "ben", image, {"verdict": "reject", "reason": "text", "note": "a date"})
    tab = TabAlone(edition, "board")
    clean = {"verdict": "clean", "note": "too small to see"}
    reject = {"verdict": "reject", "reason": "text", "note": "Ben is right"}
    for number, suggested, note, saved in (
        ("1", "", "too small to see", clean),
        ("2", "a date", "Ben is right", reject),
        ("1", "Ben is right", None, reject),
    ):
        tab.open(1, image)
        tab.type(number)
        assert (tab.mode, tab.note()[1]) == ("note", suggested)
        tab.leave_note(note)
        assert "needs a note" not in tab.said
        assert reviews(edition, "board")[GOLDFISH][image] == saved


@pytest.mark.long
def test_its_own_crop_begins_with_the_boxes_in_conflict(edition: Path, start: Serve, visit: Open) -> None:
    image, at = in_conflict(edition, start, visit)
    at.press("x")
    at.page.wait_for_selector("[data-look=crop][data-ready]", state="attached")
    assert at.box() == [0, 0, 300, 200]
    at.page.keyboard.press("j")
    assert at.box() == [20, 10, 300, 200]
    at.page.keyboard.press("j")
    assert at.box() == [0, 0, 300, 200]
    at.page.locator("[data-choice]").nth(1).click()
    at.page.keyboard.press("Shift+ArrowUp")
    assert at.box() == [20, 10, 300, 199]
    at.press("Enter")
    assert "fully visible" in at.notice
    at.press("v", "Enter")
    at.type_into_dialog("a pixel less")
    at.page.wait_for_selector("[data-mode=end]")
    assert reviews(edition, "board")[GOLDFISH][image]["crop"] == [20, 10, 300, 199]


@pytest.mark.long
def test_others_see_two_crops_apart_too(edition: Path, start: Serve, visit: Open) -> None:
    image, _ = in_conflict(edition, start, visit)
    ada = visit(start("ada"), f"class={GOLDFISH}")
    card = ada.page.locator(f"[data-card='{image}']")
    assert "ben: crop, text, 280 × 190 at 20, 10" in card.inner_text()
    assert card.locator("rect.of-other").count() == 1


@pytest.mark.long
def test_the_page_shows_what_others_have_written_meanwhile(edition: Path, start: Serve, visit: Open) -> None:
    """At once when it is loaded, and at the end without a reload."""
    at = visit(start("board"))
    assert at.mode == "end"
    in_conflict(edition, start, visit)
    at.page.wait_for_selector("#cards.options")
    assert at.mode == "class"
