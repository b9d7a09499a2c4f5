"""Images keep their number and place while a class is open, whatever joins them."""

from pathlib import Path
from typing import Any

import pytest

from cleanset.review.page.view import layout_of

from .conftest import Open, Serve
from .test_reviewing import with_one_model

PLACES = """
() => Object.fromEntries([...document.querySelectorAll("[data-card]")].map((card) => {
  const sides = ({ left, top, width, height }) => [left, top, width, height];
  const parts = [card, card.querySelector(".photo"), card.querySelector("img")];
  return [card.dataset.card,
    [card.querySelector("kbd").textContent, ...parts.map((part) => sides(part.getBoundingClientRect()))]]; }))
"""
"""By image id: the number, and where card, frame and image lie."""

WHOLE = "async () => (await import('./static/looks.js')).whole()"


def places(at: Any, of: list[str]) -> dict[str, Any]:
    found = at.page.evaluate(PLACES)
    return {image_id: found[image_id] for image_id in of}


SMALL, USUAL, WIDE, LARGE = (800, 600), (1280, 800), (1920, 940), (1920, 1080)


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
    at.page.set_viewport_size({"width": size[0], "height": size[1]})
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


def test_a_replacement_below_is_told_and_moves_nothing(edition: Path, start: Serve, visit: Open) -> None:
    with_one_model(edition)
    at = visit(start())
    first = at.shown
    before = places(at, first)
    for number in range(2, 6):  # the last replacement has no place left
        at.press(f"Shift+Digit{number}")
        assert places(at, first) == before
    assert len(at.shown) == 7
    assert at.page.inner_text("#more") == "▼ 1 more"
    at.look(2.0)
    at.press("a")
    assert "Left: card 7" in at.notice
    assert at.focus == at.shown[6]
    assert at.shown[6] in at.page.evaluate(WHOLE)  # scrolled to
    wnid = at.wnid
    at.press("a")
    assert at.wnid != wnid


@pytest.mark.parametrize(
    ("count", "layout"),
    [(1, "columns-2 one-row"), (2, "columns-2 dense"), (3, "columns-3 dense"), (4, "columns-3 dense"),
     (6, "columns-4 dense"), (8, "columns-5 dense"), (9, "columns-6 dense"), (10, "columns-6 dense"),
     (11, "columns-3 dense many")],
)  # fmt: skip
def test_a_grid_has_room_for_two_more(count: int, layout: str) -> None:
    assert layout_of(count) == layout
