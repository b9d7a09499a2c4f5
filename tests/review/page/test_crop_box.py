"""The crop box is in pixels of the image: what changes it, and what does not."""

from itertools import product
from pathlib import Path

import pytest

from tests.browser_tab import Server

from .conftest import Open, Serve
from .reviewing import Reviewing, reviews

GOLDFISH = "n01443537"


def cropping(at: Reviewing) -> Reviewing:
    at.press("x")
    at.page.wait_for_selector("[data-look=crop][data-ready]", state="attached")
    return at


@pytest.fixture
def at(start: Serve, visit: Open) -> Reviewing:
    return cropping(visit(start()))


@pytest.fixture
def looking(unchanged: Server, visit: Open) -> Reviewing:
    """The page of a test that saves nothing."""
    return cropping(visit(unchanged))


def shown_image(at: Reviewing) -> tuple[float, float, float, float]:
    """Left, top, width, height on the screen."""
    box = at.page.locator(".cropper-canvas img").bounding_box()
    assert box is not None
    return box["x"], box["y"], box["width"], box["height"]


def over_image(at: Reviewing) -> tuple[float, float]:
    left, top, width, height = shown_image(at)
    at.page.mouse.move(left + width * 0.3, top + height * 0.4)
    return left + width * 0.3, top + height * 0.4


def zoom_by_wheel(at: Reviewing) -> None:
    width = shown_image(at)[2]
    at.page.mouse.wheel(0, -120)
    at.page.wait_for_function(
        "width => document.querySelector('.cropper-canvas img').getBoundingClientRect().width > width", arg=width
    )


@pytest.mark.long
def test_zooming_and_moving_the_image_leave_the_box(edition: Path, at: Reviewing) -> None:
    at.draw([86, 58, 266, 188])
    box = at.box()
    over_image(at)
    for _ in range(4):
        zoom_by_wheel(at)
        assert at.box() == box
    for key in ("+", "-", "2", "0", "1"):
        at.page.keyboard.press(key)
        assert at.box() == box
    before = shown_image(at)
    x, y = over_image(at)
    at.page.keyboard.down(" ")
    at.page.mouse.down()
    at.page.mouse.move(x + 40, y + 25, steps=4)
    at.page.mouse.up()
    at.page.keyboard.up(" ")
    assert shown_image(at) != before
    assert at.box() == box
    at.page.set_viewport_size({"width": 1000, "height": 700})
    at.look(0.5)
    assert at.box() == box
    at.press("w", "v")
    zoom_by_wheel(at)
    at.look(0.4)
    at.press("Enter")
    assert [entry["crop"] for entry in reviews(edition)[GOLDFISH].values()] == [box]


def test_the_box_is_drawn_where_it_is(looking: Reviewing) -> None:
    """Zoomed, the drawn rectangle still encloses the same pixels of the image."""
    looking.draw([86, 58, 266, 188])
    over_image(looking)
    zoom_by_wheel(looking)
    left, top, width, _ = shown_image(looking)
    scale = width / 407
    drawn = looking.page.locator(".cropper-crop-box").bounding_box()
    assert drawn is not None
    found = [(drawn["x"] - left) / scale, (drawn["y"] - top) / scale]
    found += [found[0] + drawn["width"] / scale, found[1] + drawn["height"] / scale]
    assert [round(edge) for edge in found] == looking.box()


MOVES = ([(0.7, 0.8)], [(0.5, 0.15), (0.7, 0.8)], [(0.4, 0.3), (0.6, 0.7), (0.7, 0.8)])
"""Few and long movements, as shares of the image; the first maybe along one axis."""


@pytest.mark.long
def test_a_new_box_follows_the_mouse_from_its_first_movement(looking: Reviewing) -> None:
    """Each box is drawn in place of the one before, from outside of it, forwards or backwards."""
    left, top, width, height = shown_image(looking)
    for number, (moves, is_backwards) in enumerate(product(MOVES, (False, True))):
        way = [(0.28 - 0.03 * number, 0.15), *moves]
        points = [(left + abs(is_backwards - x) * width, top + abs(is_backwards - y) * height) for x, y in way]
        looking.page.mouse.move(*points[0])
        looking.page.mouse.down()
        for point in points[1:]:
            looking.page.mouse.move(*point)
        (low_x, high_x), (low_y, high_y) = (sorted(axis) for axis in zip(points[0], points[-1], strict=True))
        edges = [low_x - left, low_y - top, high_x - left, high_y - top]
        expected = pytest.approx([edge * 407 / width for edge in edges], abs=1)
        assert looking.box() == expected, (moves, is_backwards)
        looking.page.mouse.up()
        assert looking.box() == expected
        drawn = looking.page.locator(".cropper-crop-box").bounding_box()
        assert drawn is not None
        assert (drawn["x"] + drawn["width"], drawn["y"] + drawn["height"]) == pytest.approx((high_x, high_y), abs=2)


@pytest.mark.long
def test_a_saved_crop_is_not_changed_by_looking(edition: Path, at: Reviewing) -> None:
    image_id = at.focus
    at.draw([86, 58, 266, 188])
    box = at.box()
    at.press("w", "v", "Enter")
    at.page.click(f"[data-card='{image_id}']")
    at.page.wait_for_selector(f"[data-card='{image_id}'].focus")
    at.press("x")
    at.page.wait_for_selector("[data-look=crop][data-ready]", state="attached")
    over_image(at)
    zoom_by_wheel(at)
    at.look(0.3)
    assert at.page.get_attribute("#panel [role=checkbox]", "aria-checked") == "false"
    at.press("Enter")
    assert at.notice == "Not saved yet: confirm with v that the object is fully visible."
    at.press("v", "Enter")
    assert reviews(edition)[GOLDFISH][image_id]["crop"] == box


@pytest.mark.long
def test_an_edge_that_is_dragged_moves_alone(looking: Reviewing) -> None:
    looking.draw([86, 58, 266, 188])
    box = looking.box()
    handle = looking.page.locator(".cropper-point.point-e").bounding_box()
    assert handle is not None
    x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
    looking.page.mouse.move(x, y)
    looking.page.mouse.down()
    looking.page.mouse.move(x + 30, y + 11, steps=4)
    looking.page.mouse.up()
    assert looking.box()[2] > box[2]
    assert looking.box()[:2] + looking.box()[3:] == box[:2] + box[3:]


@pytest.mark.long
def test_a_changed_box_takes_the_statement_back(looking: Reviewing) -> None:
    looking.draw([86, 58, 266, 188])
    looking.press("w", "v")
    looking.page.wait_for_selector("#panel [role=checkbox][aria-checked=true]")
    looking.page.keyboard.press("Shift+ArrowLeft")
    looking.page.wait_for_selector("#panel [role=checkbox][aria-checked=false]")
    looking.page.keyboard.press("Shift+ArrowRight")  # back again: it was still changed
    looking.press("Enter")
    assert "fully visible" in looking.notice


@pytest.mark.long
def test_enter_and_space_press_the_focused_button(looking: Reviewing) -> None:
    looking.draw([86, 58, 266, 188])
    looking.press("w", "v")
    cancel = looking.page.locator("#panel button[data-key=Escape]")
    cancel.focus()
    looking.press("Enter")
    assert looking.mode == "class"
    wnid = looking.wnid
    looking.page.locator("footer button[data-key=n]").focus()
    looking.press(" ")
    assert looking.mode == "class"
    assert looking.wnid != wnid
    following = looking.wnid
    assert looking.page.evaluate("document.activeElement.dataset.key") == "n"  # the focus stays on it
    looking.press("Enter")
    assert looking.wnid not in (wnid, following)
    before = looking.of_view("pressed")
    looking.page.click("footer button[data-key=p]")  # a click does not take the keyboard
    looking.answered(before)
    looking.press("Enter")
    assert looking.mode == "zoom"


@pytest.mark.long
def test_space_moves_the_image_only_while_it_is_held(looking: Reviewing) -> None:
    """A window that loses the keyboard gets no event when the key is released."""
    page = looking.page
    for ends in ("keyup", "blur"):
        page.keyboard.down("Space")
        assert page.locator("#overlay.panning").count() == 1
        if ends == "blur":
            page.evaluate("dispatchEvent(new Event('blur'))")
            assert page.locator("#overlay.panning").count() == 0
        page.keyboard.up("Space")
        assert page.locator("#overlay.panning").count() == 0
