"""Own images of 40 pixels: drawn sharp where they are enlarged, by their names, with crops that fit them.

A near-duplicate in another class is a hint that names image and class.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import own_edition

from .reviewing import Reviewing, TabAlone, serve

ALL_SHARP = """selector => {
  const images = [...document.querySelectorAll(selector)].filter((image) => image.naturalWidth && image.offsetWidth);
  return images.length > 0 && images.every((image) => getComputedStyle(image).imageRendering === "pixelated");
}"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An edition that nobody has reviewed, in which an image of the first class is in another, too."""
    copies = {"ripe pears/copy.png": "001/002.png"}
    return own_edition.make(tmp_path_factory.mktemp("small"), each=3, copies=copies).folder


@pytest.fixture
def own(made: Path) -> Path:
    return made


@pytest.mark.long
def test_small_images(own: Path, visit: Callable[..., Reviewing]) -> None:
    server = serve(own, "ada")
    tab = visit(server)
    tab.page.wait_for_function(ALL_SHARP, arg="#view .photo img")
    assert tab.page.inner_text("#view aside .details h2").startswith("Card 1: 40 × 40 · 00")
    assert tab.page.get_attribute("#view h1", "dir") == "auto"
    for key in ("Enter", "x"):
        tab.press(key)
        tab.page.wait_for_function(ALL_SHARP, arg="#overlay .cropper-container img")
        if key == "x":
            assert "Each side needs at least 20 pixels." in tab.page.inner_text("#overlay")
            tab.draw((0, 0, 30, 19))
            tab.press("b", "v", "Enter")
            assert "30 × 19 pixels, and each side needs at least 20" in tab.notice
        tab.press("Escape")
        if tab.mode != "class":
            tab.press("Escape")
    tab.page.evaluate("document.querySelector('#view .photo img').style.width = '60px'")
    tab.page.wait_for_function("getComputedStyle(document.querySelector('#view .photo img')).imageRendering === 'auto'")
    server.kill()


@pytest.mark.long
def test_a_duplicate_in_another_class_is_on_the_card(own: Path) -> None:
    tab, end = TabAlone(own, measures=True), time.monotonic() + 60
    wanted = "nearly the same as ripe pears/copy.png of class ripe pears"
    while wanted not in "".join(tab.type().values()):
        assert time.monotonic() < end, tab.session.hints.of(tab.cursor.images())
        time.sleep(0.1)
    found = tab.session.hints.of(["001/000.png", "001/002.png"])
    assert [hint.others for hint in found["001/002.png"] if hint.kind == "duplicate"] == [("ripe pears/copy.png",)]
    assert not [hint for hint in found["001/000.png"] if hint.kind == "duplicate"]
    tab.session.hints.close()


def test_the_limits_of_a_crop_are_those_of_the_edition(own: Path) -> None:
    html = TabAlone(own).type("x")
    assert "40 × 40" in html["view"]
    assert "Each side needs at least 20 pixels." in html["overlay"]
