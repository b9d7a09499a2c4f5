"""Whether what is on the screen is the file, of every image that a page shows at its own pixels."""

import base64
import io
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page

# of each image in a frame: its pixels, as the browser itself decodes them, since another decoder of JPEGs may differ;
# where they are; and what of them is in sight, in CSS pixels of the window
FRAMES = """() => [...document.querySelectorAll(".frame:not(:has(.loading)) img")].map((image) => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  canvas.getContext("2d").drawImage(image, 0, 0);
  const place = image.getBoundingClientRect();
  const glass = image.closest("#magnifier")?.querySelector(".ground");
  const around = glass ? [glass] : [];
  for (let each = image.parentElement; each !== null; each = each.parentElement)
    if (getComputedStyle(each).overflow !== "visible") around.push(each);
  const boxes = [image, ...around].map((each) => each.getBoundingClientRect());
  // without the last row, partly in a window of fractional CSS pixels
  boxes.push({ left: 0, top: 0, right: document.documentElement.clientWidth, bottom: innerHeight - 1 });
  const sight = [
    ...["left", "top"].map((side) => Math.max(...boxes.map((box) => box[side]))),
    ...["right", "bottom"].map((side) => Math.min(...boxes.map((box) => box[side]))),
  ];
  return {
    alt: image.alt, png: canvas.toDataURL().split(",")[1],
    place: [place.left, place.top, place.width, place.height], sight,
  };
})"""
HIDDEN = ".frame svg, .seen, #magnifier .ratio { visibility: hidden !important }"
TWO_FRAMES = "new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)))"


@dataclass(frozen=True)
class Shown:
    """An image in a frame: device pixels that are in sight, and those that are not the file's."""

    alt: str
    factor: int
    in_sight: int
    differing: int


def shown_images(page: Page) -> list[Shown]:
    """Each image in a frame with a pixel in sight."""
    hiding = page.add_style_tag(content=HIDDEN)
    page.evaluate(TWO_FRAMES)
    ratio = page.evaluate("devicePixelRatio")
    screen = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    found = []
    for frame in page.evaluate(FRAMES):
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(frame["png"]))).convert("RGB"))
        height, width, _ = pixels.shape
        place = [each * ratio for each in frame["place"]]
        assert place == pytest.approx([round(each) for each in place], abs=0.1), frame["alt"]
        left, top, *size = map(round, place)
        factor = round(size[0] / width)
        assert size == [factor * width, factor * height], frame["alt"]
        near, high, far, low = (round(each * ratio) for each in frame["sight"])
        if near >= far or high >= low:
            continue
        stored = pixels.repeat(factor, axis=0).repeat(factor, axis=1)
        stored = stored[high - top : low - top, near - left : far - left]
        differing = (screen[high:low, near:far] != stored).any(axis=2)
        found.append(Shown(alt=frame["alt"], factor=factor, in_sight=differing.size, differing=int(differing.sum())))
    hiding.evaluate("style => style.remove()")
    return found
