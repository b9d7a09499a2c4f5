"""What is pressed answers what had been on the screen, unchanged: double clicks, and keys as something changes."""

from pathlib import Path

import pytest

from tests.browser_tab import PATIENCE
from tests.review.texts import GOLDFISH

from .conftest import Open, Serve
from .reviewing import LOOK_SECONDS, Reviewing, reviews
from .test_typing_ahead import wait_for


def click_twice(at: Reviewing, button: str, gap: int) -> None:
    """Click on a button of the footer, wait for the answer, and click at the same place after a time in ms."""
    box = at.page.locator(f"footer button[data-key={button}]").bounding_box()
    assert box is not None
    before = at.of_view("pressed")
    for time_before in (0, gap):
        at.page.clock.run_for(time_before)
        at.page.mouse.click(box["x"] + 8, box["y"] + 8)
        at.answered(before)
    at.look()
    at.press("ArrowRight")  # answered after all that was sent
    assert int(at.of_view("pressed")) == int(before) + 2


@pytest.mark.long
def test_a_double_click_is_one_step(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    at.stop_clock()
    at.look()
    for count, gap in enumerate((0, 60, 120, 250), start=1):
        click_twice(at, "c", gap)
        assert len(reviews(edition)[GOLDFISH]) == count
    order = [at.wnid]
    for gap in (60, 250):
        click_twice(at, "s", gap)
        order.append(at.wnid)
    at.press("p")
    assert (at.wnid, len(set(order))) == (order[1], 3)
    card = at.page.locator("[data-card]").nth(1)
    card.dblclick()  # opens the image, as before
    at.page.wait_for_selector("[data-mode=zoom]", timeout=PATIENCE)


@pytest.mark.long
def test_a_class_or_a_question_that_has_only_just_come_is_not_answered(
    edition: Path, start: Serve, visit: Open
) -> None:
    at = visit(start())
    at.stop_clock()
    at.look()
    at.press("n")
    for key in "ccc":
        at.page.keyboard.press(key)
    wait_for(at, 4)
    assert at.notice.startswith("Not saved. 3 keys were pressed before the images were shown, or within half a second")
    at.look()
    before = int(at.of_view("pressed"))
    at.page.click("footer button[data-key=r]")
    wait_for(at, before + 1)
    at.page.clock.run_for(350)  # no double click
    at.page.click("footer button[data-key=f]")
    wait_for(at, before + 2)
    assert (at.mode, reviews(edition)) == ("reason", {})
    at.look()
    at.page.click("footer button[data-key=f]")
    wait_for(at, before + 3)
    assert [next(iter(each.values()))["reason"] for each in reviews(edition).values()] == ["filter"]


@pytest.mark.exhaustive
def test_the_reason_that_had_been_on_a_card_is_saved(edition: Path, start: Serve, visit: Open) -> None:
    """Though the rejection of another card has changed it a moment before the key or click."""
    at = visit(start())
    shown = at.shown
    at.page.wait_for_function(
        "[...document.querySelectorAll('[data-likeliest]')].every(each => each.dataset.likeliest)", timeout=PATIENCE
    )
    at.stop_clock()
    at.look_for_long(LOOK_SECONDS)
    reasons = [at.page.get_attribute(f"[data-card='{each}']", "data-likeliest") for each in shown]
    at.press("Shift+KeyF")
    changed = [
        place for place, each in enumerate(shown) if place
        and at.page.get_attribute(f"[data-card='{each}']", "data-likeliest") == "filter" != reasons[place]
    ]  # fmt: skip
    second, third = changed[:2]
    at.look_for_long(0.06)
    before = int(at.of_view("pressed"))
    at.page.keyboard.press(f"Shift+Digit{second + 1}")
    at.page.click(f"[data-card='{shown[third]}']", modifiers=["Shift"])
    wait_for(at, before + 2)
    saved = [reviews(edition)[GOLDFISH][shown[place]]["reason"] for place in (0, second, third)]
    assert saved == ["filter", reasons[second], reasons[third]]
