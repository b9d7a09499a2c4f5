"""Draws the tutorial's photographs: eight folders of forty images, some of them with a flaw.

`python sample/tutorial_photos.py` writes src/cleanset/tutorial/data/photos.zip.
"""

import io
import zipfile
from collections.abc import Iterator
from random import Random

from PIL import Image

from archives import write_whole
from draw import ROOT
from drawing.classes import Difficulty
from drawing.flaws import PLANTERS
from drawing.scenes import PHOTO_SIZES, Scene, draw_scene

ARCHIVE = ROOT / "src" / "cleanset" / "tutorial" / "data" / "photos.zip"
FOLDERS = {
    "balloon": "n02782093", "banana": "n07753592", "clock": "n02708093", "goldfish": "n01443537",
    "ladybug": "n02165456", "mushroom": "n07734744", "starfish": "n02317335", "strawberry": "n07745940",
}  # fmt: skip
"""The classes, and the object that is drawn for each."""
IMAGES_PER_FOLDER = 40
_FLAWED = 5
"""Every fifth image has a flaw."""
_DIFFICULTIES: list[Difficulty] = ["easy", "medium", "hard", "hard"]


def photograph(name: str, number: int) -> Image.Image:
    """An image of a class, with a flaw or without."""
    rng = Random(f"eight folders {name} {number}")
    width, height = rng.choice(PHOTO_SIZES)
    scene = Scene(width=width, height=height, shown=(FOLDERS[name],), difficulty=rng.choice(_DIFFICULTIES))
    image, _ = draw_scene(scene, rng, scale=2)
    if number % _FLAWED:
        return image
    _, plant = PLANTERS[rng.choice(sorted(PLANTERS))]
    return plant(image, rng, lambda: draw_scene(scene, rng, scale=2)[0])[0]


def jpeg(image: Image.Image) -> bytes:
    """The JPEG file of an image."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90, subsampling=2, optimize=False)
    return buffer.getvalue()


def draw_folders() -> Iterator[tuple[str, bytes]]:
    """Each photograph's path in the folder, and its file: the same bytes on every machine."""
    for name in FOLDERS:
        for number in range(1, IMAGES_PER_FOLDER + 1):
            yield f"{name}/{number:02d}.jpg", jpeg(photograph(name, number))


def main() -> None:
    """Write the archive that the package has."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in draw_folders():
            # without a time, and uncompressed: a JPEG hardly shrinks
            archive.writestr(zipfile.ZipInfo(name), content)
    write_whole(ARCHIVE, buffer.getvalue())


if __name__ == "__main__":
    main()
