"""Small training images with masks: a bright square or disc on a plain background, a folder for each wnid."""

from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from cleanset.classes import imagenet
from cleanset.images.preprocessing import Pixels
from cleanset.plumbing.files import sha256
from cleanset.studies.training.segmentation.examples import ExampleReader, SegmentedFile

WNIDS = ("n01443537", "n02165456")
CLASSES = tuple(imagenet().indices[wnid] for wnid in WNIDS)
READ = ExampleReader("png", CLASSES, CLASSES)

Shape = Literal["square", "disc"]


def draw(shape: Shape, number: int, height: int = 48, width: int = 64) -> tuple[Pixels, Pixels]:
    """An image and its mask, 0 and 255; the number moves the object."""
    rows, columns = np.mgrid[:height, :width]
    middle = (height // 2 + number % 5 - 2, width // 2 + 3 * (number % 4) - 4)
    away = (abs(rows - middle[0]), abs(columns - middle[1]))
    inside = np.maximum(*away) < 12 if shape == "square" else away[0] ** 2 + away[1] ** 2 < 150
    color = (210, 60, 50) if shape == "square" else (60, 90, 220)
    image = np.where(inside[..., np.newaxis], color, (90, 140 + number % 7, 80)).astype(np.uint8)
    return image, np.where(inside, np.uint8(255), np.uint8(0))


def write_examples(folder: Path, per_class: int) -> list[SegmentedFile]:
    """Write `per_class` images of both classes below images, their masks below masks, as PNG."""
    found = []
    shapes: tuple[Shape, Shape] = ("square", "disc")
    for shape, wnid in zip(shapes, WNIDS, strict=True):
        for number in range(per_class):
            image, mask = draw(shape, number)
            file = f"{wnid}/{number}.png"
            for name, pixels in (("images", image), ("masks", mask)):
                (folder / name / wnid).mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(folder / name / file)
            found.append(file_of(folder, wnid, file))
    return found


def file_of(folder: Path, wnid: str, file: str) -> SegmentedFile:
    """The image of a file below `folder`/images, with the SHA-256 that its files have now."""
    image, mask = folder / "images" / file, folder / "masks" / file
    return SegmentedFile(
        folder=folder / "images",
        file=file,
        sha256=sha256(image.read_bytes()),
        class_index=imagenet().indices[wnid],
        class_key=wnid,
        mask=mask,
        mask_sha256=sha256(mask.read_bytes()),
    )
