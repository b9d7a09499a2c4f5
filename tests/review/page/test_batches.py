"""A class of many candidates, all wanted, is shown in batches, which follow the focus."""

from pathlib import Path
from unittest.mock import patch

import pytest
from bs4 import BeautifulSoup

from cleanset.review.page import cursor
from tests import own_edition

from .reviewing import TabAlone

EACH = 10


@pytest.fixture
def tab(tmp_path: Path) -> TabAlone:
    edition = own_edition.make(tmp_path, keys=("cat", "dog"), each=EACH, options=["--images-per-class", "all"])
    return TabAlone(edition.folder)


def cards(html: str) -> list[str]:
    return [str(card["data-card"]) for card in BeautifulSoup(html, "html.parser").select("figure")]


def batch(html: str) -> str:
    found = BeautifulSoup(html, "html.parser").select_one(".batch")
    return " ".join(found.get_text(" ").split()) if found else ""


def test_few_are_shown_together(tab: TabAlone) -> None:
    view = tab.type()["view"]
    assert len(cards(view)) == EACH
    assert batch(view) == ""
    assert f"{EACH} to review" in view


@patch.multiple(cursor, MAX_CARDS=8, BATCH=4)
def test_batches_follow_one_another(tab: TabAlone) -> None:
    every = list(tab.library.candidates(0))
    view = tab.type()["view"]
    assert (cards(view), batch(view)) == (every[:4], "Images 1 to 4 of 10")
    ahead = BeautifulSoup(view, "html.parser").select("#ahead")[0]["data-images"]
    assert str(ahead).split()[:4] == [tab.library.images[image_id].url("card") for image_id in every[4:8]]
    view = tab.type("c", "c", "a")["view"]
    assert (cards(view), batch(view)) == (every[4:8], "Images 5 to 8 of 10")
    assert not BeautifulSoup(view, "html.parser").select("span.new")
    assert tab.cursor.focus == every[4]
    # back to the one before, and to the end from the first one
    assert batch(tab.type("ArrowLeft")["view"]) == "Images 1 to 4 of 10"
    assert tab.cursor.focus == every[3]
    assert batch(tab.type("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft")["view"]) == "Images 9 to 10 of 10"
    assert tab.cursor.focus == every[9]
    # first what is left of the batch, then of the class
    assert batch(tab.type("r", "l")["view"]) == "Images 9 to 10 of 10"
    assert tab.cursor.focus == every[8]
    assert batch(tab.type("c")["view"]) == "Images 5 to 8 of 10"
    tab.type("a")
    assert "cat is done." in tab.said
    assert tab.wnid == "dog"


@patch.multiple(cursor, MAX_CARDS=8, BATCH=4)
def test_undo_and_every_candidate(tab: TabAlone) -> None:
    every = list(tab.library.candidates(0))
    tab.type("a")
    assert batch(tab.type("z")["view"]) == "Images 1 to 4 of 10"
    assert cards(tab.type("m")["view"]) == every[:4]


def test_a_class_without_a_clean_image_is_short(tab: TabAlone) -> None:
    for _ in range(EACH):
        tab.type("r", "l")
    assert "cat is short: has no image, and no candidates are left." in tab.said
    tab.type("a")
    html = tab.type()["view"]
    said = " ".join(BeautifulSoup(html, "html.parser").get_text(" ").split())
    assert "1 class is short, with no images and no candidates left: cat has no image" in said
