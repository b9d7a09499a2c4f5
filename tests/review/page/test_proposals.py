"""The box that is proposed for a crop: from measuring to the review file."""

import time
from pathlib import Path

import pytest

from cleanset.edition.paths import Edition
from cleanset.review.hints.background import NO_TEXT
from cleanset.review.hints.text import TextLine, can_read_text
from cleanset.review.page.library import Library, open_library
from cleanset.review.page.server import open_session
from cleanset.review.page.tab import BOX_SEEN, Tab
from cleanset.review.page.view import render
from cleanset.review.verdicts import Review
from cleanset.vocabulary import class_keys
from tests.browser_tab import PATIENCE
from tests.review.texts import save

from .conftest import Open, Serve
from .reviewing import reviews

STAMPED = ("n02165456", "ILSVRC2012_val_00000084")
"""A ladybug with “© J. Painter 2012” at the bottom."""


@pytest.fixture
def library(edition: Path) -> Library:
    return open_library(Edition(edition))


def tab_at(edition: Path, library: Library, image_id: str, *lines: TextLine) -> Tab:
    """A tab with this image in focus, measured; these lines were read in it."""
    class_index = next(index for index in library.classes if image_id in library.candidates(index))
    tab = Tab(open_session(Edition(edition), library, "ada"))
    tab.open(class_index, image_id)
    render(tab)
    wait(tab, image_id)
    tab.session.hints._lines[image_id] = lines
    return tab


def wait(tab: Tab, image_id: str) -> None:
    deadline = time.monotonic() + 60
    while tab.session.hints.is_measuring(image_id):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stamp(library: Library, image_id: str) -> TextLine:
    """A line at the bottom of an image, 20 pixels high."""
    height = library.images[image_id].height
    return TextLine("stock.com", 0.9, (10, height - 22, 90, height - 2), 0.0)


def first_image(library: Library) -> str:
    return next(iter(library.candidates(next(iter(library.classes)))))


def test_a_proposal_is_taken_with_three_presses(edition: Path, library: Library) -> None:
    focus = first_image(library)
    tab = tab_at(edition, library, focus, stamp(library, focus))
    tab.press("x", [focus])
    assert tab.draft is not None
    assert tab.draft.proposal is not None
    box, image = tab.draft.proposal.box, library.images[focus]
    assert box == (0, 0, image.width, image.height - 27)
    panel = render(tab)["panel"]
    assert f'data-proposal="0,0,{image.width},{image.height - 27}"' in panel
    assert "without “stock.com”" in panel
    tab.press("v", [focus, BOX_SEEN], box)
    tab.press("Enter", [focus, BOX_SEEN], box)
    assert list(reviews(edition).values()) == [
        {
            focus: {
                "verdict": "crop",
                "reason": "watermark",
                "crop": list(box),
                "object_fully_visible": True,
                "seen": "single",
            }
        }
    ]


def test_a_proposal_is_not_taken_unseen(edition: Path, library: Library) -> None:
    """Keys typed ahead, before the box was on the screen; a box of one's own needs no proposal."""
    focus = first_image(library)
    tab = tab_at(edition, library, focus, stamp(library, focus))
    tab.press("x", [focus])
    assert tab.draft is not None
    assert tab.draft.proposal is not None
    box = tab.draft.proposal.box
    tab.press("v", [focus], box)
    assert tab.notice is not None
    assert "the proposed box was not shown yet when v was pressed: look, and press it again" in tab.notice.text
    tab.press("Enter", [focus, BOX_SEEN], box)
    assert tab.notice.text == "Not saved yet: state that the object stays fully visible, by v."
    tab.press("Enter", [focus], (0, 0, 100, 100))
    tab.press("v", [focus], (0, 0, 100, 100))
    tab.press("Enter", [focus], (0, 0, 100, 100))
    assert [each["crop"] for entries in reviews(edition).values() for each in entries.values()] == [[0, 0, 100, 100]]


def test_an_earlier_box_and_reason_come_first(edition: Path, library: Library) -> None:
    focus = first_image(library)
    wnid = class_keys()[next(iter(library.classes))]
    earlier = Review(
        verdict="crop", reason="filter", crop=(1, 2, 90, 80), object_fully_visible=True,
        sha256=library.images[focus].sha256,
    )  # fmt: skip
    save(edition / "reviews", "ada", wnid, focus, earlier)
    tab = tab_at(edition, library, focus, stamp(library, focus))
    tab.press("x", [focus])
    assert tab.draft is not None
    assert (tab.draft.box, tab.draft.reason, tab.draft.proposal) == ((1, 2, 90, 80), "filter", None)


@pytest.mark.parametrize(("known", "expected"), [("watermark", "watermark"), ("border", "border"), ("other", "text")])
def test_a_crop_without_a_box_keeps_its_reason(edition: Path, library: Library, known: str, expected: str) -> None:
    """Somebody else's; `other` says less than the line that was read."""
    params = (edition / "params.yaml").read_text()
    (edition / "params.yaml").write_text(params.replace("review:\n", "review:\n  crops: in_rank\n"))
    library = open_library(Edition(edition))
    focus = first_image(library)
    fields = {"verdict": "crop", "reason": known, "crop": "unknown", "object_fully_visible": True}
    unknown = Review.model_validate(fields | {"sha256": library.images[focus].sha256})
    save(edition / "reviews", "scooter", class_keys()[next(iter(library.classes))], focus, unknown)
    line = stamp(library, focus)
    tab = tab_at(edition, library, focus, TextLine("a fine day", line.score, line.box, 0.0))
    tab.press("Escape", [])
    tab.press("x", [focus])
    assert tab.draft is not None
    assert tab.draft.reason == expected
    assert tab.draft.proposal is not None


def test_a_proposal_that_comes_late(edition: Path, library: Library) -> None:
    """The page says that it looks, and draws the box when it is there; nothing is looked for twice."""
    focus = first_image(library)
    tab = Tab(open_session(Edition(edition), library, "ada"))
    tab.start()
    tab.session.hints._lines[focus] = (stamp(library, focus),)
    tab.press("x", [focus])
    assert tab.is_proposal_awaited
    assert "Looking for text and margins" in render(tab)["panel"]
    wait(tab, focus)
    tab.propose_box()
    assert not tab.is_proposal_awaited
    assert 'data-proposal="0,0,' in render(tab)["panel"]
    tab.press("Escape", [])
    assert not tab.is_proposal_awaited


def test_without_text_and_margins_nothing_is_proposed(edition: Path, library: Library) -> None:
    focus = first_image(library)
    tab = tab_at(edition, library, focus)
    tab.press("x", [focus])
    assert tab.draft is not None
    assert (tab.draft.proposal, tab.is_proposal_awaited) == (None, False)
    assert 'data-proposal=""' in render(tab)["panel"]


@pytest.mark.skipif(not can_read_text(), reason="the extra text is not installed")
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
    at.press("t")  # the panel is drawn anew
    assert not at.page.is_visible(without)
    at.page.keyboard.press("p")
    assert at.box() == proposed
    assert at.page.is_visible(without)
    at.press("w")
    at.press("v", "Enter")
    (entry,) = reviews(edition)[STAMPED[0]].values()
    assert (entry["crop"], entry["reason"]) == (proposed, "watermark")
    assert list((tmp_path / "cache" / "hints").glob("*/*.json"))
