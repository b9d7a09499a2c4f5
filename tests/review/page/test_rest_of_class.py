"""The parts behind the keys for all the rest and for an exception, without a browser."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cleanset.classes import imagenet
from cleanset.plumbing.file_locks import ChangedMeanwhileError
from cleanset.review.page.likeliest import likeliest_reason
from cleanset.review.page.notices import READ_SECONDS, Notice, UnreadNotices
from cleanset.review.page.view import cards
from cleanset.review.save import VerdictChange, save_all
from cleanset.review.verdicts import Clean, Review, Unsure
from tests.review.texts import GOLDFISH, save, sent

from .reviewing import TabAlone, change_review, reviews, write

GRID = {"verdict": "clean", "seen": "grid"}
LONG_ENOUGH = 0.4


def take_all(tab: TabAlone, seconds: dict[str, float] | None = None, shown: list[str] | None = None) -> str:
    """Press the key for all the rest; what the page says. By default all cards are shown, for long enough."""
    shown = tab.cursor.images() if shown is None else shown
    looked = dict.fromkeys(shown, LONG_ENOUGH) if seconds is None else seconds
    tab.press(sent("a", shown, subject=tab.wnid, seconds=looked, answered=tab.pressed))
    said = tab.said
    tab.type()
    return said


@pytest.fixture
def second(tab: TabAlone) -> TabAlone:
    """A tab that has settled the first class, and has come to the second."""
    while tab.wnid == GOLDFISH:
        take_all(tab)
    return tab


def test_only_what_was_looked_at_for_long_enough_is_taken(edition: Path, tab: TabAlone) -> None:
    first, second, *_ = tab.cursor.images()
    said = take_all(tab, {first: LONG_ENOUGH, second: LONG_ENOUGH - 0.01, "ILSVRC2012_val_00000001": 9.0})
    assert said.startswith("1 image is clean. Left: cards 2, 3, ")
    assert reviews(edition) == {GOLDFISH: {first: GRID}}
    assert take_all(tab, {}).startswith("Left: cards 2, 3, ")
    assert tab.failed
    tab.press(sent("Enter", [first, second]))
    assert take_all(tab) == "a works on the images side by side: press Esc to go back to them."
    assert reviews(edition) == {GOLDFISH: {first: GRID}}
    assert tab.cursor.focus == second


def test_cards_that_came_after_the_key_are_named_as_such(edition: Path, tab: TabAlone) -> None:
    *before, last = tab.cursor.images()
    assert take_all(tab, shown=before) == (
        f"{len(before)} images are clean. Left: card {len(before) + 1}, shown only after the key was pressed: look, "
        "then press a again."
    )
    assert last not in reviews(edition)[GOLDFISH]


@pytest.mark.parametrize(
    "entry", [{"verdict": "reject", "reason": "blur"}, {"verdict": "unsure"}, {"verdict": "clean"}]
)
def test_what_somebody_rejected_is_left(edition: Path, entry: dict[str, str]) -> None:
    """With two reviewers needed, the other's verdict does not settle the image."""
    change_review(edition, policy="majority", min_reviewers=2)
    first = TabAlone(edition).cursor.images()[0]
    write(edition, "ben", first, entry)
    tab = TabAlone(edition)
    assert first in tab.cursor.queued()
    said, is_clean = take_all(tab), entry["verdict"] == "clean"
    assert (first in reviews(edition)[GOLDFISH]) == is_clean
    assert ("Left: card 1, to be decided on separately." in said) is not is_clean


def test_one_write_one_step_and_notes(edition: Path, tab: TabAlone) -> None:
    first, second = tab.cursor.images()[:2]
    note = "a reflection, not a stamp"
    tab.type("e")
    tab.leave_note(note)
    tab.type("Enter", "Escape")  # opened
    assert "goldfish is done." in take_all(tab)
    saved = reviews(edition)[GOLDFISH]
    assert saved[first] == {"verdict": "clean", "seen": "single", "note": note}
    assert saved[second] == GRID
    assert len(tab.history.steps) == 1
    tab.type("z")
    assert reviews(edition) == {}
    assert tab.session.state.notes == {(tab.cursor.class_index, first): note}
    tab.press(sent("c", [first]))
    assert reviews(edition)[GOLDFISH][first]["note"] == note


def test_nothing_of_it_is_written_over_a_verdict_that_was_not_shown(edition: Path, tab: TabAlone) -> None:
    second = tab.cursor.images()[1]
    write(edition, "ada", second, {"verdict": "unsure"})
    assert "changed meanwhile" in take_all(tab)
    assert reviews(edition) == {GOLDFISH: {second: {"verdict": "unsure"}}}


def test_it_continues_from_a_class_that_was_settled_elsewhere(edition: Path, tab: TabAlone) -> None:
    other = TabAlone(edition)
    while other.wnid == GOLDFISH:
        take_all(other)
    before = reviews(edition)
    tab.session.refresh_class(tab.cursor.class_index)
    assert "goldfish is done." in take_all(tab)
    assert tab.wnid == other.wnid != GOLDFISH
    assert reviews(edition) == before


def test_a_key_of_the_class_before_decides_nothing_here(edition: Path, tab: TabAlone) -> None:
    before = tab.cursor.images()
    tab.press(sent("n", before))
    for key in ("c", "a", "guess", "reason"):
        shown = [*before, *tab.cursor.images()]
        screen: dict[str, Any] = {
            "subject": GOLDFISH,
            "seconds": dict.fromkeys(shown, 9.0),
            "answered": 0,
            "reason": "w",
        }
        tab.press(sent(key, shown, card=tab.cursor.images()[0], **screen))
    assert "4 keys were pressed before the images were shown" in tab.said
    assert reviews(edition) == {}
    tab.unread.counted_at -= READ_SECONDS
    tab.type("ArrowRight")
    assert tab.notice is None


@pytest.mark.parametrize("key", ["u", "guess", "reason"])
def test_an_image_that_a_key_came_too_early_for_is_left(edition: Path, second: TabAlone, key: str) -> None:
    wnid, (first, *others) = second.wnid, second.cursor.images()
    second.type(key, card=first, reason="b", shown=0.3)
    second.type("a", shown=0.9)
    assert reviews(edition)[wnid] == dict.fromkeys(others, GRID)
    assert "Left: card 1, where a key came too early: decide, or press a again." in second.said
    assert second.cursor.focus == first
    second.type("a", shown=1.2)
    assert reviews(edition)[wnid] == dict.fromkeys([first, *others], GRID)


def test_the_reason_after_a_lost_rejection_rejects_no_other_image(edition: Path, second: TabAlone) -> None:
    before, shown = reviews(edition), second.cursor.images()
    for key, seconds in (("guess", 0.4), ("reason", 0.6)):
        second.type(key, card=shown[1], reason="b", shown=seconds)
    assert reviews(edition) == before
    assert "2 keys were pressed before the images were shown" in second.said
    second.type("reason", reason="b", shown=0.8)
    assert reviews(edition)[second.wnid] == {shown[0]: {"verdict": "reject", "reason": "border"}}


@pytest.mark.parametrize("key", ["a", "c", "u", "guess", "reason"])
def test_a_key_pressed_twice_settles_one_class(edition: Path, second: TabAlone, key: str) -> None:
    before, reason = reviews(edition), "border" if key == "guess" else "b"
    second.type(key, card=second.cursor.images()[0], reason=reason, shown=0.49)
    assert reviews(edition) == before
    assert "within half a second of it: look, and press it again" in second.said
    second.type(key, card=second.cursor.images()[0], reason=reason, shown=0.5)
    assert len(reviews(edition)) == 2


def test_no_verdict_at_once_after_the_reviewer_went_to_the_class(edition: Path, tab: TabAlone) -> None:
    """Nobody has looked at it, though nothing else can have been meant."""
    tab.type("n")
    for key in ("a", "c", "c", "c"):
        tab.type(key, shown=0.1)
    assert reviews(edition) == {}
    tab.type("c", shown=0.5)
    assert len(reviews(edition)) == 1


def test_the_board_decides_one_by_one(edition: Path, tab: TabAlone) -> None:
    assert "decide on each image separately" in take_all(
        TabAlone(edition, "board", at=next(iter(tab.library.by_class)))
    )
    assert reviews(edition, "board") == {}


@pytest.mark.long
def test_the_reason_of_the_last_exception_can_be_changed_after_its_class(edition: Path, tab: TabAlone) -> None:
    class_index, last = tab.cursor.class_index, ""
    while tab.cursor.class_index == class_index:
        last = tab.cursor.asked()[0]
        tab.type("guess", card=last, reason="border")
    assert "Rejected for border. To change the reason, press Shift and its key." in tab.said
    tab.type("reason", reason="k")
    assert reviews(edition)[GOLDFISH][last] == {"verdict": "reject", "reason": "duplicate"}
    assert tab.cursor.own() is None


def test_the_likeliest_reason() -> None:
    none, overall = Counter[str](), Counter({"noise": 3, "text": 2, "watermark": 1})
    for hinted, in_class, given, reason in (
        ((), none, none, "watermark"),
        ((), none, Counter({"noise": 3}), "noise"),
        ((), Counter({"blur": 1}), overall, "blur"),
        (["text"], none, none, "watermark"),  # a line near an edge
        (["text"], Counter({"blur": 5}), overall, "text"),
        (["border", "text"], none, Counter({"border": 1}), "border"),
        (["few_pixels"], none, Counter({"too_small": 1, "blur": 2}), "blur"),
        (["few_pixels", "border"], Counter({"too_small": 9}), none, "border"),
    ):
        assert likeliest_reason(hinted, in_class, given) == reason


def test_no_reason_is_offered_before_the_hints_are_known(edition: Path) -> None:
    """Shift and a digit that come earlier take the most frequent reason, and report it."""
    tab = TabAlone(edition)
    hints, first = tab.session.hints, tab.cursor.images()[0]
    assert {card.likeliest for card in cards(tab)} == {None}
    assert "<kbd>⇧1</kbd> …" in tab.type()["view"]
    tab.type("guess", card=first)
    own = tab.cursor.status.votes[tab.cursor.class_index, first]["ada"].review
    words = str(own.reason).replace("_", " ")
    assert tab.said == f"Rejected for {words}. To change the reason, press Shift and its key."
    shown = tab.cursor.images()
    hints._failed.update(shown)  # none of them can be measured
    hints._lines.update(dict.fromkeys(shown, ()))
    assert None not in {card.likeliest for card in cards(tab)}
    assert "<kbd>⇧2</kbd> …" not in tab.type()["view"]


def test_notices_stay_until_they_could_be_read() -> None:
    unread = UnreadNotices()

    def not_saved(before: str, keys: str, images: str, them: str) -> Notice:
        return Notice(
            f"{before} Not saved. {keys} pressed before the {images} shown, or within half a second of it: look, and "
            f"press {them} again",
            True,
        )

    unread.begin(0)
    assert unread.add(Notice("one"), 1) == Notice("one")
    unread.begin(0)  # typed before the answer to 1 was shown
    assert unread.count_not_shown(2) == not_saved("one", "The key was", "image was", "it")
    unread.begin(1)
    assert "Not saved. 2 keys" in (unread.count_not_shown(3) or Notice("")).text
    # who types on has seen the notice for some milliseconds only
    unread.begin(3)
    assert unread.add(Notice("two"), 4) == not_saved("two", "2 keys were", "images were", "them")
    unread.begin(4)
    assert "Not saved. 3 keys" in (unread.count_not_shown(5) or Notice("")).text
    unread.counted_at -= READ_SECONDS
    unread.begin(5)
    assert unread.add(None, 6) is None


def test_all_or_none_is_saved(tmp_path: Path) -> None:
    first, second = (f"ILSVRC2012_val_0000000{number}" for number in (1, 2))
    clean = Review(verdict=Clean(), seen="grid", sha256="0" * 64)
    save_all(
        tmp_path,
        "ada",
        GOLDFISH,
        {second: VerdictChange(clean, None), first: VerdictChange(clean, None)},
        classes=imagenet(),
    )
    path = tmp_path / "ada" / f"{GOLDFISH}.yaml"
    before = path.read_text()
    entry = f"    verdict: clean\n    seen: grid\n    sha256: '{'0' * 64}'\n"
    assert before == f"{GOLDFISH}:\n  {first}:\n{entry}  {second}:\n{entry}"
    other = replace(clean, verdict=Unsure(), seen=None)
    with pytest.raises(ChangedMeanwhileError, match="found verdict clean, seen grid, expected no verdict"):
        save_all(
            tmp_path,
            "ada",
            GOLDFISH,
            {first: VerdictChange(other, clean), second: VerdictChange(other, None)},
            classes=imagenet(),
        )
    assert path.read_text() == before
    # from another place, seen in another way: no conflict, and the file stays
    save(tmp_path, "ada", GOLDFISH, first, replace(clean, seen=None), expected=None)
    assert path.read_text() == before
