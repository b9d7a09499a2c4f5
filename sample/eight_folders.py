"""Draws the tutorial's photographs: eight folders of forty images, some of them with a flaw.

`python eight_folders.py photos` draws the same bytes into a new folder on every machine.
"""

import sys
from pathlib import Path
from random import Random

from PIL import Image

from archives import write_whole
from flaws import PLANTERS
from scenes import Difficulty, Scene, draw_scene
from training_images import SIZES, jpeg

FOLDERS = {
    "balloon": "n02782093", "banana": "n07753592", "clock": "n02708093", "goldfish": "n01443537",
    "ladybug": "n02165456", "mushroom": "n07734744", "starfish": "n02317335", "strawberry": "n07745940",
}  # fmt: skip
"""The classes, and what the sample draws for each."""
EACH = 40
FLAWED = 5
"""Every fifth image has a flaw."""
DIFFICULTIES: list[Difficulty] = ["easy", "medium", "hard", "hard"]


def drawn(name: str, number: int) -> Image.Image:
    """An image of a class, with a flaw or without."""
    rng = Random(f"eight folders {name} {number}")
    scene = Scene(*rng.choice(SIZES), (FOLDERS[name],), rng.choice(DIFFICULTIES))
    image, _ = draw_scene(scene, rng, scale=2)
    if number % FLAWED:
        return image
    _, plant = PLANTERS[rng.choice(sorted(PLANTERS))]
    return plant(image, rng, lambda: draw_scene(scene, rng, scale=2)[0])[0]


def main() -> None:
    """Draw them into the folder that is given."""
    for name in FOLDERS:
        for number in range(1, EACH + 1):
            write_whole(Path(sys.argv[1]) / name / f"{number:02d}.jpg", jpeg(drawn(name, number)))


if __name__ == "__main__":
    main()
