"""Keys pressed faster than they are answered: each counts, and means what the page then shows."""

from pathlib import Path

import pytest

from tests.browser_tab import PATIENCE, Server

from .conftest import Open, Serve
from .reviewing import Reviewing, reviews

GOLDFISH, LADYBUG, CUCUMBER = "n01443537", "n02165456", "n07718472"

SLOW = """
const { set } = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
Object.defineProperty(WebSocket.prototype, "onmessage", { set(handle) {
  const arrived = [];
  set.call(this, (event) => {
    arrived.push(event);
    setTimeout(() => handle(arrived.shift()), 100);
  });
} });
"""
"""What the server sends arrives in its order, 100 ms late."""


def wait_for(at: Reviewing, pressed: int) -> None:
    at.page.wait_for_function(
        "pressed => Number(document.querySelector('#view')?.dataset.pressed) >= pressed", arg=pressed, timeout=PATIENCE
    )


@pytest.mark.long
def test_each_n_goes_one_class_on(start: Serve, visit: Open) -> None:
    at = visit(start(), script=SLOW)
    order = [at.wnid]
    for _ in range(3):
        at.press("n")
        order.append(at.wnid)
    at.press("p", "p", "p")
    assert at.wnid == order[0]
    for _ in range(3):
        at.page.keyboard.press("n")
    wait_for(at, 9)
    assert at.wnid == order[3]


@pytest.mark.long
def test_a_word_typed_at_once_is_searched(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start(), script=SLOW)
    at.page.keyboard.type("/cucumber")
    at.page.wait_for_selector(".q-dialog input")
    at.page.wait_for_function("document.querySelector('.q-dialog input').value === 'cucumber'")
    at.press("Escape")
    at.page.wait_for_selector("[data-mode=class]")
    at.page.keyboard.type("/ladybug")
    at.page.keyboard.press("Enter")
    at.page.keyboard.press("?")
    at.page.wait_for_selector("#overlay.help", timeout=PATIENCE)
    assert (at.wnid, reviews(edition)) == (LADYBUG, {})


@pytest.mark.long
def test_a_note_typed_at_once_is_kept(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start(), script=SLOW)
    at.page.keyboard.type("ea stamp, not cut")
    at.page.keyboard.press("Enter")
    at.page.keyboard.press("u")
    at.page.wait_for_selector("#view figure.unsure", timeout=PATIENCE)
    assert list(reviews(edition)[GOLDFISH].values()) == [{"verdict": "unsure", "note": "a stamp, not cut"}]


@pytest.mark.long
def test_verdicts_typed_at_once_hold_for_what_was_shown(edition: Path, start: Serve, visit: Open) -> None:
    """Each of three keys gives one verdict; a verdict on a class that was not shown yet is refused, and reports it."""
    at = visit(start(), script=SLOW)
    first, second, third = at.shown[:3]
    for _ in range(3):
        at.page.keyboard.press("c")
    wait_for(at, 3)
    assert set(reviews(edition)[GOLDFISH]) == {first, second, third}
    before = int(at.of_view("pressed"))
    at.page.keyboard.press("n")
    at.page.keyboard.press("c")
    wait_for(at, before + 2)
    assert at.wnid == LADYBUG
    assert "was pressed before the image was shown" in at.notice
    assert set(reviews(edition)) == {GOLDFISH}


@pytest.mark.long
def test_keys_before_the_image_is_there(start: Serve, visit: Open) -> None:
    """No error in the page's scripts (which fails the test), and each key counts once the image is there."""
    at = visit(start())
    at.page.route("**/image/full/**", lambda _: None)  # held until unroute
    for key in ("Enter", "+", "1", "Shift+ArrowLeft", "2"):
        at.page.keyboard.press(key)
    at.page.wait_for_selector("[data-look=zoom]:not([data-ready])", state="attached")
    at.page.unroute("**/image/full/**")
    at.page.wait_for_selector("[data-look=zoom][data-ready]", state="attached")
    at.page.wait_for_function("document.querySelector('#zoom-ratio').textContent === '200 %'")


@pytest.mark.long
def test_a_key_that_the_connection_lost_is_sent_again_and_counts_once(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    at.page.evaluate(
        "() => { const emit = window.emitEvent; let lost = false;"
        " window.emitEvent = (...sent) => { if (lost) { emit(...sent); emit(...sent); } lost = true; } }"
    )
    first = at.focus
    at.look()
    at.page.keyboard.press("u")
    at.look(4.0)
    at.page.wait_for_selector(f"[data-card='{first}'].unsure", timeout=PATIENCE)
    at.press("ArrowRight")  # answered after all that was sent
    assert reviews(edition) == {GOLDFISH: {first: {"verdict": "unsure"}}}


HELD_BACK = """
const { set } = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
let waiting = null;
window.holdBack = () => { waiting = []; };
window.letArrive = () => { const all = waiting; waiting = null; all.forEach((arrive) => arrive()); };
Object.defineProperty(WebSocket.prototype, "onmessage", { set(handle) {
  set.call(this, (event) => (waiting === null ? handle(event) : waiting.push(() => handle(event))));
} });
"""
"""What the server sends between `holdBack()` and `letArrive()` arrives at the latter."""


@pytest.mark.long
def test_a_key_held_down_stops_when_it_is_let_go(start: Serve, visit: Open) -> None:
    """It steps at the speed of the answers; nothing is left over. No answer comes meanwhile, however slow the
    machine."""
    at = visit(start(), script=HELD_BACK)
    at.page.evaluate("holdBack()")
    for _ in range(10):
        at.page.keyboard.down("n")
    at.page.keyboard.up("n")
    at.page.evaluate("letArrive()")
    at.page.keyboard.press("?")
    at.page.wait_for_selector("#overlay.help", timeout=PATIENCE)
    assert at.of_view("pressed") == "2"


@pytest.mark.long
def test_a_key_held_down_steps_once_an_answer(start: Serve, visit: Open) -> None:
    at = visit(start())
    at.ready()
    for step in range(1, 4):
        at.page.keyboard.down("n")
        wait_for(at, step)
    at.page.keyboard.up("n")
    at.page.keyboard.press("?")
    at.page.wait_for_selector("#overlay.help", timeout=PATIENCE)
    assert at.of_view("pressed") == "4"


@pytest.mark.long
def test_an_address_names_a_class(unchanged: Server, visit: Open) -> None:
    """An unknown one leads to the first class with a question."""
    assert visit(unchanged, f"class={LADYBUG}").wnid == LADYBUG
    assert visit(unchanged, "class=n00000000").wnid == GOLDFISH


@pytest.mark.long
def test_back_goes_to_the_class_before(start: Serve, visit: Open) -> None:
    at = visit(start())
    at.press("n")
    assert at.wnid == LADYBUG
    at.press("x")
    at.page.go_back()
    at.page.wait_for_selector("[data-mode=class]")
    assert at.wnid == LADYBUG
    at.page.go_back()
    at.page.wait_for_selector(f"[data-class-key={GOLDFISH}]")
    assert at.page.url.endswith(f"?class={GOLDFISH}")
    at.page.go_forward()
    at.page.wait_for_selector(f"[data-class-key={LADYBUG}]")


@pytest.mark.long
def test_a_click_on_a_card_counts_once(start: Serve, visit: Open) -> None:
    """A key after it is answered next, and one with Enter opens the image that was clicked."""
    at = visit(start())
    at.press("m")
    card = next(each for each in at.shown if each != at.focus)
    before = int(at.of_view("pressed"))
    at.page.click(f"[data-card='{card}']")
    at.page.keyboard.press("Enter")
    wait_for(at, before + 2)
    assert (at.mode, at.focus, int(at.of_view("pressed"))) == ("zoom", card, before + 2)


CLOSES_LATE = """
const start = window.setTimeout;
window.setTimeout = (what, delay, ...more) => start(what, Number(delay) === 0 ? 1000 : delay, ...more);
"""
"""What a dialog waits for until it is gone takes a second."""


@pytest.mark.long
def test_a_dialog_that_is_about_to_go_takes_nothing_typed_in_the_next(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start(), script=CLOSES_LATE)
    first = at.shown[0]
    at.page.keyboard.press("/")
    at.page.keyboard.press("Escape")
    at.page.keyboard.type("ea stamp")
    at.page.keyboard.press("Enter")
    wait_for(at, 4)
    at.page.keyboard.press("/")
    at.page.keyboard.type("cucumber")
    at.page.keyboard.press("Escape")
    at.page.keyboard.type("/ladybug")
    at.page.keyboard.press("Enter")
    wait_for(at, 8)
    assert at.wnid == LADYBUG
    at.go(GOLDFISH)
    at.press("u")
    assert reviews(edition) == {GOLDFISH: {first: {"verdict": "unsure", "note": "a stamp"}}}


@pytest.mark.long
def test_a_dialog_that_has_gone_closes_no_later_one(edition: Path, start: Serve, visit: Open) -> None:
    """A browser reports that a dialog has gone when the next key is on its way."""
    at = visit(start(), script=SLOW)
    first = at.shown[0]
    for key in ("/", "Escape", "/", *"ladybug", "Enter"):
        at.page.keyboard.press(key)
    wait_for(at, 4)
    assert at.wnid == LADYBUG
    for key in ("/", *GOLDFISH, "Enter", "e", *"a stamp", "Enter", "e", "Enter"):
        at.page.keyboard.press(key)
    wait_for(at, 10)
    assert (at.wnid, at.mode) == (GOLDFISH, "class")
    at.press("u")
    assert reviews(edition) == {GOLDFISH: {first: {"verdict": "unsure", "note": "a stamp"}}}


@pytest.mark.long
def test_the_boards_verdict_outlives_the_note_before(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start("board"), f"class={GOLDFISH}", script=SLOW)
    first = at.shown[0]
    for key in ("e", "Escape", "u", *"cut", "Enter"):
        at.page.keyboard.press(key)
    wait_for(at, 4)
    assert reviews(edition, "board") == {GOLDFISH: {first: {"verdict": "unsure", "note": "cut"}}}


@pytest.mark.long
def test_a_click_next_to_the_search_leaves_it(start: Serve, visit: Open) -> None:
    at = visit(start())
    at.press("/")
    at.page.wait_for_selector(".q-dialog input")
    at.page.mouse.click(600, 700)
    at.page.wait_for_selector("[data-mode=class]", timeout=PATIENCE)
    at.page.wait_for_selector(".q-dialog__inner", state="detached", timeout=PATIENCE)
    at.press("n")
    assert at.wnid == LADYBUG


def hit(at: Reviewing, wnid: str) -> str:
    """Search for a class, and wait for it among those that are found."""
    at.page.locator(".q-dialog input").fill(wnid)
    at.page.wait_for_selector(f".hits .q-item--active:has-text('{wnid}')", timeout=PATIENCE)
    return f".hits .q-item:has-text('{wnid}')"


@pytest.mark.long
def test_a_click_on_a_found_class_counts_like_enter(edition: Path, start: Serve, visit: Open) -> None:
    """It needs an image that was seen, too."""
    at = visit(start())
    at.stop_clock()
    at.press("n")
    first = at.shown[0]
    at.page.keyboard.press("i")
    found = hit(at, GOLDFISH)
    before = at.of_view("pressed")
    at.page.eval_on_selector(found, "found => found.click()")  # the dialog slides in by the clock
    at.answered(before)
    assert (at.mode, reviews(edition)) == ("search", {})
    assert "was pressed before the image was shown" in at.notice
    at.look()
    before = at.of_view("pressed")
    at.page.eval_on_selector(found, "found => found.click()")  # the dialog slides in by the clock
    at.answered(before)
    named = {"verdict": "reject", "reason": "wrong_class", "correct_class": GOLDFISH}
    assert (at.mode, reviews(edition)) == ("class", {LADYBUG: {first: named}})


@pytest.mark.long
def test_a_second_click_on_a_found_class_goes_nowhere(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    first = at.shown[0]
    at.look()
    at.press("i")
    found = hit(at, LADYBUG)
    at.page.eval_on_selector(found, "found => { found.click(); found.click(); }")
    at.page.keyboard.press("?")
    at.page.wait_for_selector("#overlay.help", timeout=PATIENCE)
    assert at.wnid == GOLDFISH
    assert [*reviews(edition)[GOLDFISH]] == [first]
