"""One key for all the rest of a class, one for an exception, and keys typed ahead, in a browser."""

from pathlib import Path

import pytest

from cleanset.review.page.notices import READ_SECONDS
from tests.browser_tab import PATIENCE

from .conftest import Open, Serve
from .reviewing import reviews
from .test_places import WHOLE
from .test_reviewing import with_one_model
from .test_typing_ahead import wait_for

GOLDFISH, LADYBUG = "n01443537", "n02165456"
GRID = {"verdict": "clean", "seen": "grid"}


@pytest.mark.long
def test_a_second_press_at_once_takes_no_other_class(edition: Path, start: Serve, visit: Open) -> None:
    """The next class, which nobody has looked at, is loaded ahead and shown long before the second press."""
    with_one_model(edition)
    at = visit(start())
    at.stop_clock()
    at.look(2.0)
    at.press("a")
    assert at.wnid == LADYBUG
    at.look(0.06)
    at.page.keyboard.press("a")
    wait_for(at, 2)
    assert "within half a second of it" in at.notice
    at.look(2.5)
    at.press("ArrowRight")  # answered after all that was sent
    assert (at.wnid, set(reviews(edition))) == (LADYBUG, {GOLDFISH})
    at.press("a")
    assert set(reviews(edition)) == {GOLDFISH, LADYBUG}


@pytest.mark.long
def test_the_key_waits_shows_it_and_is_one_step(edition: Path, start: Serve, visit: Open) -> None:
    with_one_model(edition)
    at = visit(start())
    at.stop_clock()
    at.page.reload()  # the time begins again, and continues by `look` alone
    at.ready()
    asked = at.shown
    at.look(0.6)
    at.page.keyboard.press("a")
    at.page.wait_for_selector("#wait")
    assert "All clean in" in at.page.inner_text("#wait")
    assert reviews(edition) == {}
    at.page.keyboard.press("Escape")
    at.page.wait_for_selector("#wait", state="detached")
    at.look(1.5)
    at.press("ArrowRight")  # answered after all that was sent
    assert (at.wnid, reviews(edition)) == (GOLDFISH, {})
    at.look(1.5)
    at.press("a")
    assert at.notice == "3 images are clean. goldfish is done."
    assert reviews(edition) == {GOLDFISH: dict.fromkeys(sorted(asked), GRID)}
    at.press("z")
    assert (at.wnid, at.notice, reviews(edition)) == (GOLDFISH, "Undone: clean, 3 images.", {})


@pytest.mark.long
def test_what_is_not_whole_on_the_screen_is_left(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    at.resize(900, 500)
    at.page.reload()
    at.ready()
    whole = at.page.evaluate(WHOLE)
    assert (at.shown[: len(whole)], len(whole) < 8) == (whole, True)
    at.press("a")
    assert "not whole on the screen, or smaller than 160 × 120 pixels" in at.notice
    assert set(reviews(edition)[GOLDFISH]) == set(whole)
    at.resize(330, 900)  # no image is large enough
    at.press("a")
    assert set(reviews(edition)[GOLDFISH]) == set(whole)


PLACES = "[...document.querySelectorAll('#cards .photo')].map(each => JSON.stringify(each.getBoundingClientRect()))"


@pytest.mark.long
def test_an_exception_is_one_press_and_its_reason_another(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    first, second, third = at.shown[:3]
    places = at.page.evaluate(PLACES)
    at.page.wait_for_function(
        "[...document.querySelectorAll('[data-likeliest]')].every(each => each.dataset.likeliest)", timeout=PATIENCE
    )
    assert at.page.evaluate(PLACES) == places  # hints that arrive move no image
    guessed = at.page.get_attribute(f"[data-card='{third}']", "data-likeliest")
    at.press("Shift+Digit3")
    assert at.caption(third) == f"reject: {guessed}".replace("_", " ")
    assert at.focus != third
    at.press("Shift+KeyG")
    assert reviews(edition) == {GOLDFISH: {third: {"verdict": "reject", "reason": "wrong_class"}}}
    at.page.click(f"[data-card='{second}']", modifiers=["Shift"])
    at.page.wait_for_selector(f"[data-card='{second}'].reject", timeout=PATIENCE)
    assert at.focus != second
    at.press("z", "z", "z")
    assert reviews(edition) == {}
    while at.focus != first:
        at.press("ArrowLeft")
    at.press("Shift+KeyL")  # at once, without a guess
    assert reviews(edition) == {GOLDFISH: {first: {"verdict": "reject", "reason": "blur"}}}


@pytest.mark.long
def test_an_exception_goes_before_the_key_that_waits(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    at.page.reload()
    at.ready()
    second = at.shown[1]
    at.look(0.6)
    at.page.keyboard.press("a")
    at.page.keyboard.press("Shift+Digit2")
    at.page.wait_for_selector("#wait")
    at.look_for_long(5.0)
    at.page.wait_for_selector("#wait", state="detached", timeout=PATIENCE)
    wait_for(at, 2)
    saved = reviews(edition)[GOLDFISH]
    assert saved.pop(second)["verdict"] == "reject"
    assert list(saved.values()) == [GRID] * 7


@pytest.mark.long
def test_a_lost_connection_leaves_no_image_out(edition: Path, start: Serve, visit: Open) -> None:
    """The line that reports it covers the upper row for a while; the key waits until it is gone."""
    with_one_model(edition)
    at = visit(start())
    at.stop_clock()
    at.page.reload()
    at.ready()
    asked = at.shown
    at.look(0.6)
    at.page.keyboard.press("a")
    at.page.route("**/web/seen.js", lambda route: route.abort())
    at.page.evaluate("dispatchEvent(new Event('offline'))")
    at.look(5.0)
    assert at.page.locator("#lost").count() == 1
    assert at.page.locator("#wait").count() == 1
    at.page.unroute_all()
    at.page.evaluate("dispatchEvent(new Event('online'))")
    at.page.wait_for_selector("#lost", state="detached", timeout=PATIENCE)
    at.look(5.0)
    at.page.wait_for_selector("#wait", state="detached", timeout=PATIENCE)
    wait_for(at, 1)
    assert reviews(edition) == {GOLDFISH: dict.fromkeys(sorted(asked), GRID)}


@pytest.mark.long
def test_sixty_keys_typed_ahead_count_or_are_reported(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    for _ in range(60):
        at.page.keyboard.press("c")
    wait_for(at, 60)
    count = sum(map(len, reviews(edition).values()))
    assert count < 60
    assert f"{60 - count} keys were pressed before the images were shown" in at.notice
    at.page.wait_for_timeout(1_000 * READ_SECONDS)
    at.press("ArrowRight")
    assert at.notice == ""


@pytest.mark.long
def test_keys_lost_with_the_connection_are_reported(start: Serve, visit: Open) -> None:
    server = start(alone=True)
    at = visit(server)
    server.kill()
    for _ in range(3):
        at.page.keyboard.press("c")
    at.page.evaluate("window.isLost = true")
    start(alone=True)
    at.page.wait_for_function("!window.isLost", timeout=PATIENCE)
    at.page.wait_for_selector(".notice.error", timeout=PATIENCE)
    assert at.notice == "Connection lost; 3 keys not saved. Check for missing verdicts."


@pytest.mark.long
def test_the_magnifier_shows_the_pixels_under_the_mouse_while_q_is_held(
    edition: Path, start: Serve, visit: Open
) -> None:
    at = visit(start())
    place = at.page.locator("[data-card] img").first.bounding_box()
    assert place is not None
    at.page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    at.page.keyboard.down("q")
    at.page.wait_for_selector("#magnifier img")
    at.page.mouse.move(place["x"] + place["width"] / 2 + 1, place["y"] + place["height"] / 2)
    at.page.wait_for_function(
        "document.querySelector('#magnifier .ratio').textContent.endsWith(' %')", timeout=PATIENCE
    )
    natural, wide = at.page.eval_on_selector("#magnifier img", "i => [i.naturalWidth, i.getBoundingClientRect().width]")
    assert wide >= natural
    at.page.keyboard.up("q")
    at.page.wait_for_selector("#magnifier", state="detached")
    assert (at.of_view("pressed"), reviews(edition)) == ("0", {})
