"""The scenarios of XIMAGENET-12: an image with another background, or with its background or object changed.

The paper's text and its published code differ; `as_written` is the text, with the sizes of filters from the code, and
`as_coded` the code. In every scenario that changes the background, the object keeps its pixels bit for bit unless it
is moved, made translucent or added to a photograph; in blur_object the background does. Pixels that are in neither
region stay as they are, and move with the object.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.images.preprocessing import BASE_SIZE, SHORT_SIDE
from cleanset.statistics.seeds import change_seed
from cleanset.studies.robustness.scenarios.masks import Mask, Regions
from cleanset.studies.robustness.scenarios.params import (
    DEFINITIONS,
    GENERATED,
    MATTES,
    RANDOM,
    SCENARIOS,
    ScenarioDefinition,
)
from cleanset.validation import check_known

Pixels = NDArray[np.uint8]
"""An image, uint8 of shape (height, width, 3), red first."""

KIND = "scenario"
"""The kind of change, from which seeds are derived."""

CHANNELS = {"image_r": 0, "image_g": 1, "image_b": 2}

HUES: dict[str, tuple[int, ...]] = {
    "image_r": (*range(30), *range(150, 181)),
    "image_g": tuple(range(30, 90)),
    "image_b": tuple(range(90, 150)),
}
"""Hues in half degrees, OpenCV's unit; the published code draws one of them for the background."""

MAX_RAINBOW_SHIFT = 90
"""Largest shift of image_rainbow's hues, in half degrees."""

HUE_CIRCLE = 180
"""The whole circle of hues, in half degrees."""

UINT8_VALUES = 256


@dataclass(frozen=True, slots=True)
class Placing:
    """The placing of an object by random_background: scaled by a factor in `scales`, anywhere inside the frame.

    Where the object would not fit, it is scaled to fit. `weight` is that of the object against the photograph, 1 for
    an opaque one. Not `moved`, it stays where it was in its own size.
    """

    scales: tuple[float, float] = (0.5, 1.0)
    weight: float = 1.0
    moved: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.scales[0] <= self.scales[1]:
            raise ValueError(f"scales {self.scales}; expected two factors above 0, the smaller one first")
        if not 0 < self.weight <= 1:
            raise ValueError(f"weight {self.weight}; expected a weight above 0, at most 1")


PLACING = Placing()


class _Scene(NamedTuple):
    """The image, its regions and the random generator of one scenario."""

    image: Pixels
    regions: Regions
    name: str
    as_coded: bool
    drawn: np.random.RandomState


def scenario_image(
    image: Pixels,
    regions: Regions,
    name: str,
    seed: int = 0,
    *,
    definition: ScenarioDefinition = "as_written",
    matte: str = "black",
    photographs: Sequence[Pixels] = (),
    placing: Placing = PLACING,
    generated: Pixels | None = None,
) -> Pixels:
    """The image in one of the scenarios, of its own shape: uint8 of shape (height, width, 3).

    `regions` are those of this image, of shape (height, width). `seed` is the image's (`seeds.image_seed`).
    transparent_image is shown over `matte`; random_background needs `photographs`, none smaller than the image, and
    follows `placing` (as_coded does not); generated_background needs the `generated` image. Raises CleansetError for an
    unknown scenario, definition or matte, and for photographs that are missing or too small, ValueError for other
    shapes.
    """
    check_known("scenario", name, SCENARIOS)
    check_known("definition", definition, DEFINITIONS)
    if not image.shape[:2] == regions.object.shape == regions.background.shape:
        raise ValueError(f"image of shape {image.shape}, object {regions.object.shape}; expected the same size")
    drawn = np.random.RandomState(change_seed(seed, KIND, name, 0))
    scene = _Scene(image, regions, name, definition == "as_coded", drawn)
    if name == "transparent_image":
        return over_matte(transparent_image(image, regions, definition), matte)
    if name == RANDOM:
        return _random_background(scene, photographs, placing)
    if name == GENERATED:
        if generated is None:
            raise CleansetError(f"{name}: no generated image: name a folder of generated images")
        return object_put_back(image, regions, generated)
    return _CHANGES[name](scene)


def transparent_image(image: Pixels, regions: Regions, definition: ScenarioDefinition = "as_written") -> Pixels:
    """The object opaque, the background transparent: uint8 of shape (height, width, 4).

    The background is (0, 0, 0, 0); as_coded its colours stay below alpha 0, so that over a matte both are the same.
    """
    alpha = np.where(regions.background, 0, 255).astype(np.uint8)
    colors = image if definition == "as_coded" else _with(image, regions.background, np.zeros_like(image))
    return np.dstack([colors, alpha])


def over_matte(image: Pixels, matte: str) -> Pixels:
    """An image of red, green, blue and alpha, 0 or 255, over one color: uint8 of shape (height, width, 3)."""
    check_known("matte", matte, MATTES)
    color = np.broadcast_to(np.array(MATTES[matte], np.uint8), image[..., :3].shape)
    return _with(image[..., :3], image[..., 3] == 0, color)


def object_put_back(image: Pixels, regions: Regions, generated: Pixels) -> Pixels:
    """A generated image with all of the own image but its background on top, unchanged.

    Raises ValueError for a generated image of another shape.
    """
    if generated.shape != image.shape:
        raise ValueError(f"generated image of shape {generated.shape}; expected {image.shape}")
    return _with(image, regions.background, generated)


def check_photographs(photographs: Mapping[str, Pixels], width: int, height: int, images: Mapping[str, str]) -> None:
    """Raise CleansetError unless there are photographs, none smaller than the frame, none an image of the edition.

    `images` are the image ids of the edition by the SHA-256 of their pixels (`images.codec.pixels_sha256`).
    """
    if not photographs:
        raise CleansetError("random_background: no photographs; expected at least one: put some into the folder")
    for name, pixels in sorted(photographs.items()):
        if pixels.shape[0] < height or pixels.shape[1] < width:
            raise CleansetError(
                f"{name}: background of {pixels.shape[1]} x {pixels.shape[0]} pixels; "
                f"expected at least {width} x {height}: remove it"
            )
        image_id = images.get(sha256(pixels.tobytes()).hexdigest()) if images else None
        if image_id is not None:
            raise CleansetError(
                f"{name}: background is image {image_id} of the edition: remove it, and add another photograph"
            )


def _with(image: Pixels, where: Mask, changed: NDArray[np.uint8]) -> Pixels:
    """The image with the changed pixels where the mask is true."""
    return np.where(where[..., np.newaxis], changed, image)


def _blurred(image: Pixels) -> Pixels:
    return np.asarray(cv2.GaussianBlur(image, (15, 15), sigmaX=3), np.uint8)


def _blur_background(scene: _Scene) -> Pixels:
    return _with(scene.image, scene.regions.background, _blurred(scene.image))


def _blur_object(scene: _Scene) -> Pixels:
    return _with(scene.image, scene.regions.object, _blurred(scene.image))


def _grey_background(scene: _Scene) -> Pixels:
    grey = np.asarray(cv2.cvtColor(scene.image, cv2.COLOR_RGB2GRAY), np.uint8)
    return _with(scene.image, scene.regions.background, np.dstack([grey, grey, grey]))


def _one_color(scene: _Scene) -> Pixels:
    """The background with one of its channels; as_coded with one hue."""
    if scene.as_coded:
        hues = HUES[scene.name]
        hue = hues[scene.drawn.randint(len(hues))]
        return _with(scene.image, scene.regions.background, _with_hue(scene.image, lambda old: np.full_like(old, hue)))
    channel = CHANNELS[scene.name]
    only = np.zeros_like(scene.image)
    only[..., channel] = scene.image[..., channel]
    return _with(scene.image, scene.regions.background, only)


def _rainbow(scene: _Scene) -> Pixels:
    """The background with all hues shifted by one angle; as_coded hues beyond 255 begin at 0 again."""
    shift = scene.drawn.randint(MAX_RAINBOW_SHIFT + 1)
    # the published code adds in uint8, where OpenCV shows hue 180 as 0, 181 as 1 and so on
    circle = UINT8_VALUES if scene.as_coded else HUE_CIRCLE
    return _with(scene.image, scene.regions.background, _with_hue(scene.image, lambda hue: (hue + shift) % circle))


def _with_hue(image: Pixels, changed: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Pixels:
    """The image with other hues, in half degrees."""
    hsv = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2HSV), np.uint8)
    hsv[..., 0] = changed(hsv[..., 0].astype(np.int64))
    return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), np.uint8)


def _brightened(scene: _Scene) -> Pixels:
    """Image and blurred image added; as_coded in the background only."""
    blurred = cv2.GaussianBlur(scene.image, (9, 9), sigmaX=4)
    bright = np.asarray(cv2.addWeighted(scene.image, 1.5, blurred, 0.9, 1.9), np.uint8)
    return _with(scene.image, scene.regions.background, bright) if scene.as_coded else bright


def _segmented(scene: _Scene) -> Pixels:
    return _with(scene.image, scene.regions.background, np.zeros_like(scene.image))


def _random_background(scene: _Scene, photographs: Sequence[Pixels], placing: Placing) -> Pixels:
    """The object on a part of one of the photographs; as_coded resized to one, added, and cut out as a base image."""
    height, width = scene.image.shape[:2]
    check_photographs({f"photograph {number}": each for number, each in enumerate(photographs, 1)}, width, height, {})
    photograph = photographs[scene.drawn.randint(len(photographs))]
    if scene.as_coded:
        stretched = cv2.resize(_segmented(scene), photograph.shape[1::-1])
        return _cut_out(np.asarray(cv2.add(photograph, np.asarray(stretched)), np.uint8), height, width)
    top = scene.drawn.randint(photograph.shape[0] - height + 1)
    left = scene.drawn.randint(photograph.shape[1] - width + 1)
    behind = photograph[top : top + height, left : left + width]
    shown, where = _placed(scene, placing.scales) if placing.moved else (scene.image, ~scene.regions.background)
    if placing.weight < 1:
        shown = np.rint(placing.weight * shown + (1 - placing.weight) * behind).astype(np.uint8)
    return _with(behind, where, shown)


def _cut_out(image: Pixels, height: int, width: int) -> Pixels:
    """The central part of a resized image, which for 224 x 224 pixels is its `base_image`."""
    high, wide = image.shape[:2]
    # the frame is to the resized image as 224 to 256
    if high * width <= wide * height:
        resized = SHORT_SIDE * height * wide // (BASE_SIZE * high), SHORT_SIDE * height // BASE_SIZE
    else:
        resized = SHORT_SIDE * width // BASE_SIZE, SHORT_SIDE * width * high // (BASE_SIZE * wide)
    whole = np.asarray(Image.fromarray(image).resize(resized, Image.Resampling.BILINEAR))
    top, left = round((resized[1] - height) / 2), round((resized[0] - width) / 2)
    return whole[top : top + height, left : left + width]


def _placed(scene: _Scene, scales: tuple[float, float]) -> tuple[Pixels, Mask]:
    """The object scaled and moved, on black, and where it is."""
    height, width = scene.image.shape[:2]
    rows, columns = (np.flatnonzero((~scene.regions.background).any(axis=axis)) for axis in (1, 0))
    if not rows.size:
        raise CleansetError("random_background: the object is not in the frame: leave the image out")
    box = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
    wide, high = box[2] - box[0], box[3] - box[1]
    scale = min(scene.drawn.uniform(*scales), width / wide, height / high)
    size = max(int(wide * scale), 1), max(int(high * scale), 1)
    cut = Image.fromarray(transparent_image(scene.image, scene.regions)).crop(box)
    # Pillow weights colors by alpha here, so that no background gets into the edge
    scaled = np.asarray(cut.resize(size, Image.Resampling.BILINEAR))
    top = scene.drawn.randint(height - size[1] + 1)
    left = scene.drawn.randint(width - size[0] + 1)
    canvas = np.zeros((height, width, 4), np.uint8)
    canvas[top : top + size[1], left : left + size[0]] = scaled
    # as in masks: a pixel that is half object belongs to it
    return canvas[..., :3], canvas[..., 3] >= 128


_CHANGES: dict[str, Callable[[_Scene], Pixels]] = {
    "blur_background": _blur_background,
    "blur_object": _blur_object,
    "image_grey": _grey_background,
    "image_r": _one_color,
    "image_g": _one_color,
    "image_b": _one_color,
    "image_rainbow": _rainbow,
    "image_brightness": _brightened,
    "segmented_image": _segmented,
}
