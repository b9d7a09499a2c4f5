"""Images keep their number and place while a class is open, whatever joins them."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser_tab import Server, pinch

from .conftest import Open, Serve
from .reviewing import reviews
from .test_reviewing import with_one_model

PLACES = """
() => Object.fromEntries([...document.querySelectorAll("[data-card]")].map((card) => {
  const sides = ({ left, top, width, height }) => [left, top, width, height];
  const parts = [card, card.querySelector(".photo"), card.querySelector("img")];
  return [card.dataset.card,
    [card.querySelector("kbd").textContent, ...parts.map((part) => sides(part.getBoundingClientRect()))]]; }))
"""
"""By image id: the number, and the places of card, frame and image."""

WHOLE = "async () => (await import('./static/all_clean.js')).onScreen()"


def places(at: Any, of: list[str]) -> dict[str, Any]:
    found = at.page.evaluate(PLACES)
    return {image_id: found[image_id] for image_id in of}


SMALL, USUAL, WIDE, LARGE = (800, 600), (1280, 800), (1920, 940), (1920, 1080)


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "models"),
    [
        (SMALL, 1), (LARGE, 3),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in ((USUAL, 3), (WIDE, 1), (SMALL, 3), (USUAL, 1), (WIDE, 3), (LARGE, 1))
        ),
    ],
)  # fmt: skip
def test_replacements_move_no_image(
    edition: Path, start: Serve, visit: Open, size: tuple[int, int], models: int
) -> None:
    if models == 1:
        with_one_model(edition)
    at = visit(start())
    at.resize(size[0], size[1])
    first = at.shown
    before = places(at, first)
    for number in (2, 3):
        at.press(f"Shift+Digit{number}")
        assert at.shown[: len(first)] == first
        assert places(at, first) == before
    joined = at.shown[len(first) :]
    assert joined
    assert at.page.eval_on_selector_all("figure:has(.new)", "each => each.map(({dataset}) => dataset.card)") == joined
    if size[0] > 1000:
        assert set(joined) <= set(at.page.evaluate(WHOLE))
    after = places(at, at.shown)
    assert [number for number, *_ in after.values()] == [str(place + 1) for place in range(len(after))]
    at.press("Shift+Digit3")  # rejected already: its digit is still its own
    at.press("z", "z", "z")
    assert at.shown == first
    if size[0] > 1000:  # a small window scrolls to the image
        assert places(at, first) == before


@pytest.mark.long
def test_a_replacement_below_is_reported_and_moves_nothing(edition: Path, start: Serve, visit: Open) -> None:
    with_one_model(edition)
    at = visit(start())
    at.resize(800, 600)
    first = at.shown
    before = places(at, first)
    at.press("Shift+Digit2")
    assert places(at, first) == before
    at.press("Shift+Digit3")
    assert places(at, first) == before
    assert len(at.shown) == 5
    assert at.page.inner_text("#more") == "▼ 1 more"
    at.look(2.0)
    at.press("a")
    assert "Left: card 5" in at.notice
    assert at.focus == at.shown[4]
    assert at.shown[4] in at.page.evaluate(WHOLE)  # scrolled to
    wnid = at.wnid
    at.press("a")
    assert at.wnid != wnid


@pytest.mark.long
def test_replacements_share_a_place(edition: Path, start: Serve, visit: Open) -> None:
    """Each is as large as can be, and two are large enough to be judged, upright or not."""
    with_one_model(edition)
    at = visit(start())
    first = at.shown
    before, sizes = places(at, first), []
    for number in range(2, 6):
        at.press(f"Shift+Digit{number}")
        joined = at.shown[len(first) :]
        assert number > 3 or set(joined) <= set(at.page.evaluate(WHOLE))
        sizes.append([round(width * height) for _, (_, _, width, height), *_ in places(at, joined).values()])
    assert places(at, first) == before
    assert [len(set(each)) for each in sizes] == [1, 1, 1, 1]
    assert sizes[0][0] > 2 * sizes[1][0] > 2 * sizes[2][0] == 2 * sizes[3][0]


SHOWN = """
async () => { await import("./web/seen.js");
  const areas = [...document.querySelectorAll("[data-card] img")].map((image) => {
    const { width, height } = placeOf(image); return width * height; });
  return areas.reduce((sum, each) => sum + each, 0) / areas.length }
"""
"""Mean area in which an image is shown."""


@pytest.mark.parametrize(("models", "before"), [(1, 67_000), (3, 20_500)])
def test_images_fill_the_window(edition: Path, start: Serve, visit: Open, models: int, before: int) -> None:
    """Three and eight images, at least 1.8 times as large as in rows of three and of five; all of them whole."""
    if models == 1:
        with_one_model(edition)
    at = visit(start())
    assert len(at.shown) == (3 if models == 1 else 8)
    assert at.page.evaluate(SHOWN) > 1.8 * before
    assert set(at.page.evaluate(WHOLE)) == set(at.shown)


@pytest.mark.long
def test_a_portrait_and_a_strip_of_the_same_area_are_both_large_enough(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    image = at.page.locator("[data-card] .photo").first
    for width, height, expected in ((120, 161, True), (400, 49, True), (300, 60, False), (119, 161, False)):
        image.evaluate(
            "(photo, style) => { photo.style.cssText = style;"
            " const image = photo.querySelector('img');"
            " const [, width, height] = style.match(/width: (.+)px; height: (.+)px/);"
            " Object.defineProperty(image, 'naturalWidth', { value: Number(width), configurable: true });"
            " Object.defineProperty(image, 'naturalHeight', { value: Number(height), configurable: true }) }",
            f"position: fixed; z-index: 99; left: 0; top: 0; width: {width}px; height: {height}px",
        )
        assert (at.shown[0] in at.page.evaluate(WHOLE)) is expected, (width, height)


STRIP = """
async ([width, height]) => { const { layOut } = await import("./static/grid.js");
  await import("./web/seen.js");
  const [strip, ...others] = document.querySelectorAll("#cards figure");
  const before = strip.dataset.ratio;
  strip.dataset.ratio = width / height;
  layOut();
  const areas = others.map((card) => placeOf(card.querySelector("img"))).map((place) => place.width * place.height);
  strip.dataset.ratio = before;
  layOut();
  return Math.min(...areas) }
"""
"""The smallest area of an image next to a strip of this size."""


@pytest.mark.long
def test_a_strip_leaves_its_neighbours_large_enough(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    for window in (SMALL, USUAL, LARGE):
        at.resize(*window)
        for strip in ((3000, 100), (1200, 100), (100, 3000)):
            assert at.page.evaluate(STRIP, strip) >= 160 * 120, (window, strip)


@pytest.mark.long
@pytest.mark.parametrize(("scale", "whole"), [(1.3, 1), (4, 0)])
def test_a_pinch_takes_cards_out_of_sight(edition: Path, start: Serve, visit: Open, scale: float, whole: int) -> None:
    """At 1.3 the first of three images is whole on the screen, at 4 a corner of it; keys hold for what is in sight."""
    with_one_model(edition)
    at = visit(start())
    pinch(at.page, scale)
    at.look_for_long(3)
    at.press("c")
    assert len(reviews(edition).get(at.wnid, {})) == whole
    at.press("z", "a")
    assert at.notice.startswith("1 image is clean. Left: cards 2, 3, " if whole else "Left: cards 1, 2, 3, ")
    pinch(at.page, 1)
    at.look_for_long(3)
    at.press("a")
    assert at.notice.startswith(f"{3 - whole} image")
