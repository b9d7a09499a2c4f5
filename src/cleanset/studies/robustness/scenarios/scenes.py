"""The pixels of an image in a scenario of XIMAGENET-12: with another background, or its background or object changed.

The paper's text and its published code differ; `as_written` is the text, with the sizes of filters from the code, and
`as_coded` the code. In every scenario that changes the background, the object keeps its pixels bit for bit unless it
is moved, made translucent or added to a photograph; in blur_object the background does. Pixels that are in neither
region stay unchanged, and move with the object.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Pixels
from cleanset.plumbing.validation import check_known
from cleanset.statistics.basics import Ints
from cleanset.statistics.seeds import change_seed
from cleanset.studies.robustness.scenarios.masks import Mask, Regions
from cleanset.studies.robustness.scenarios.params import (
    GENERATED,
    MATTES,
    RANDOM,
    SCENARIOS,
    ScenarioDefinition,
    Scenarios,
)
from cleanset.studies.robustness.scenarios.photographs import check_photographs

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


AS_WRITTEN = Scenarios.model_validate({})
"""The defaults of the params."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Scene:
    """An image that a scenario is made of."""

    image: Pixels
    """uint8 of shape (height, width, 3)."""
    regions: Regions
    """Object and background, of shape (height, width)."""
    name: str
    """The scenario."""
    as_coded: bool
    """Whether it is made as by the published code."""
    drawn: np.random.RandomState
    """The generator of the scenario's draws."""


def scenario_image(
    image: Pixels,
    regions: Regions,
    name: str,
    seed: int = 0,
    *,
    wanted: Scenarios = AS_WRITTEN,
    photographs: Sequence[Pixels] = (),
    generated: Pixels | None = None,
) -> Pixels:
    """The image in one of the scenarios, of its own shape: uint8 of shape (height, width, 3).

    As_coded random_background is of the photograph's shape.

    `regions`: this image's, of shape (height, width). `seed` is the image's (`seeds.image_seed`).
    `wanted` has the definition, the matte of transparent_image, and the scale, weight and place of the object in
    random_background. random_background needs `photographs`, as_written ones at least as large as the image;
    generated_background needs the `generated` image. Raises CleansetError for an unknown scenario, and for photographs
    that are missing or too small, ValueError for other shapes.
    """
    check_known("scenario", name, SCENARIOS)
    if not image.shape[:2] == regions.object.shape == regions.background.shape:
        raise ValueError(f"image of shape {image.shape}, object {regions.object.shape}; expected the same size")
    drawn = np.random.RandomState(change_seed(seed, KIND, name, 0))
    scene = _Scene(image=image, regions=regions, name=name, as_coded=wanted.definition == "as_coded", drawn=drawn)
    if name == "transparent_image":
        return over_matte(transparent_image(image, regions, wanted.definition), wanted.matte)
    if name == RANDOM:
        return _random_background(scene, photographs, wanted)
    if name == GENERATED:
        if generated is None:
            raise CleansetError(f"{name}: no generated image: name a folder of generated images")
        return object_put_back(image, regions, generated)
    where = regions.object if name == "blur_object" else regions.background
    # brightness is of the whole image in the paper's text
    is_whole = name == "image_brightness" and not scene.as_coded
    changed = _CHANGES[name](scene)
    return changed if is_whole else _with(image, where, changed)


def transparent_image(image: Pixels, regions: Regions, definition: ScenarioDefinition = "as_written") -> Pixels:
    """The object opaque, the background transparent: uint8 of shape (height, width, 4).

    The background is (0, 0, 0, 0); as_coded its colours stay below alpha 0, so that over a matte both are the same.
    """
    alpha = np.where(regions.background, 0, 255).astype(np.uint8)
    colors = image if definition == "as_coded" else object_put_back(image, regions, np.zeros_like(image))
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


def _with(image: Pixels, where: Mask, changed: Pixels) -> Pixels:
    """The image with the changed pixels where the mask is true."""
    return np.where(where[..., np.newaxis], changed, image)


def _blurred(scene: _Scene) -> Pixels:
    return np.asarray(cv2.GaussianBlur(scene.image, (15, 15), sigmaX=3), np.uint8)


def _grey(scene: _Scene) -> Pixels:
    grey = np.asarray(cv2.cvtColor(scene.image, cv2.COLOR_RGB2GRAY), np.uint8)
    return np.dstack([grey, grey, grey])


def _one_color(scene: _Scene) -> Pixels:
    """The image with one of its channels; as_coded with one hue."""
    if scene.as_coded:
        hues = HUES[scene.name]
        hue = hues[scene.drawn.randint(len(hues))]
        return _with_hue(scene.image, lambda old: np.full_like(old, hue))
    only = np.zeros_like(scene.image)
    channel = CHANNELS[scene.name]
    only[..., channel] = scene.image[..., channel]
    return only


def _rainbow(scene: _Scene) -> Pixels:
    """The image with all hues shifted by one angle; as_coded hues beyond 255 begin at 0 again."""
    shift = scene.drawn.randint(MAX_RAINBOW_SHIFT + 1)
    # the published code adds in uint8, and takes the rest by 180 after that
    largest = UINT8_VALUES if scene.as_coded else 2 * HUE_CIRCLE
    return _with_hue(scene.image, lambda hue: (hue + shift) % largest % HUE_CIRCLE)


def _with_hue(image: Pixels, changed: Callable[[Ints], Ints]) -> Pixels:
    """The image with other hues, in half degrees."""
    hsv = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2HSV), np.uint8)
    hsv[..., 0] = changed(hsv[..., 0].astype(np.int64))
    return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), np.uint8)


def _brightened(scene: _Scene) -> Pixels:
    """Image and blurred image added."""
    blurred = cv2.GaussianBlur(scene.image, (9, 9), sigmaX=4)
    return np.asarray(cv2.addWeighted(scene.image, 1.5, blurred, 0.9, 1.9), np.uint8)


def _random_background(scene: _Scene, photographs: Sequence[Pixels], wanted: Scenarios) -> Pixels:
    """The object on a part of one of the photographs; as_coded resized to a whole one, and added."""
    height, width = scene.image.shape[:2]
    wide, high = (1, 1) if scene.as_coded else (width, height)
    check_photographs({f"photograph {number}": each for number, each in enumerate(photographs, 1)}, wide, high, {})
    photograph = photographs[scene.drawn.randint(len(photographs))]
    if scene.as_coded:
        segmented = object_put_back(scene.image, scene.regions, np.zeros_like(scene.image))
        stretched = cv2.resize(segmented, photograph.shape[1::-1])
        return np.asarray(cv2.add(photograph, np.asarray(stretched)), np.uint8)
    top = scene.drawn.randint(photograph.shape[0] - height + 1)
    left = scene.drawn.randint(photograph.shape[1] - width + 1)
    behind = photograph[top : top + height, left : left + width]
    is_moved = wanted.object_moved
    weight = wanted.object_weight
    shown, where = _placed(scene, wanted.object_scales) if is_moved else (scene.image, ~scene.regions.background)
    if weight < 1:
        shown = np.rint(weight * shown + (1 - weight) * behind).astype(np.uint8)
    return _with(behind, where, shown)


def _placed(scene: _Scene, scales: Sequence[float]) -> tuple[Pixels, Mask]:
    """The object scaled by a factor between two, or to fit into the frame, and moved, on black; and where it is."""
    height, width = scene.image.shape[:2]
    rows, columns = (np.flatnonzero((~scene.regions.background).any(axis=axis)) for axis in (1, 0))
    if not rows.size:
        raise CleansetError("random_background: the object is not in the frame: leave the image out")
    box = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
    wide = box[2] - box[0]
    high = box[3] - box[1]
    smallest, largest = scales
    scale = min(scene.drawn.uniform(smallest, largest), width / wide, height / high)
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
    "blur_background": _blurred,
    "blur_object": _blurred,
    "image_grey": _grey,
    "image_r": _one_color,
    "image_g": _one_color,
    "image_b": _one_color,
    "image_rainbow": _rainbow,
    "image_brightness": _brightened,
    "segmented_image": lambda scene: np.zeros_like(scene.image),
}
"""The pixels of a scenario; only background or object pixels are used."""
