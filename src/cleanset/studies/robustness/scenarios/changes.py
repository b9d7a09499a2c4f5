"""The scenarios of XIMAGENET-12: an image with another background, or with its background or object changed.

The paper's text and its published code differ; `as_written` is the text, with the sizes of filters from the code, and
`as_coded` the code. In every scenario that changes the background, the object keeps its pixels bit for bit unless it
is moved, made translucent or added to a photograph; in blur_object the background does. Pixels that are in neither
region stay as they are, and move with the object.

The file of the set is changed at its own size, as the published code does, and the base image made of the result: a
filter on 224 x 224 pixels would blur more. Only scenarios with a background of 224 x 224 pixels begin with the base
image: generated_background, and random_background as_written.

The scenarios are a change that reads masks, photographs and generated images from files.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from cleanset.dataset.folder import files_below
from cleanset.errors import CleansetError
from cleanset.files import is_there, sha256
from cleanset.images.boxes import Box, box_of
from cleanset.images.codec import decode_file, pixels_sha256
from cleanset.images.preprocessing import BASE_SIZE, Pixels, base_image
from cleanset.sets.folder import read_regular_file
from cleanset.statistics.seeds import change_seed
from cleanset.studies.robustness.images import SetImages, Sources, StudyFile, base_pixels, whole_pixels
from cleanset.studies.robustness.scenarios.masks import (
    Mask,
    Regions,
    base_regions,
    cropped_regions,
    has_scenarios,
    read_regions,
)
from cleanset.studies.robustness.scenarios.params import (
    GENERATED,
    MATTES,
    RANDOM,
    SCENARIOS,
    ScenarioDefinition,
    Scenarios,
)
from cleanset.validation import check_known

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

    `regions`: of this image, of shape (height, width). `seed` is the image's (`seeds.image_seed`).
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


def check_photographs(photographs: Mapping[str, Pixels], width: int, height: int, images: Mapping[str, str]) -> None:
    """Raise CleansetError without photographs, or for one smaller than the frame or among the edition's images.

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
        image_id = images.get(sha256(pixels.tobytes())) if images else None
        if image_id is not None:
            raise CleansetError(
                f"{name}: background is image {image_id} of the edition: remove it, and add another photograph"
            )


def _with(image: Pixels, where: Mask, changed: NDArray[np.uint8]) -> Pixels:
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


def _with_hue(image: Pixels, changed: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Pixels:
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

PHOTOGRAPH_SUFFIXES = (".jpg", ".jpeg", ".png")


def photograph_paths(folder: Path) -> list[Path]:
    """The photographs in a folder and the folders in it, also those that links lead to, sorted by path.

    Hidden files are left out. Nothing is decoded, so that a wrong folder shows at once. Raises CleansetError for a
    folder that is missing or has no photographs, for a link back to a folder above, and for a broken link.
    """
    if not folder.is_dir():
        found = "a file" if folder.exists() else "a link that leads nowhere" if folder.is_symlink() else "missing"
        raise CleansetError(f"{folder}: {found}; expected a folder of photographs for random_background")
    files = (folder / name for name in files_below(folder, ".", 1) if name.lower().endswith(PHOTOGRAPH_SUFFIXES))
    paths = sorted(path for path in files if is_there(path))
    if not paths:
        raise CleansetError(f"{folder}: no photographs; expected at least one JPEG or PNG for random_background")
    return paths


class StoredFile(NamedTuple):
    """A file that is there when the study begins, and its SHA-256."""

    path: Path
    sha256: str

    def read(self) -> bytes:
        """Its bytes. Raises CleansetError if they have changed."""
        data = read_regular_file(self.path)
        if sha256(data) != self.sha256:
            raise CleansetError(f"{self.path}: changed while it was used; expected the same bytes: run again")
        return data


class SceneMask(NamedTuple):
    """The mask of an image: its file and format, and the class and crop of the image."""

    file: StoredFile
    format: str
    wnid: str
    crop: Box | None


@dataclass(frozen=True, slots=True)
class SceneImage:
    """The scenarios; `masks` and `generated` by the image's path, `photographs` in the order that they are drawn in."""

    masks: Mapping[Path, SceneMask]
    photographs: tuple[StoredFile, ...] = ()
    generated: Mapping[Path, StoredFile] | None = None
    wanted: Scenarios = AS_WRITTEN

    def __call__(self, file: StudyFile, change: str, step: int, seed: int) -> Pixels:
        """The base image in a scenario, which has no steps. Raises CleansetError as `scenario_image` does."""
        found = self.before_resizing(file, change, seed)
        return found if self._is_of_base_image(change) else base_image(Image.fromarray(found))

    def before_resizing(self, file: StudyFile, change: str, seed: int) -> Pixels:
        """The image in a scenario before it is resized and cropped; 224 x 224 pixels if made of the base image."""
        mask = self.masks[file.path]
        is_base = self._is_of_base_image(change)
        generated = (self.generated or {}).get(file.path)
        return scenario_image(
            base_pixels(file) if is_base else whole_pixels(file),
            regions_of_mask(mask) if is_base else whole_regions(mask),
            change,
            seed,
            wanted=self.wanted,
            photographs=_photographs(self.photographs) if change == RANDOM else (),
            generated=decode_photograph(generated) if generated and change == GENERATED else None,
        )

    def _is_of_base_image(self, change: str) -> bool:
        """Whether the background is of the base image's size."""
        return change == GENERATED or (change == RANDOM and self.wanted.definition == "as_written")


@lru_cache(maxsize=1)
def whole_regions(mask: SceneMask) -> Regions:
    """The regions of an image, cropped as it is. Raises CleansetError as `read_regions` does."""
    whole = read_regions(mask.file.read(), mask.format, mask.wnid, str(mask.file.path))
    return cropped_regions(whole, mask.crop)


def regions_of_mask(mask: SceneMask) -> Regions:
    """The regions of a base image. Raises CleansetError as `whole_regions` does."""
    return base_regions(whole_regions(mask))


@lru_cache(maxsize=1)
def _photographs(files: tuple[StoredFile, ...]) -> tuple[Pixels, ...]:
    return tuple(decode_photograph(file) for file in files)


def decode_photograph(file: StoredFile) -> Pixels:
    """The pixels of a photograph, uint8 of shape (height, width, 3). Raises CleansetError for no JPEG or PNG."""
    return np.asarray(decode_file(file.read(), file.path, "a whole JPEG or PNG: remove it").convert("RGB"))


def photograph_files(
    folder: Path, read: Callable[[str], Image.Image], images: Mapping[str, str], indexed: Mapping[str, str]
) -> tuple[StoredFile, ...]:
    """The photographs in a folder and the folders in it, sorted by path.

    `images` are the image ids of the study by file, which `read` decodes, `indexed` the edition's image ids by
    the SHA-256 of their pixels. Raises CleansetError as `photograph_paths`, for one that cannot be read or is
    smaller than a base image, and for one with the pixels of one of these images.
    """
    found = tuple(map(_stored, photograph_paths(folder)))
    known = {**indexed, **{pixels_sha256(read(file)): image_id for file, image_id in images.items()}}
    check_photographs({str(each.path): decode_photograph(each) for each in found}, BASE_SIZE, BASE_SIZE, known)
    return found


def generated_files(folder: Path, image_ids: Iterable[str]) -> dict[str, StoredFile]:
    """The generated images, PNG of 224 x 224 pixels, by image id.

    Raises CleansetError for one that is missing or of another size.
    """
    found = {}
    for image_id in image_ids:
        path = folder / f"{image_id}.png"
        if not path.is_file():
            raise CleansetError(
                f"{path}: missing; expected an image with a generated background for each image with a mask: "
                "run cleanset robustness generate, or take generated_background out of scenarios.names"
            )
        found[image_id] = _stored(path)
        height, width = decode_photograph(found[image_id]).shape[:2]
        if (width, height) != (BASE_SIZE, BASE_SIZE):
            raise CleansetError(f"{path}: {width} x {height} pixels; expected {BASE_SIZE} x {BASE_SIZE}")
    return found


def _stored(path: Path) -> StoredFile:
    return StoredFile(path, sha256(read_regular_file(path)))


def scene_images(sources: Sources, wanted: Scenarios) -> SceneImage:
    """The scenarios of the images that have a mask; photographs are compared with all images, also of the index."""
    images = has_scenarios(sources.images, sources.masks)
    study = sources.study
    photographs: tuple[StoredFile, ...] = ()
    if RANDOM in wanted.names:
        ids = {file: each.image_id for file, each in sources.files.items()}
        # the index only refuses a photograph: nothing that is written depends on it
        photographs = photograph_files(study.backgrounds, SetImages(sources.files), ids, sources.indexed_images())
    generated: dict[Path, StoredFile] = {}
    if GENERATED in wanted.names:
        files = sources.files_in(images).values()
        by_id = generated_files(study.generated, [each.image_id for each in files])
        generated = {each.path: by_id[each.image_id] for each in files}
    return SceneImage(masks_of(sources, images), photographs, generated, wanted)


def masks_of(sources: Sources, images: pd.DataFrame) -> dict[Path, SceneMask]:
    """The mask of each image, by the image's path; `images` are rows of `has_scenarios`."""
    keys = sources.classes.keys
    found = {}
    columns = (images[name] for name in ("file", "mask", "mask_sha256", "mask_format", "class_index", "crop"))
    for file, mask, digest, mask_format, class_index, crop in zip(*columns, strict=True):
        stored = StoredFile(sources.study.masks / mask, digest)
        found[sources.files[file].path] = SceneMask(stored, mask_format, keys[class_index], box_of(crop))
    return found


def settings_of(wanted: Scenarios, scenes: SceneImage) -> dict[str, Any]:
    """Everything that the changed pixels depend on, for the record: the params and a digest of all files."""
    used = [each.file for each in scenes.masks.values()] + list(scenes.photographs)
    used += list((scenes.generated or {}).values())
    # names without folders: the record must not depend on the machine
    digests = "\n".join(f"{each.path.name} {each.sha256}" for each in used)
    params = wanted.model_dump(exclude={"published", "names"})
    return {**params, "files_sha256": sha256(digests.encode())}
