"""Reviewing by keyboard and mouse, and what then is on disk."""

from pathlib import Path

import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.review.store import check_reviews, read_reviews
from cleanset.tables import INDEX, read_table

from .conftest import Open, Serve
from .reviewing import REASONS, TabAlone, reviews

GOLDFISH, LADYBUG, BALLOON = "n01443537", "n02165456", "n02782093"
BLUR, CLEAN = {"verdict": "reject", "reason": "blur"}, {"verdict": "clean"}


SLOW = """
const { set } = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
Object.defineProperty(WebSocket.prototype, "onmessage", { set(handle) {
  let free = 0;
  set.call(this, (event) => {
    free = Math.max(performance.now(), free + 300);
    setTimeout(() => handle(event), free - performance.now());
  });
} });
"""
"""What the server sends arrives in its order, but with 300 ms at least between two messages."""


def with_one_model(edition: Path) -> None:
    params = yaml.safe_load((edition / "params.yaml").read_text())
    params["models"] = {"standard": params["models"]["standard"]}
    (edition / "params.yaml").write_text(yaml.safe_dump(params))


@pytest.mark.long
def test_three_key_presses_settle_a_class(edition: Path, start: Serve, visit: Open) -> None:
    with_one_model(edition)
    at = visit(start())
    asked = at.shown
    assert (at.wnid, len(asked), at.focus) == (GOLDFISH, 3, asked[0])
    at.press("c", "c")
    assert (at.wnid, at.focus) == (GOLDFISH, asked[2])
    at.press("c")
    assert (at.wnid, at.focus) == (LADYBUG, at.shown[0])
    assert at.notice == "goldfish is done."
    assert reviews(edition) == {GOLDFISH: dict.fromkeys(sorted(asked), CLEAN)}


@pytest.mark.long
def test_a_class_of_three_models_by_keyboard_alone(edition: Path, start: Serve, visit: Open) -> None:
    """Every verdict and every reason; a further image is asked for where one is rejected."""
    at = visit(start())
    first, second, third, fourth = at.shown[:4]
    at.press("r")
    assert at.mode == "reason"
    at.press("Escape")
    assert (at.mode, at.focus, reviews(edition)) == ("class", first, {})
    at.press("r", "l")
    at.press("u")
    at.press("x")
    at.page.wait_for_selector("[data-look=crop][data-ready]", state="attached")
    at.page.keyboard.press("Control+ArrowRight")
    at.page.keyboard.press("Shift+ArrowUp")
    at.page.keyboard.press("Shift+ArrowUp")
    left, top, right, bottom = at.box()
    assert (left, top) == (1, 0)
    at.page.keyboard.press("Shift+ArrowLeft")
    at.page.keyboard.press("ArrowRight")
    assert at.box() == [2, 0, right, bottom]
    at.press("Enter")
    assert "choose a reason" in at.notice
    at.press("o", "Enter")
    assert at.notice == "Not saved yet: confirm with v that the object is fully visible."
    assert third not in reviews(edition)[GOLDFISH]
    at.press("v", "Enter")
    crop = {"verdict": "crop", "reason": "collage", "crop": [2, 0, right, bottom], "object_fully_visible": True}
    crop["seen"] = "single"
    assert reviews(edition) == {GOLDFISH: {first: BLUR, second: {"verdict": "unsure"}, third: crop}}
    assert [at.caption(each) for each in (first, second, third, fourth)] == [
        "reject: blur", "unsure", "crop: collage", "not reviewed yet",
    ]  # fmt: skip
    presses = 0
    while at.wnid == GOLDFISH:
        at.press("c")
        presses += 1
    assert len(reviews(edition)[GOLDFISH]) == 3 + presses
    votes = read_reviews(edition / "reviews", imagenet())
    check_reviews(votes, read_table(edition / "data" / "index.parquet", INDEX, imagenet()), imagenet())


@pytest.mark.long
def test_every_reason_has_its_key(edition: Path) -> None:
    tab = TabAlone(edition)
    tab.open(imagenet().indices[BALLOON])
    tab.type("m")
    ids = tab.cursor.images()[: len(REASONS)]
    for image_id, key in zip(ids, REASONS.values(), strict=True):
        tab.cursor.focus_card(image_id)
        tab.type("r", key)
    saved = reviews(edition)[BALLOON]
    assert [saved[image_id]["reason"] for image_id in ids] == list(REASONS)


def test_undo_of_any_step(edition: Path) -> None:
    tab = TabAlone(edition)
    first, second, third = tab.cursor.images()[:3]
    tab.type("c", "r", "t", "u", "ArrowLeft", "ArrowLeft", "ArrowLeft", "d")
    assert list(reviews(edition)[GOLDFISH]) == sorted([second, third])
    tab.type("z")
    assert (tab.cursor.focus, reviews(edition)[GOLDFISH][first]) == (first, CLEAN)
    tab.type("n")
    assert tab.wnid == LADYBUG
    tab.type("z")
    assert (tab.wnid, tab.cursor.focus, tab.cursor.own()) == (GOLDFISH, third, None)
    tab.type("Backspace", "z")
    assert (tab.said, reviews(edition)) == ("Undone: clean.", {})
    tab.type("z")
    assert tab.said.startswith("Nothing to undo")


@pytest.mark.long
def test_a_reload_shows_the_same_class_and_verdicts(start: Serve, visit: Open) -> None:
    at = visit(start())
    at.press("n", "c")
    first = at.shown[0]
    at.page.reload()
    at.ready()
    assert (at.wnid, at.caption(first)) == (LADYBUG, "clean")
    assert at.focus == at.shown[1]


@pytest.mark.long
def test_the_class_that_an_image_shows_is_searched(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    wnid, image_id = at.wnid, at.focus
    at.press("i")
    at.type_into_dialog("traffic", found="n06874185")
    at.page.wait_for_selector(".q-dialog__inner", state="detached")
    at.page.wait_for_selector(f"[data-card={image_id}] .verdict.reject:has-text('reject: wrong class, traffic light')")
    entry = reviews(edition)[wnid][image_id]
    assert (entry["verdict"], entry["reason"], entry["correct_class"]) == ("reject", "wrong_class", "n06874185")
    at.press("z")
    assert reviews(edition) == {}


@pytest.mark.long
def test_search_by_name_and_by_wnid(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    at.press("/")
    state = at.page.locator(".hits .q-item--active .q-item__section--side").inner_text()
    assert state.endswith(" to review")
    at.type_into_dialog("traffic", found="n06874185")
    at.page.wait_for_selector("[data-class-key=n06874185]")
    at.page.wait_for_selector(".q-dialog__inner", state="detached")
    at.press("/")
    field = at.page.locator(".q-dialog input")
    field.press_sequentially("ball", delay=30)  # no letter of it is a verdict
    at.page.wait_for_function("document.querySelectorAll('.hits .q-item').length === 2")
    at.page.wait_for_selector(".q-item--active:has-text('soccer ball')")  # a whole word goes first
    field.press("ArrowDown")
    at.page.wait_for_selector(".q-item--active:has-text('balloon')")
    field.press("Enter")
    at.page.wait_for_selector(f"[data-class-key={BALLOON}]")
    at.page.wait_for_selector(".q-dialog__inner", state="detached")
    at.press("/")
    at.page.keyboard.press("Escape")
    at.page.wait_for_selector("[data-mode=class]")
    assert (at.wnid, reviews(edition)) == (BALLOON, {})


def test_filters(edition: Path) -> None:
    with_one_model(edition)
    tab = TabAlone(edition)
    tab.type("f", "c")
    assert tab.said == "No class with this filter: conflicts."
    tab.type("f", "s")
    assert tab.said == "No class with this filter: short."
    tab.type("c", "c", "c", "n", "c")
    mine = tab.wnid
    assert mine not in (GOLDFISH, LADYBUG)
    for keys, wnid in (("fmn", GOLDFISH), ("n", mine), ("p", GOLDFISH), ("fu", LADYBUG)):
        tab.type(*keys)
        assert tab.wnid == wnid, keys


@pytest.mark.long
def test_skipped_classes_come_at_the_end(edition: Path) -> None:
    with_one_model(edition)
    tab = TabAlone(edition)
    seen: list[str] = []
    tab.type("s")
    while tab.mode == "class" and len(seen) < 12:
        seen.append(tab.wnid)
        assert tab.cursor.focus == tab.cursor.images()[0]
        while tab.wnid == seen[-1]:
            html = tab.type("c")
    assert (seen[0], seen[-1], len(set(seen)), tab.mode) == (LADYBUG, GOLDFISH, 12, "end")
    assert "There is nothing left for you to review." in html["view"]
    assert "12 of 12 classes are done, with 36 verdicts by ada." in html["view"]


def test_one_key_a_class(edition: Path) -> None:
    """Twelve presses for the twelve classes of the sample: every image that the queue asks for, all clean."""
    tab, classes = TabAlone(edition), []
    while not tab.ended:
        classes.append(tab.wnid)
        tab.type("a")
    assert len(classes) == len(set(classes)) == 12
    saved = reviews(edition)
    assert sorted(saved) == sorted(classes)
    assert [entry for of_class in saved.values() for entry in of_class.values()] == [CLEAN | {"seen": "grid"}] * 70


@pytest.mark.long
def test_notes_and_looking_closely(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    first = at.focus
    at.press("e")
    at.page.wait_for_selector(".q-card textarea")
    for button in at.page.locator(".q-card button").all():
        # the whole button can be pressed, from its first to its last pixel
        assert button.evaluate("""each => {
            const {left, top, right, bottom} = each.getBoundingClientRect();
            const corners = [[left + 4, top + 4], [right - 4, bottom - 4]];
            return corners.every(at => each.contains(document.elementFromPoint(...at)));
        }""")  # fmt: skip
    at.type_into_dialog("<b>odd</b> & : # {dark}")
    at.page.wait_for_selector(".q-dialog__inner", state="detached")
    at.press("Enter")
    at.page.wait_for_selector("[data-look=zoom][data-ready]", state="attached")
    at.page.keyboard.press("1")
    at.page.wait_for_function("document.querySelector('#zoom-ratio').textContent === '100 %'")
    shown = at.page.locator(".cropper-canvas img").bounding_box()
    assert shown is not None
    assert [round(shown["width"]), round(shown["height"])] == [407, 254]
    at.press("c")
    assert at.mode == "zoom"
    at.press("Escape")
    assert reviews(edition) == {
        GOLDFISH: {first: {"verdict": "clean", "seen": "single", "note": "<b>odd</b> & : # {dark}"}}
    }
    assert "“<b>odd</b> & : # {dark}”" in at.page.inner_text(f"[data-card='{first}']")


def test_the_help_names_every_key(edition: Path) -> None:
    tab = TabAlone(edition)
    sheet = tab.type("?")["overlay"]
    for word in ("clean", "crop", "reject", "unsure", "undo", "skip", "search", "several objects", "fully visible"):
        assert word in sheet
    tab.type("c")
    assert (tab.mode, reviews(edition)) == ("class", {})


@pytest.mark.long
def test_two_reviewers_that_differ_and_the_board(edition: Path, start: Serve, visit: Open) -> None:
    ada, ben = TabAlone(edition, "ada"), TabAlone(edition, "ben")
    for tab in (ada, ben):
        tab.open(imagenet().indices[BALLOON])
        tab.type()
    image = ada.cursor.focus
    assert image is not None
    ada.type("c")
    assert "ada: " not in ben.type()["view"]  # nobody sees a verdict before giving their own
    ben.cursor.focus_card(image)
    assert "ada: clean" in ben.type("r", "f")["view"]
    board = visit(start("board"))
    assert (board.wnid, board.focus) == (BALLOON, image)
    assert board.page.locator(".options figcaption").all_inner_texts() == ["1\nclean\nada", "2\nreject: filter\nben"]
    board.press("c")
    assert board.mode == "note"
    assert reviews(edition, "board") == {}
    board.type_into_dialog("the haze of a low sun")
    board.page.wait_for_selector(".q-dialog__inner", state="detached")
    board.page.wait_for_selector("[data-mode=end]")
    assert reviews(edition, "board") == {BALLOON: {image: {"verdict": "clean", "note": "the haze of a low sun"}}}


@pytest.mark.long
def test_what_is_typed_at_once_stays(edition: Path, start: Serve, visit: Open) -> None:
    """Nothing that comes from the server after a field is shown takes away what was typed there."""
    at = visit(start(), script=SLOW)
    first = at.shown[0]
    for wnid in (LADYBUG, BALLOON):
        at.go(wnid)
    at.go(GOLDFISH)
    for text in ("a stamp", "no stamp, a shadow"):
        at.press("e")
        at.page.locator(".q-dialog textarea").fill(text)
        at.page.wait_for_timeout(900)
        at.page.keyboard.press("Enter")
        at.page.wait_for_selector(".q-dialog__inner", state="detached")
    at.press("u")
    assert reviews(edition) == {GOLDFISH: {first: {"verdict": "unsure", "note": "no stamp, a shadow"}}}
