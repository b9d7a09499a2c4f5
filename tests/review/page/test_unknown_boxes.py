"""Crops whose box is asked for, and verdicts with another basis than this very image, at the page."""

from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.review.page.library import open_library
from tests.review.texts import GOLDFISH, sent

from .conftest import Open, Serve
from .reviewing import REASONS, TabAlone, change_review, reviews, write

FIRST_CLASS = 1
BOX = (4, 4, 60, 60)
UNKNOWN = {"verdict": "crop", "reason": "border", "crop": "unknown", "object_fully_visible": True}
WHY = "No crop box yet: draw it"


@pytest.fixture
def images(edition: Path) -> dict[int, list[str]]:
    """The images of each class, the likeliest first.

    With crops in their rank, so that a box among the first three is needed whatever the others are.
    """
    change_review(edition, crops="in_rank")
    library = open_library(Edition(edition))
    return {index: list(library.candidates(index)) for index in library.by_class}


def draw(tab: TabAlone, reason: str = "watermark") -> None:
    """Give the reason, state that the object stays visible, and save the box."""
    for key in (REASONS[reason], "v", "Enter"):
        tab.press(sent(key, [], BOX))


def test_the_page_opens_the_crop_of_an_image_whose_box_is_asked_for(
    edition: Path, images: dict[int, list[str]]
) -> None:
    """Even though another image of the class ranks higher."""
    second = images[FIRST_CLASS][1]
    write(edition, "scooter", second, UNKNOWN)
    tab = TabAlone(edition, at=FIRST_CLASS)
    assert (tab.mode, tab.cursor.focus) == ("crop", second)
    assert WHY in tab.type()["overlay"]
    view = tab.type("Escape")["view"]
    assert (tab.mode, tab.cursor.focus) == ("class", second)
    assert "to be cropped: draw the box" in view
    assert "scooter" not in view.split("</figure>")[0]  # whose verdict it is does not matter
    tab.press(sent("x", [second]))
    draw(tab)
    assert reviews(edition)[GOLDFISH][second]["crop"] == list(BOX)
    assert tab.mode == "class"
    assert tab.cursor.focus != second
    assert not tab.cursor.is_box_asked()


def test_the_reviewer_without_a_box_is_asked_for_it(edition: Path, images: dict[int, list[str]]) -> None:
    """The reason is already; what is saved is bound to the bytes that were seen, and explicit."""
    first = images[FIRST_CLASS][0]
    write(edition, "scooter", first, UNKNOWN | {"basis": "implied"})
    tab = TabAlone(edition, "scooter", at=FIRST_CLASS)
    assert (tab.mode, tab.draft and tab.draft.reason) == ("crop", "border")
    for key in ("v", "Enter"):
        tab.press(sent(key, [], BOX))
    assert tab.notice is None
    saved = reviews(edition, "scooter", without=("sha256", "seen"))[GOLDFISH][first]
    assert saved == {"verdict": "crop", "reason": "border", "crop": list(BOX), "object_fully_visible": True}


def test_a_box_that_may_not_be_needed_waits(edition: Path, images: dict[int, list[str]]) -> None:
    """With crops last, the clean ones of the five go before."""
    change_review(edition, crops="last")
    write(edition, "scooter", images[FIRST_CLASS][0], UNKNOWN)
    for reviewer in ("ada", "scooter"):
        assert TabAlone(edition, reviewer, at=FIRST_CLASS).mode == "class"


def test_one_box_after_another(edition: Path, images: dict[int, list[str]]) -> None:
    wanted, seen = images[FIRST_CLASS][:2], []
    for image_id in wanted:
        write(edition, "scooter", image_id, UNKNOWN)
    tab = TabAlone(edition, at=FIRST_CLASS)
    while tab.mode == "crop":
        seen.append(tab.cursor.focus)
        draw(tab)
    assert sorted(filter(None, seen)) == sorted(wanted)


def test_boxes_come_first(edition: Path, images: dict[int, list[str]]) -> None:
    """The page opens on the classes with a box to draw, from the second to the fourth; then on all unsettled ones."""
    first, second, _, fourth = list(images)[:4]
    for class_index in (second, fourth):
        write(edition, "scooter", images[class_index][0], UNKNOWN, imagenet().keys[class_index])
    tab = TabAlone(edition)
    for place in (
        ("boxes to draw", second, "crop"),
        ("boxes to draw", fourth, "crop"),
        ("to review", fourth, "class"),
    ):
        assert (tab.order.filter, tab.cursor.class_index, tab.mode) == place
        if tab.mode == "crop":
            draw(tab)
    tab.type("f", "b")
    assert tab.said == "No class with this filter: boxes to draw."
    tab.type("n")
    tab.start()
    assert tab.cursor.class_index == first


def test_the_basis_is_shown_and_what_does_not_count_is_asked_again(edition: Path, images: dict[int, list[str]]) -> None:
    first = images[FIRST_CLASS][0]
    write(edition, "scooter", first, {"verdict": "clean", "basis": "default"})

    def shown(reviewer: str) -> str:
        view = TabAlone(edition, reviewer, at=FIRST_CLASS).type()["view"]
        return view.split(f'data-card="{first}"')[-1].split("</figure>")[0]

    assert "kept without objection" in shown("scooter")
    assert "asked again" not in shown("scooter")
    change_review(edition, accept=["explicit", "implied"])
    assert "asked again" in shown("scooter")
    assert "not reviewed yet" in shown("ada")
    write(edition, "ada", first, {"verdict": "clean"})
    assert "scooter: clean, kept without objection" in shown("ada")


@pytest.mark.long
def test_in_the_browser(start: Serve, visit: Open, edition: Path, images: dict[int, list[str]]) -> None:
    """A box, drawn by mouse on the page that opens by itself; then the next image of the class."""
    second = images[FIRST_CLASS][1]
    write(edition, "scooter", second, UNKNOWN)
    at = visit(start(), f"class={GOLDFISH}")
    at.page.set_viewport_size({"width": 1280, "height": 720})
    assert (at.mode, at.focus) == ("crop", second)
    assert WHY in at.page.inner_text("#overlay")
    at.draw([20, 20, 150, 140])
    at.adjust([20, 20, 150, 140])
    at.press(REASONS["artificial_background"], "v", "Enter")
    assert at.mode == "class"
    assert reviews(edition)[GOLDFISH][second] == {
        "verdict": "crop", "reason": "artificial_background", "crop": [20, 20, 150, 140], "object_fully_visible": True,
        "seen": "single",
    }  # fmt: skip
