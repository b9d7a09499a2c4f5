"""The images that people are shown, all in one size and format, so that nothing else reveals which are real."""

import io
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from cleanset.errors import CleansetError
from cleanset.exports.folder import read_image, read_regular_file
from cleanset.exports.manifest import Entry
from cleanset.files import sha256
from cleanset.images.codec import decode
from cleanset.progress import tracked
from cleanset.studies.realness.lists import StudyImage, seeded_order
from cleanset.studies.realness.plan import StudyPlan
from cleanset.studies.realness.ratings import ImageKind

ENDINGS = (".jpeg", ".jpg", ".png")
MAX_SIDE = 2048
FORMATS = ("JPEG", "PNG")
TILES = 4
"""Tiles along each side of an obviously modified image."""

Size = tuple[int, int]
_SOURCE = re.compile(r"ILSVRC2012_val_[0-9]{8}")


def shown_image(data: bytes, size: Size) -> Image.Image:
    """The stored pixels of a JPEG or PNG as RGB, its middle cut to the aspect ratio and resized to the size.

    An image of that size is not resampled. Raises ValueError for bytes that are not a whole image.
    """
    image = decode(data, FORMATS).convert("RGB")
    if image.size != size:
        image = ImageOps.fit(image, size, Image.Resampling.LANCZOS)
    # a copy without metadata, which might reveal the source
    return Image.fromarray(np.asarray(image))


def plain_png(image: Image.Image) -> bytes:
    """PNG of an image without compression: all images of one size in pixels have the same number of bytes.

    Noise and other changes compress badly, so that the length of a compressed file tells which images are modified.
    """
    out = io.BytesIO()
    image.save(out, format="PNG", compress_level=0)
    return out.getvalue()


def scramble(image: Image.Image, seed: int) -> Image.Image:
    """An obviously modified copy: cut into tiles, which change places, every other one as a negative."""
    pixels = np.asarray(image).copy()
    height, width = (side // TILES for side in pixels.shape[:2])
    places = [(row * height, column * width) for row in range(TILES) for column in range(TILES)]
    order = seeded_order([str(place) for place in range(len(places))], seed, "tiles")
    original = pixels.copy()
    for place, (target, source) in enumerate(zip(places, (places[int(each)] for each in order), strict=True)):
        tile = original[source[0] : source[0] + height, source[1] : source[1] + width]
        pixels[target[0] : target[0] + height, target[1] : target[1] + width] = (
            255 - tile if sum(divmod(place, TILES)) % 2 else tile
        )
    return Image.fromarray(pixels)


def attacked_images(folder: Path) -> list[str]:
    """The JPEGs and PNGs in a folder, at any depth, by their path in it, sorted; hidden ones are left out."""
    if not folder.is_dir():
        raise CleansetError(f"{folder}: not a folder; expected one with attacked images")
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
    names = sorted(path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts))
    if not names:
        raise CleansetError(f"{folder}: no images; expected attacked images as JPEGs or PNGs")
    return names


def source_of(name: str) -> str:
    """The id of the validation image that an attacked one was made from, by its file's name; "" without one."""
    found = _SOURCE.findall(name)
    return str(found[-1]) if found else ""


def common_size(paths: Mapping[str, Path]) -> Size:
    """The width and height of all images. Raises CleansetError if they differ."""
    sizes = {name: _decoded(path).size for name, path in paths.items()}
    first = next(iter(sizes))
    for name, size in sizes.items():
        if size != sizes[first]:
            found = f"{name} has {size[0]} x {size[1]} pixels, {first} {sizes[first][0]} x {sizes[first][1]}"
            raise CleansetError(f"{found}; expected attacked images of one size: choose one for all with --side")
    if max(sizes[first]) > MAX_SIDE:
        raise CleansetError(
            f"{first}: {sizes[first]} pixels; expected at most {MAX_SIDE} a side: choose one with --side"
        )
    return sizes[first]


def _decoded(path: Path) -> Image.Image:
    try:
        return decode(read_regular_file(path), FORMATS)
    except ValueError as error:
        raise CleansetError(f"{path}: cannot be read ({error}); expected a whole JPEG or PNG") from None


def write_stimuli(
    folder: Path, plan: StudyPlan, size: Size, set_folder: Path, entries: Mapping[str, Entry], attacked: Path
) -> dict[tuple[ImageKind, str], str]:
    """Write all images in the order of their new names; the SHA-256 of the bytes that each was made from."""
    folder.mkdir(parents=True)
    digests = {}

    def read(image: StudyImage) -> bytes:
        if image.kind == "real":
            return read_image(set_folder, entries[image.name])
        return read_regular_file(attacked / image.name)

    def shown(image: StudyImage, data: bytes) -> Image.Image:
        try:
            return shown_image(data, size)
        except ValueError as error:
            name = (set_folder if image.kind == "real" else attacked) / image.name
            raise CleansetError(f"{name}: cannot be read ({error}); expected a whole JPEG or PNG") from None

    # else the times of the files would show which images are real
    order = sorted(plan.images, key=plan.stimulus)
    for image in tracked(order, len(order), "images"):
        data = read(image)
        digests[image.kind, image.name] = sha256(data)
        (folder / f"{plan.stimulus(image)}.png").write_bytes(plain_png(shown(image, data)))
    for pair in plan.pairs:
        plain = shown(pair.image, read(pair.image))
        sides = {"left": pair.left, "right": pair.right}
        for side, file in sides.items():
            content = scramble(plain, plan.seed) if side == pair.modified else plain
            (folder / file).write_bytes(plain_png(content))
    return digests
