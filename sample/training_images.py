"""Draws training images of the sample's classes with true masks, from seeds that its edition does not use.

`python training_images.py --per-class 100` draws them to studies/training/drawn, unless they are there.
"""

import argparse
import io
import json
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from PIL import Image
from rich.progress import track

from archives import write_whole
from draw import ROOT
from masks import mask_png
from objects import DRAWERS
from scenes import Difficulty, Scene, draw_masked

OUT = ROOT / "studies" / "training" / "drawn"
SEED = "training images 1"
DIFFICULTIES: list[Difficulty] = ["easy", "medium", "medium", "hard"]
SIZES = [(256, 192), (192, 256), (240, 200), (208, 208)]
LIST = "drawn.json"
"""What was drawn; written last."""


def training_image(number: int) -> tuple[str, Image.Image, Image.Image]:
    """The wnid, the image and the mask of a number."""
    # the edition's seeds are whole numbers, and those of its models' training images begin with another word
    rng = Random(f"{SEED} {number}")
    wnid = list(DRAWERS)[number % len(DRAWERS)]
    width, height = rng.choice(SIZES)
    image, _, mask = draw_masked(Scene(width, height, (wnid,), rng.choice(DIFFICULTIES)), rng, scale=2)
    return wnid, image, mask


def files_of(number: int) -> tuple[str, bytes, bytes]:
    """The path without suffix, JPEG and mask of a number."""
    wnid, image, mask = training_image(number)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90, subsampling=2, optimize=False)
    return f"{wnid}/{wnid}_{number // len(DRAWERS):05d}", buffer.getvalue(), mask_png(mask)


def draw_all(out: Path, per_class: int) -> None:
    """Write `per_class` images of each class to images, and their masks to masks; nothing if they are there."""
    drawn = json.dumps({"seed": SEED, "per_class": per_class}) + "\n"
    if (out / LIST).is_file() and (out / LIST).read_text() == drawn:
        return
    shutil.rmtree(out, ignore_errors=True)
    count = per_class * len(DRAWERS)
    with ProcessPoolExecutor() as pool:
        drawn_files = pool.map(files_of, range(count), chunksize=16)
        for name, image, mask in track(drawn_files, "drawing", count, disable=not sys.stderr.isatty()):
            write_whole(out / "images" / f"{name}.jpg", image)
            write_whole(out / "masks" / f"{name}.png", mask)
    write_whole(out / LIST, drawn.encode())


def main() -> None:
    """Draw the training images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-class", type=int, default=100)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    draw_all(options.out, options.per_class)


if __name__ == "__main__":
    main()
