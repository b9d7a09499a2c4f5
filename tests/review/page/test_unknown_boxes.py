"""Crops whose box is asked for, and verdicts with another basis than this very image, at the page."""

from pathlib import Path

import pytest

from cleanset.edition.paths import Edition
from cleanset.review.page.library import Library, open_library
from cleanset.review.page.server import open_session
from cleanset.review.page.tab import Tab
from cleanset.review.page.view import render
from cleanset.review.verdicts import Review
from cleanset.vocabulary import class_keys
from tests.review.texts import save

from .conftest import Open, Serve
from .reviewing import REASONS, reviews

BOX = (4, 4, 60, 60)
WHY = "To be cropped, but nobody has drawn the box"


@pytest.fixture
def library(edition: Path) -> Library:
    """With crops in their rank, so that a box among the first three is needed whatever the others are."""
    params = (edition / "params.yaml").read_text()
    (edition / "params.yaml").write_text(params.replace("review:\n", "review:\n  crops: in_rank\n"))
    return open_library(Edition(edition))


def first_images(library: Library, class_index: int) -> list[str]:
    """A class's images, the likeliest first."""
    return list(library.candidates(class_index))


def unknown(library: Library, image_id: str, basis: str = "explicit") -> Review:
    """A crop without a box."""
    fields = {"verdict": "crop", "reason": "border", "crop": "unknown", "object_fully_visible": True, "basis": basis}
    return Review.model_validate(fields | {"sha256": library.images[image_id].sha256})


def tab_of(edition: Path, library: Library, reviewer: str, class_index: int) -> Tab:
    tab = Tab(open_session(Edition(edition), library, reviewer))
    tab.start(class_index)
    return tab


def draw(tab: Tab, reason: str = "watermark") -> None:
    """Give the reason, state that the object stays visible, and save the box."""
    for key in (REASONS[reason], "v", "Enter"):
        tab.press(key, [], BOX)


def test_the_page_opens_the_crop_of_an_image_whose_box_is_asked_for(edition: Path, library: Library) -> None:
    """Even though another image of the class ranks higher."""
    class_index = next(iter(library.classes))
    wnid, (_, second, *_) = class_keys()[class_index], first_images(library, class_index)
    save(edition / "reviews", "scooter", wnid, second, unknown(library, second))
    tab = tab_of(edition, library, "ada", class_index)
    assert (tab.mode, tab.cursor.focus) == ("crop", second)
    assert WHY in render(tab)["overlay"]
    tab.press("Escape", [])
    parts = render(tab)
    assert (tab.mode, tab.cursor.focus) == ("class", second)
    assert "to be cropped: draw the box" in parts["view"]
    assert "scooter" not in parts["view"].split("</figure>")[0]  # whose verdict it is, is no matter
    tab.press("x", [second])
    draw(tab)
    assert reviews(edition)[wnid][second]["crop"] == list(BOX)
    assert tab.mode == "class"
    assert tab.cursor.focus != second
    assert not tab.cursor.is_box_asked()


def test_the_reviewer_without_a_box_is_asked_for_it(edition: Path, library: Library) -> None:
    """The reason stands already; what is saved is bound to the bytes that were seen, and explicit."""
    class_index = next(iter(library.classes))
    wnid, (first, *_) = class_keys()[class_index], first_images(library, class_index)
    save(edition / "reviews", "scooter", wnid, first, unknown(library, first, "implied"))
    tab = tab_of(edition, library, "scooter", class_index)
    assert tab.mode == "crop"
    assert tab.draft is not None
    assert tab.draft.reason == "border"
    for key in ("v", "Enter"):
        tab.press(key, [], BOX)
    assert tab.notice is None
    assert reviews(edition, "scooter")[wnid][first] == {
        "verdict": "crop", "reason": "border", "crop": list(BOX), "object_fully_visible": True,
    }  # fmt: skip


def test_a_box_that_may_not_be_needed_waits(edition: Path, library: Library) -> None:
    """With crops last, the clean ones of the five go before."""
    params = (edition / "params.yaml").read_text()
    (edition / "params.yaml").write_text(params.replace("crops: in_rank", "crops: last"))
    class_index = next(iter(library.classes))
    first = first_images(library, class_index)[0]
    save(edition / "reviews", "scooter", class_keys()[class_index], first, unknown(library, first))
    for reviewer in ("ada", "scooter"):
        assert tab_of(edition, open_library(Edition(edition)), reviewer, class_index).mode == "class"


def test_one_box_after_another(edition: Path, library: Library) -> None:
    class_index = next(iter(library.classes))
    wnid, (first, second, *_) = class_keys()[class_index], first_images(library, class_index)
    for image_id in (first, second):
        save(edition / "reviews", "scooter", wnid, image_id, unknown(library, image_id))
    tab = tab_of(edition, library, "ada", class_index)
    seen = []
    while tab.mode == "crop":
        seen.append(tab.cursor.focus)
        draw(tab)
    assert sorted(filter(None, seen)) == sorted([first, second])


def test_boxes_come_first(edition: Path, library: Library) -> None:
    """The page opens on the classes with a box to draw, from the second to the fourth; then on all unsettled ones."""
    first, second, _, fourth = list(library.classes)[:4]
    for class_index in (second, fourth):
        image_id = first_images(library, class_index)[0]
        save(edition / "reviews", "scooter", class_keys()[class_index], image_id, unknown(library, image_id))
    tab = Tab(open_session(Edition(edition), library, "ada"))
    tab.start()
    assert (tab.order.filter, tab.cursor.class_index, tab.mode) == ("boxes", second, "crop")
    draw(tab)
    assert (tab.order.filter, tab.cursor.class_index, tab.mode) == ("boxes", fourth, "crop")
    draw(tab)
    assert (tab.order.filter, tab.cursor.class_index, tab.mode) == ("unsettled", fourth, "class")
    tab.press("f", [])
    tab.press("b", [])
    assert tab.notice is not None
    assert tab.notice.text == "No class here: boxes."
    tab.press("n", [])
    tab.start()
    assert tab.cursor.class_index == first


def test_the_basis_is_shown_and_what_does_not_count_is_asked_again(edition: Path, library: Library) -> None:
    class_index = next(iter(library.classes))
    wnid, (first, *_) = class_keys()[class_index], first_images(library, class_index)
    kept = Review(verdict="clean", basis="default", sha256=library.images[first].sha256)
    save(edition / "reviews", "scooter", wnid, first, kept)
    card = f'data-card="{first}"'

    def shown(reviewer: str) -> str:
        tab = tab_of(edition, open_library(Edition(edition)), reviewer, class_index)
        return render(tab)["view"].split(card)[-1].split("</figure>")[0]

    assert "default" in shown("scooter")
    assert "asked again" not in shown("scooter")
    params = (edition / "params.yaml").read_text()
    (edition / "params.yaml").write_text(params.replace("[explicit, implied, default]", "[explicit, implied]"))
    assert "asked again" in shown("scooter")
    assert "not reviewed yet" in shown("ada")
    save(edition / "reviews", "ada", wnid, first, kept.model_copy(update={"basis": None}))
    assert "scooter: clean, default" in shown("ada")


def test_in_the_browser(start: Serve, visit: Open, edition: Path, library: Library) -> None:
    """A box, drawn by mouse on the page that opens by itself; then the next image of the class."""
    class_index = next(iter(library.classes))
    wnid, (_, second, *_) = class_keys()[class_index], first_images(library, class_index)
    save(edition / "reviews", "scooter", wnid, second, unknown(library, second))
    at = visit(start(), f"?class={wnid}")
    at.page.set_viewport_size({"width": 1280, "height": 720})
    assert (at.mode, at.focus) == ("crop", second)
    assert WHY in at.page.inner_text("#overlay")
    at.draw([20, 20, 150, 140])
    at.adjust([20, 20, 150, 140])
    at.press(REASONS["artificial_background"], "v", "Enter")
    assert at.mode == "class"
    assert reviews(edition)[wnid][second] == {
        "verdict": "crop", "reason": "artificial_background", "crop": [20, 20, 150, 140], "object_fully_visible": True,
        "seen": "single",
    }  # fmt: skip
