"""The tutorial's photographs: eight folders of forty drawn images, some of them with a flaw."""

import io
from pathlib import Path
from random import Random

from PIL import Image

from cleanset.drawing.flaws import PLANTERS
from cleanset.drawing.scenes import Difficulty, Scene, draw_scene

FOLDERS = {
    "balloon": "n02782093", "banana": "n07753592", "clock": "n02708093", "goldfish": "n01443537",
    "ladybug": "n02165456", "mushroom": "n07734744", "starfish": "n02317335", "strawberry": "n07745940",
}  # fmt: skip
"""The classes, and the object that is drawn for each."""
IMAGES_PER_FOLDER = 40
PHOTO_SIZES = [(256, 192), (192, 256), (240, 200), (208, 208)]
"""Width and height in pixels."""
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


def draw_folders(folder: Path) -> None:
    """Draw the photographs into a folder: the same bytes on every machine."""
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
        for number in range(1, IMAGES_PER_FOLDER + 1):
            (folder / name / f"{number:02d}.jpg").write_bytes(jpeg(photograph(name, number)))
