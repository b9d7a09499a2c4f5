"""The box that is proposed for a crop: from measuring to the review file."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cleanset.review.hints.background import NO_TEXT
from cleanset.review.hints.text import TextLine, can_read_text
from cleanset.review.page.verdicts_of_tab import BOX_SEEN
from tests.browser_tab import PATIENCE
from tests.review.texts import sent

from .conftest import Open, Serve
from .reviewing import TabAlone, change_review, reviews, wait_until, write

STAMPED = ("n02165456", "ILSVRC2012_val_00000084")
"""A ladybug with “© J. Painter 2012” at the bottom."""

At = Callable[..., TabAlone]


def wait(tab: TabAlone) -> None:
    """Until the image in focus is measured."""
    wait_until(lambda: not tab.session.hints.is_measuring(tab.cursor.focus or ""))


@pytest.fixture
def cropping(edition: Path) -> At:
    """A tab in which the first image, once it is measured, is cropped; in it a line of text is read, or none."""

    def opened(text: str = "stock.com") -> TabAlone:
        tab = TabAlone(edition, measures=True)
        tab.open(tab.cursor.class_index, tab.cursor.images()[0])
        tab.type()
        wait(tab)
        image = tab.library.images[tab.cursor.images()[0]]
        line = TextLine(text, 0.9, (10, image.height - 22, 90, image.height - 2), 0.0)
        tab.session.hints._lines[image.image_id] = (line,) if text else ()
        if tab.mode == "crop":
            tab.type("Escape")
        tab.press(sent("x", [image.image_id]))
        return tab

    return opened


def proposed_box(tab: TabAlone) -> tuple[int, int, int, int]:
    assert tab.draft is not None
    assert tab.draft.proposal is not None
    return tab.draft.proposal.box


def test_a_proposal_is_taken_with_three_presses(edition: Path, cropping: At) -> None:
    tab = cropping()
    focus = tab.cursor.focus or ""
    box, image = proposed_box(tab), tab.library.images[focus]
    assert box == (0, 0, image.width, image.height - 27)
    panel = tab.type()["panel"]
    assert f'data-proposal="0,0,{image.width},{image.height - 27}"' in panel
    assert "without “stock.com”" in panel
    for key in ("v", "Enter"):
        tab.press(sent(key, [focus, BOX_SEEN], box))
    saved = {"verdict": "crop", "reason": "watermark", "crop": list(box), "object_fully_visible": True}
    assert list(reviews(edition).values()) == [{focus: saved | {"seen": "single"}}]


def test_a_proposal_is_not_taken_unseen(edition: Path, cropping: At) -> None:
    """Keys typed ahead, before the box was on the screen; an own box needs no proposal."""
    tab = cropping()
    box, own, focus = proposed_box(tab), (0, 0, 100, 100), tab.cursor.focus or ""
    tab.press(sent("v", [focus], box))
    assert "the proposed box was not shown yet when v was pressed: look, and press it again" in tab.said
    tab.press(sent("Enter", [focus, BOX_SEEN], box))
    assert tab.said == "Not saved yet: confirm with v that the object is fully visible."
    tab.type("Enter", "v", "Enter", box=own)
    assert [each["crop"] for entries in reviews(edition).values() for each in entries.values()] == [list(own)]


@pytest.mark.long
def test_an_earlier_box_and_reason_come_first(edition: Path, tab: TabAlone, cropping: At) -> None:
    crop = {"verdict": "crop", "reason": "filter", "crop": (1, 2, 90, 80), "object_fully_visible": True}
    write(edition, "ada", tab.cursor.images()[0], crop)
    draft = cropping().draft
    assert draft is not None
    assert (draft.box, draft.reason, draft.proposal) == ((1, 2, 90, 80), "filter", None)


@pytest.mark.long
@pytest.mark.parametrize(("known", "expected"), [("watermark", "watermark"), ("border", "border"), ("other", "text")])
def test_a_crop_without_a_box_keeps_its_reason(
    edition: Path, tab: TabAlone, cropping: At, known: str, expected: str
) -> None:
    """Somebody else's; `other` says less than the line that was read."""
    change_review(edition, crops="in_rank")
    fields = {"verdict": "crop", "reason": known, "crop": "unknown", "object_fully_visible": True}
    write(edition, "scooter", tab.cursor.images()[0], fields)
    tab = cropping("a fine day")
    assert proposed_box(tab)
    assert tab.draft is not None
    assert tab.draft.reason == expected


@pytest.mark.long
def test_a_proposal_that_comes_late(edition: Path) -> None:
    """The page says that it looks, and draws the box when it is there; nothing is looked for twice."""
    tab = TabAlone(edition, measures=True)
    focus = tab.cursor.focus or ""
    image = tab.library.images[focus]
    line = TextLine("stock.com", 0.9, (10, image.height - 22, 90, image.height - 2), 0.0)
    tab.session.hints._lines[focus] = (line,)
    tab.press(sent("x", [focus]))
    assert tab.is_proposal_awaited
    assert "Looking for text and margins" in tab.type()["panel"]
    wait(tab)
    tab.propose_box()
    assert not tab.is_proposal_awaited
    assert 'data-proposal="0,0,' in tab.type()["panel"]
    tab.press(sent("Escape", []))
    assert not tab.is_proposal_awaited


@pytest.mark.long
def test_without_text_and_margins_nothing_is_proposed(cropping: At) -> None:
    tab = cropping("")
    assert tab.draft is not None
    assert (tab.draft.proposal, tab.is_proposal_awaited) == (None, False)
    assert 'data-proposal=""' in tab.type()["panel"]


@pytest.mark.exhaustive
@pytest.mark.skipif(
    not can_read_text() and not os.environ.get("CLEANSET_NO_SKIP"), reason="the extra text is not installed"
)
def test_in_the_browser(
    start: Serve, visit: Open, edition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stamped image: `x` shows the box, `v` states, `Enter` takes it; `p` draws it again. Lines are kept on disk."""
    monkeypatch.delenv(NO_TEXT)
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    at = visit(start(alone=True))
    at.open(*STAMPED)
    at.press("x")
    at.page.wait_for_selector("#panel[data-proposal]:not([data-proposal=''])", timeout=PATIENCE)
    at.page.wait_for_function("document.querySelector('#crop-size').dataset.box !== ''", timeout=PATIENCE)
    proposed = at.box()
    assert proposed == [int(edge) for edge in (at.page.get_attribute("#panel", "data-proposal") or "").split(",")]
    without = "#panel .proposal [data-without]"
    assert at.page.inner_text(without).startswith("without “")
    at.page.keyboard.press("Shift+ArrowUp")
    assert at.box() != proposed
    assert not at.page.is_visible(without)
    at.press("t")  # the panel is drawn again
    assert not at.page.is_visible(without)
    at.page.keyboard.press("p")
    assert at.box() == proposed
    assert at.page.is_visible(without)
    at.look()  # at the box, which `v` states something of
    at.press("w", "v", "Enter")
    (entry,) = reviews(edition)[STAMPED[0]].values()
    assert (entry["crop"], entry["reason"]) == (proposed, "watermark")
    assert list((tmp_path / "cache" / "hints").glob("*/*"))
