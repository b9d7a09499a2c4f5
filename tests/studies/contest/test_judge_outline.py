"""An outline by keyboard alone, corners that are moved, and the magnified image."""

from types import SimpleNamespace

from cleanset.studies.contest.judge_page.session import JudgeDraft, JudgeTab
from tests.report.pages import violations
from tests.studies.contest.judging_page import answers
from tests.studies.contest.test_judge_page import FRUIT, SQUARE, Start, Visit, contest, start, visit

__all__ = ["contest", "start", "visit"]
WIDTH = "() => document.querySelector('#outline').getBoundingClientRect().width"
CURSOR = "() => document.querySelector('#cursor').getAttribute('d').match(/-?[\\d.]+/g).map(Number)"


def test_a_corner_is_moved_inside_the_image_and_never_onto_another() -> None:
    draft = JudgeDraft(image="0" * 64, corners=[(1, 1), (9, 1), (9, 9)])
    tab = SimpleNamespace(notice="")
    for point in ((50, -3), (20, 0)):
        JudgeTab._move_corner(tab, draft, 1, point, (20, 10))  # type: ignore[arg-type]
        assert (draft.corners, tab.notice) == ([(1, 1), (20, 0), (9, 9)], "")
    JudgeTab._move_corner(tab, draft, 1, (9, 9), (20, 10))  # type: ignore[arg-type]
    assert draft.corners == [(1, 1), (20, 0), (9, 9)]
    assert tab.notice == "Two corners cannot be at one place: the corner stays where it was."


def test_an_outline_by_keyboard_and_a_corner_dragged(contest, start: Start, visit: Visit) -> None:  # type: ignore[no-untyped-def]
    at = visit(start())
    at.press("Enter", *FRUIT)
    keyboard = at.page.keyboard
    keyboard.press("ArrowLeft")
    left, middle = at.page.evaluate(CURSOR)[0], at.page.evaluate(CURSOR)[1]
    for _ in range(3):
        keyboard.press("Shift+ArrowUp")
    assert at.page.evaluate(CURSOR)[:2] == [left, middle - 30]
    at.press(" ")
    for key in ("ArrowDown", "ArrowRight"):
        for _ in range(5):
            keyboard.press(f"Shift+{key}")
        at.press(" ")
    keyboard.press("m")  # takes the last corner up
    for _ in range(5):
        keyboard.press("Shift+ArrowLeft")
    at.press("m")
    assert "Two corners cannot be at one place" in at.page.inner_text("body")
    for _ in range(5):
        keyboard.press("Shift+ArrowRight")
    keyboard.press("m")
    keyboard.press("ArrowRight")
    at.press("m", "Enter")
    assert at.step == "statement"
    at.press("y", "y", "y")
    (answer,) = answers(contest).values()
    corners = [tuple(map(int, corner.split(","))) for corner in answer["outline"].split()]
    (x, y), *others = corners
    assert others == [(x, y + 50), (x + 51, y + 50)]


def test_a_corner_is_dragged_on_the_magnified_image(contest, start: Start, visit: Visit) -> None:  # type: ignore[no-untyped-def]
    at = visit(start())
    at.press("Enter", *FRUIT)
    at.draw(SQUARE)
    before = at.page.evaluate(WIDTH)
    at.page.keyboard.press("+")
    assert abs(at.page.evaluate(WIDTH) / before - 1.25) < 0.01
    assert violations(at.page) == []
    at.page.keyboard.press("0")
    box = at.page.locator("#outline").bounding_box()
    width = int((at.page.get_attribute("#outline", "viewBox") or "").split()[2])
    assert box
    scale, (x, y) = box["width"] / width, SQUARE[0]
    pressed = at.of_view("pressed")
    at.page.mouse.move(box["x"] + x * scale, box["y"] + y * scale)
    at.page.mouse.down()
    at.page.mouse.move(box["x"] + (x + 20) * scale, box["y"] + (y + 30) * scale, steps=4)
    at.page.mouse.up()
    at.answered(pressed)
    at.press("Enter", "n", "n", "n")
    (answer,) = answers(contest).values()
    assert answer["outline"].split()[0] == f"{x + 20},{y + 30}"
    assert len(answer["outline"].split()) == len(SQUARE)


def test_a_corner_that_was_taken_up_and_removed_is_held_no_more(contest, start: Start, visit: Visit) -> None:  # type: ignore[no-untyped-def]
    at = visit(start())
    at.press("Enter", *FRUIT)
    for keys in ((), ("Shift+ArrowRight", "Shift+ArrowRight"), ("Shift+ArrowDown", "Shift+ArrowDown")):
        for key in keys:
            at.page.keyboard.press(key)
        at.press(" ")
    at.page.keyboard.press("m")
    at.press("z")
    assert at.page.get_attribute("#cursor", "class") == ""
    at.page.keyboard.press("ArrowLeft")
    at.press(" ")
    assert at.page.locator("path.corner").count() == 3


def test_arrows_move_the_magnified_image_in_every_step(contest, start: Start, visit: Visit) -> None:  # type: ignore[no-untyped-def]
    at = visit(start())
    at.press("Enter")
    place = (
        "() => { const { scrollLeft, scrollTop } = document.querySelector('.stage'); return [scrollLeft, scrollTop] }"
    )
    for _ in range(4):
        at.page.keyboard.press("+")
    left, top = at.page.evaluate(place)
    at.page.keyboard.press("ArrowLeft")
    at.page.keyboard.press("ArrowDown")
    assert at.page.evaluate(place) == [left - 80, top + 80]
    # in a narrow window the questions stay where they are
    at.page.set_viewport_size({"width": 800, "height": 600})
    assert at.page.evaluate("() => document.querySelector('.side').getBoundingClientRect().top") == 328
