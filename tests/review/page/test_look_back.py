"""One's own last verdicts, the filters on them, and the guidelines."""

from pathlib import Path

import pytest

from cleanset.review.file_format import parse_review
from cleanset.review.page.look_back import differs
from cleanset.review.page.pace import RecentVerdicts
from cleanset.review.verdicts import Review
from cleanset.selection.fill import CONFLICT, Decision

from .conftest import Open, Serve
from .reviewing import reviews

GOLDFISH = "n01443537"
BOX = (0, 0, 100, 200)
TILES = "() => [...document.querySelectorAll('[data-tile]')].map((tile) => tile.dataset.tile.split('/')[1])"
FILTERS = "() => [...document.querySelectorAll('[data-choose]')].map((each) => each.dataset.choose)"


def test_the_time_of_a_verdict_is_the_mean_of_its_visit() -> None:
    """Three at once after a long look took a second each, not none."""
    recent = RecentVerdicts()
    recent.open_class(1, 10.0)
    for image_id in "abc":
        recent.count_verdict((1, image_id), 13.0)
    recent.open_class(2, 20.0)
    recent.count_verdict((2, "d"), 20.5)
    recent.open_class(1, 30.0)
    recent.count_verdict((1, "a"), 32.0)
    seconds = {key: recent.seconds(key) for key in [(1, "a"), (1, "b"), (2, "d"), (2, "e")]}
    assert seconds == {(1, "a"): 2.0, (1, "b"): 1.0, (2, "d"): 0.5, (2, "e"): None}
    keys = [(0, "z"), (1, "a"), (1, "b"), (1, "c"), (2, "d")]
    assert recent.newest_first(keys) == [(1, "a"), (2, "d"), (1, "c"), (1, "b"), (0, "z")]
    recent.forget((2, "d"))
    assert recent.newest_first(keys) == [(1, "a"), (1, "c"), (1, "b"), (0, "z"), (2, "d")]


def review(verdict: str, **fields: object) -> Review:
    return parse_review({"verdict": verdict, "sha256": "0" * 64, **fields}, "here")


CROP = {"reason": "text", "crop": BOX, "object_fully_visible": True}


@pytest.mark.parametrize(
    ("own", "decision", "expected"),
    [
        (review("clean"), Decision("clean"), False),
        (review("clean"), Decision("reject", "text"), True),
        (review("clean"), CONFLICT, False),
        (review("reject", reason="blur"), Decision("reject", "text"), False),
        (review("unsure"), Decision("reject", "unsure"), False),
        (review("unsure"), Decision("reject", "text"), True),
        (review("crop", **CROP), Decision("crop", "text", (0, 0, 102, 200)), False),
        (review("crop", **CROP), Decision("crop", "text", (0, 0, 103, 200)), True),
    ],
)
def test_a_verdict_that_differs_from_the_consensus(own: Review, decision: Decision, expected: bool) -> None:
    """A reason may differ, and a box by less than the tolerance: 2 % of the shorter side."""
    assert differs(own, decision, 0.02) is expected


@pytest.mark.long
def test_looking_back(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    first, second, third = at.shown[:3]
    at.press("b")
    assert "You have not saved a verdict yet" in at.page.inner_text("#overlay")
    at.press("Escape", "c", "r", "t", "u", "b")
    assert at.page.evaluate(TILES) == [third, second, first]
    assert {"all", "reason: text", "verdict: clean", "model: standard"} <= set(at.page.evaluate(FILTERS))
    at.page.click("[data-choose='reason: text']")
    at.page.wait_for_function("document.querySelectorAll('[data-tile]').length === 1")
    assert at.page.evaluate(TILES) == [second]
    at.press("Enter")
    assert (at.wnid, at.focus, at.mode) == (GOLDFISH, second, "class")
    at.press("c", "b")
    assert at.page.evaluate(TILES) == [second, third, first]  # its filter has no verdict any more
    at.press("ArrowRight", "Enter")
    assert at.focus == third
    assert len(reviews(edition)[GOLDFISH]) == 3


@pytest.mark.long
def test_guidelines_with_own_and_drawn_examples(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    first, second = at.shown[:2]
    at.press("c", "r", "t", "h")
    at.page.wait_for_function(
        "[...document.querySelectorAll('#overlay img')].every((i) => !i.complete || i.naturalWidth)"
    )
    sources = at.page.eval_on_selector_all("#overlay .rule img", "all => all.map((each) => each.getAttribute('src'))")
    assert len(sources) == 30
    assert first in sources[2]  # text, clean
    assert second in sources[3]
    assert sources[:2] == ["static/examples/watermark_clean.webp", "static/examples/watermark_flawed.webp"]
    at.page.keyboard.press("End")
    at.page.wait_for_function("document.querySelector('#overlay').scrollTop > 500")
    at.press("Escape")
    assert at.mode == "class"
    (edition / "reviews" / "GUIDELINES.md").write_text("# Ours\n<script>x</script>\n## Blur\n*Only* the object.\n")
    at.press("h")
    assert at.page.locator("#overlay .rule").count() == 1
    assert "<script>x</script>" in at.page.inner_text("#overlay")
    (edition / "reviews" / "GUIDELINES.md").write_text(" ")
    at.press("Escape", "h")
    assert "GUIDELINES.md: empty" in at.notice
