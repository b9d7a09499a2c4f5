"""Images of 40 pixels: drawn sharp where they are enlarged, by their names, with crops that fit them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cleanset.vocabulary import imagenet, use_classes
from tests import own_edition
from tests.browser_tab import Server

from .reviewing import Reviewing, serve

ALL_SHARP = """selector => {
  const images = [...document.querySelectorAll(selector)].filter((image) => image.naturalWidth && image.offsetWidth);
  return images.length > 0 && images.every((image) => getComputedStyle(image).imageRendering === "pixelated");
}"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """The page of an edition of small images that nobody has reviewed."""
    server = serve(own_edition.make(tmp_path).folder, "ada")
    yield server
    server.kill()
    use_classes(imagenet())


def test_small_images(server: Server, visit: Callable[..., Reviewing]) -> None:
    tab = visit(server)
    tab.page.wait_for_function(ALL_SHARP, arg="#view .photo img")
    assert tab.page.inner_text("#view aside .details h2").startswith("Card 1: 40 × 40 · 00")
    for key in ("Enter", "x"):
        tab.press(key)
        tab.page.wait_for_function(ALL_SHARP, arg="#overlay .cropper-container img")
        if key == "x":
            assert "No edge under 20 pixels." in tab.page.inner_text("#overlay")
            tab.draw((0, 0, 30, 19))
            tab.press("b", "v", "Enter")
            assert "30 × 19 pixels, and no edge may be under 20" in tab.notice
        tab.press("Escape")
        if tab.mode != "class":
            tab.press("Escape")
    tab.page.evaluate("document.querySelector('#view .photo img').style.width = '60px'")
    tab.page.wait_for_function("getComputedStyle(document.querySelector('#view .photo img')).imageRendering === 'auto'")
