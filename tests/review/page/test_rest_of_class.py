"""The parts behind the keys for all the rest and for an exception, without a browser."""

from collections import Counter
from pathlib import Path

import pytest

from cleanset.edition.paths import Edition
from cleanset.files import ChangedMeanwhileError
from cleanset.review.page.drafts import likeliest_reason
from cleanset.review.page.keys import READ_SECONDS, Notice, Screen, UnreadNotices
from cleanset.review.page.library import Library
from cleanset.review.page.server import open_session
from cleanset.review.page.tab import Tab
from cleanset.review.page.view import cards, render
from cleanset.review.save import VerdictChange, save_all
from cleanset.review.verdicts import Review
from tests.review.texts import save

from .reviewing import reviews
from .test_parts import GOLDFISH, library, tab_of

__all__ = ["library"]

GRID = {"verdict": "clean", "seen": "grid"}
LONG_ENOUGH = 0.4


def take_all(tab: Tab, seconds: dict[str, float] | None = None) -> str:
    """Press the key for all the rest; what the page says."""
    shown = tab.cursor.images()
    looked = dict.fromkeys(shown, LONG_ENOUGH) if seconds is None else seconds
    tab.press("a", shown, screen=Screen(class_key=tab.wnid, seconds=looked, answered=tab.pressed))
    assert tab.notice is not None
    render(tab)
    return tab.notice.text


def test_only_what_was_looked_at_for_long_enough_is_taken(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    first, second, *_ = tab.cursor.images()
    said = take_all(tab, {first: LONG_ENOUGH, second: LONG_ENOUGH - 0.01, "ILSVRC2012_val_00000001": 9.0})
    assert said.startswith("1 image is clean. Left: cards 2, 3, ")
    assert reviews(edition) == {GOLDFISH: {first: GRID}}
    assert take_all(tab, {}).startswith("Left: cards 2, 3, ")
    assert tab.notice is not None
    assert tab.notice.is_error
    tab.press("Enter", [first, second])
    assert take_all(tab) == "a takes the images that are side by side: Esc goes back to them."
    assert reviews(edition) == {GOLDFISH: {first: GRID}}
    assert tab.cursor.focus == second


def test_cards_that_came_after_the_key_are_named_as_such(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    *before, last = tab.cursor.images()
    tab.press(
        "a", before, screen=Screen(class_key=tab.wnid, seconds=dict.fromkeys(before, LONG_ENOUGH), answered=tab.pressed)
    )
    assert tab.notice is not None
    assert tab.notice.text == (
        f"{len(before)} images are clean. Left: card {len(before) + 1}, shown only after the key was pressed: look, "
        "and press a again."
    )
    assert last not in reviews(edition)[GOLDFISH]


@pytest.mark.parametrize("verdict", ["reject", "unsure", "clean"])
def test_what_somebody_rejected_is_left(edition: Path, library: Library, verdict: str) -> None:
    """With two reviewers needed, the other's verdict does not settle the image."""
    params = (edition / "params.yaml").read_text()
    params = params.replace("policy: single", "policy: majority").replace("min_reviewers: 1", "min_reviewers: 2")
    (edition / "params.yaml").write_text(params)
    tab = tab_of(edition, library)
    first = tab.cursor.images()[0]
    fields = {"verdict": verdict, "sha256": library.images[first].sha256}
    fields |= {"reason": "blur"} if verdict == "reject" else {}
    save(edition / "reviews", "ben", GOLDFISH, first, Review.model_validate(fields))
    from cleanset.review.page.library import open_library

    tab = tab_of(edition, open_library(Edition(edition)))
    assert first in tab.cursor.queued()
    said = take_all(tab)
    assert (first in reviews(edition)[GOLDFISH]) == (verdict == "clean")
    assert ("Left: card 1, to be decided on by itself." in said) == (verdict != "clean")


def test_one_write_one_step_and_notes(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    first, second = tab.cursor.images()[:2]
    tab.press("e", [first])
    tab.leave_note("a reflection, not a stamp")
    tab.press("Enter", [first])
    render(tab)  # opened
    tab.press("Escape", [first])
    assert "goldfish is settled." in take_all(tab)
    saved = reviews(edition)[GOLDFISH]
    assert saved[first] == {"verdict": "clean", "seen": "single", "note": "a reflection, not a stamp"}
    assert saved[second] == GRID
    assert len(tab.history.steps) == 1
    tab.press("z", [])
    assert reviews(edition) == {}
    render(tab)
    assert tab.session.notes == {(tab.cursor.class_index, first): "a reflection, not a stamp"}
    tab.press("c", [first])
    assert reviews(edition)[GOLDFISH][first]["note"] == "a reflection, not a stamp"


def test_nothing_of_it_is_written_over_a_verdict_that_was_not_shown(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    second = tab.cursor.images()[1]
    sha256 = library.images[second].sha256
    save(edition / "reviews", "ada", GOLDFISH, second, Review(verdict="unsure", sha256=sha256))
    assert "changed meanwhile" in take_all(tab)
    assert reviews(edition) == {GOLDFISH: {second: {"verdict": "unsure"}}}


def test_it_goes_on_from_a_class_that_was_settled_elsewhere(edition: Path, library: Library) -> None:
    tab, other = tab_of(edition, library), tab_of(edition, library)
    while other.wnid == GOLDFISH:
        take_all(other)
    before = reviews(edition)
    tab.session.refresh_class(tab.cursor.class_index)
    assert "goldfish is settled." in take_all(tab)
    assert tab.wnid == other.wnid != GOLDFISH
    assert reviews(edition) == before


def test_a_key_of_the_class_before_decides_nothing_here(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    before = tab.cursor.images()
    tab.press("n", before)
    for key in ("c", "a", "guess", "reason"):
        shown = [*before, *tab.cursor.images()]
        screen = Screen(class_key=GOLDFISH, seconds=dict.fromkeys(shown, 9.0), answered=0, reason="w")
        tab.press(key, shown, card=tab.cursor.images()[0], screen=screen)
    assert tab.notice is not None
    assert "4 keys were pressed before the images were shown" in tab.notice.text
    assert reviews(edition) == {}
    tab.unread.counted_at -= READ_SECONDS
    tab.press("ArrowRight", [], screen=Screen(class_key=tab.wnid, answered=tab.pressed))
    assert tab.notice is None


@pytest.mark.parametrize("key", ["u", "guess", "reason"])
def test_an_image_that_a_key_came_too_early_for_is_left(edition: Path, library: Library, key: str) -> None:
    tab = tab_of(edition, library)
    while tab.wnid == GOLDFISH:
        take_all(tab)
    wnid, (first, *others) = tab.wnid, tab.cursor.images()

    def press(key: str, seconds: float) -> None:
        screen = Screen(
            class_key=wnid,
            seconds=dict.fromkeys([first, *others], 9.0),
            answered=tab.pressed,
            reason="b",
            shown=seconds,
        )
        tab.press(key, [first, *others], card=first, screen=screen)

    press(key, 0.3)
    press("a", 0.9)
    assert reviews(edition)[wnid] == dict.fromkeys(others, GRID)
    assert tab.notice is not None
    assert "Left: card 1, a key for it came too early: decide on it, or press a again." in tab.notice.text
    assert tab.cursor.focus == first
    press("a", 1.2)
    assert reviews(edition)[wnid] == dict.fromkeys([first, *others], GRID)


def test_the_reason_after_a_lost_rejection_rejects_no_other_image(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    while tab.wnid == GOLDFISH:
        take_all(tab)
    before, shown = reviews(edition), tab.cursor.images()
    for key, seconds in (("guess", 0.4), ("reason", 0.6)):
        tab.press(
            key,
            shown,
            card=shown[1],
            screen=Screen(class_key=tab.wnid, seconds={}, answered=tab.pressed, reason="b", shown=seconds),
        )
    assert reviews(edition) == before
    assert tab.notice is not None
    assert "2 keys were pressed before the images were shown" in tab.notice.text
    tab.press(
        "reason", shown, screen=Screen(class_key=tab.wnid, seconds={}, answered=tab.pressed, reason="b", shown=0.8)
    )
    assert reviews(edition)[tab.wnid] == {shown[0]: {"verdict": "reject", "reason": "border"}}


@pytest.mark.parametrize("key", ["a", "c", "u", "guess", "reason"])
def test_a_key_pressed_twice_settles_one_class(edition: Path, library: Library, key: str) -> None:
    tab = tab_of(edition, library)
    while tab.wnid == GOLDFISH:
        take_all(tab)
    before, shown = reviews(edition), tab.cursor.images()

    def press(seconds: float) -> None:
        screen = Screen(
            class_key=tab.wnid,
            seconds=dict.fromkeys(shown, 9.0),
            answered=tab.pressed,
            reason="border" if key == "guess" else "b",
            shown=seconds,
        )
        tab.press(key, shown, card=shown[0], screen=screen)

    press(0.49)
    assert reviews(edition) == before
    assert tab.notice is not None
    assert "within half a second of it: look, and press it again" in tab.notice.text
    press(0.5)
    assert len(reviews(edition)) == 2


def test_one_verdict_at_once_after_the_reviewer_went_to_the_class(edition: Path, library: Library) -> None:
    """It was meant for nothing else; all the rest waits even there."""
    tab = tab_of(edition, library)
    tab.press("n", [])
    render(tab)
    for key in ("a", "c"):
        screen = Screen(
            class_key=tab.wnid, seconds=dict.fromkeys(tab.cursor.images(), 9.0), answered=tab.pressed, shown=0.1
        )
        tab.press(key, tab.cursor.images(), screen=screen)
        assert len(reviews(edition)) == (key == "c")


def test_the_board_decides_one_by_one(edition: Path, library: Library) -> None:
    tab = Tab(open_session(Edition(edition), library, "board"))
    tab.start(next(iter(library.classes)))
    render(tab)
    assert "decide on each image by itself" in take_all(tab)
    assert reviews(edition, "board") == {}


def test_the_reason_of_the_last_exception_can_be_changed_after_its_class(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    class_index, last = tab.cursor.class_index, ""
    while tab.cursor.class_index == class_index:
        shown = tab.cursor.images()
        last = tab.cursor.asked()[0]
        tab.press("guess", shown, card=last, screen=Screen(class_key=tab.wnid, reason="border"))
        render(tab)
    assert tab.notice is not None
    assert "Rejected last: border; Shift and a reason's key changes it." in tab.notice.text
    tab.press("reason", tab.cursor.images(), screen=Screen(class_key=tab.wnid, reason="k"))
    assert reviews(edition)[GOLDFISH][last] == {"verdict": "reject", "reason": "duplicate"}
    assert tab.cursor.own() is None


def test_the_likeliest_reason() -> None:
    none: Counter[str] = Counter()
    overall = Counter({"noise": 3, "text": 2, "watermark": 1})
    assert likeliest_reason((), none, none) == "watermark"
    assert likeliest_reason((), none, Counter({"noise": 3})) == "noise"
    assert likeliest_reason((), Counter({"blur": 1}), overall) == "blur"
    assert likeliest_reason(["text"], none, none) == "watermark"  # a line near an edge
    assert likeliest_reason(["text"], Counter({"blur": 5}), overall) == "text"
    assert likeliest_reason(["border", "text"], none, Counter({"border": 1})) == "border"
    assert likeliest_reason(["few_pixels"], none, Counter({"too_small": 1, "blur": 2})) == "blur"
    assert likeliest_reason(["few_pixels", "border"], Counter({"too_small": 9}), none) == "border"


def test_no_reason_is_offered_before_the_hints_are_known(edition: Path, library: Library) -> None:
    """Shift and a digit that come earlier take the most frequent reason, and say so."""
    tab = Tab(open_session(Edition(edition), library, "ada"))
    tab.start()
    first = tab.cursor.images()[0]
    assert {card.likeliest for card in cards(tab)} == {None}
    assert "<kbd>⇧1</kbd> …" in render(tab)["view"]
    tab.press("guess", tab.cursor.images(), card=first, screen=Screen(class_key=tab.wnid))
    assert tab.notice is not None
    own = tab.cursor.status.votes[tab.cursor.class_index, first]["ada"].review
    words = str(own.reason).replace("_", " ")
    assert tab.notice.text == f"Rejected last: {words}; Shift and a reason's key changes it."
    hints, shown = tab.session.hints, tab.cursor.images()
    hints._failed.update(shown)  # none of them can be measured
    hints._lines.update(dict.fromkeys(shown, ()))
    assert None not in {card.likeliest for card in cards(tab)}
    assert "<kbd>⇧2</kbd> …" not in render(tab)["view"]


def test_notices_stay_until_they_could_be_read() -> None:
    unread = UnreadNotices()
    unread.begin(0)
    assert unread.add(Notice("one"), 1) == Notice("one")
    unread.begin(0)  # typed before the answer to 1 was shown
    assert unread.count_not_shown(2) == Notice(
        "one Not saved. The key was pressed before the image was shown, or within half a second of it: look, and "
        "press it again",
        True,
    )
    unread.begin(1)
    assert "Not saved. 2 keys" in (unread.count_not_shown(3) or Notice("")).text
    # who types on has seen the notice for some milliseconds only
    unread.begin(3)
    assert unread.add(Notice("two"), 4) == Notice(
        "two Not saved. 2 keys were pressed before the images were shown, or within half a second of it: look, and "
        "press them again",
        True,
    )
    unread.begin(4)
    assert "Not saved. 3 keys" in (unread.count_not_shown(5) or Notice("")).text
    unread.counted_at -= READ_SECONDS
    unread.begin(5)
    assert unread.add(None, 6) is None


def test_all_or_none_is_saved(tmp_path: Path) -> None:
    first, second = (f"ILSVRC2012_val_0000000{number}" for number in (1, 2))
    clean = Review(verdict="clean", seen="grid", sha256="0" * 64)
    save_all(tmp_path, "ada", GOLDFISH, {second: VerdictChange(clean, None), first: VerdictChange(clean, None)})
    path = tmp_path / "ada" / f"{GOLDFISH}.yaml"
    before = path.read_text()
    entry = f"    verdict: clean\n    seen: grid\n    sha256: '{'0' * 64}'\n"
    assert before == f"{GOLDFISH}:\n  {first}:\n{entry}  {second}:\n{entry}"
    other = clean.model_copy(update={"verdict": "unsure", "seen": None})
    with pytest.raises(ChangedMeanwhileError, match="found verdict clean, seen grid, expected no verdict"):
        save_all(tmp_path, "ada", GOLDFISH, {first: VerdictChange(other, clean), second: VerdictChange(other, None)})
    assert path.read_text() == before
    # from another place, seen in another way: no conflict, and the file stays
    save(tmp_path, "ada", GOLDFISH, first, clean.model_copy(update={"seen": None}), expected=None)
    assert path.read_text() == before
