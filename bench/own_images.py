"""Stage preprocess for 50,000 images of 200 classes: as own images, against ImageNet's reader on the same folder.

Beside it the command that makes the edition of own images, which reads every image for its digest.
"""

import io
import os
from pathlib import Path

import numpy as np
from PIL import Image

from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import image_id
from measuring import PROJECT, Run, cleanset, figures, print_machine, print_table, scratch, share

IMAGES, CLASSES = 50_000, 200
DISTINCT = 500
"""Images that are drawn; the others are links to them. They are small, so that reading counts most."""
SIDE = 64
ROUNDS = 3
LIMIT = 1.2
PARAMS = """\
root: {root}
dataset: {{devkit: null, expect_images: {images}, images: ../images, label: real, classes: all}}
models: {{standard: {{source: timm, name: resnet50.a1_in1k}}}}
review: {{wrong_after_crop: accept}}
count: {{accuracy: false}}
"""


def main() -> None:
    with scratch() as folder:
        draw_images(folder / "images")
        write_edition(folder / "imagenet")
        new = ("edition", "--images", "images")
        made = [cleanset(*new, f"own{number}", edition=folder) for number in range(ROUNDS)]
        theirs_and_ours: tuple[list[Run], list[Run]] = ([], [])
        for _ in range(ROUNDS):
            for name, measured in zip(("imagenet", "own0"), theirs_and_ours, strict=True):
                measured.append(cleanset("preprocess", edition=folder / name))
    print_machine()
    theirs, ours = map(figures, theirs_and_ours)
    names = {"preprocess, ImageNet's reader": theirs, "preprocess, own images": ours, "edition": figures(made)}
    rows = [(name, *(f"{figure:,.1f}" for figure in found)) for name, found in names.items()]
    rows.append(("own / ImageNet's", *(f"{b / a:.2f}" for a, b in zip(theirs, ours, strict=True))))
    rows.append((f"of the limit {LIMIT}", *(share(b / a, LIMIT) for a, b in zip(theirs, ours, strict=True))))
    print_table(
        f"cleanset preprocess, {IMAGES:,} images of {CLASSES} classes, median of {ROUNDS}",
        ("command", "seconds", "processor seconds", "MiB"),
        rows,
    )


def draw_images(folder: Path) -> None:
    """A folder per class, with ImageNet's names, which both readers take."""
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(DISTINCT):
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)).save(file, "JPEG")
        drawn.append(file.getvalue())
    for key in imagenet().keys[:CLASSES]:
        (folder / key).mkdir(parents=True)
    first: dict[int, Path] = {}
    for number in range(1, IMAGES + 1):
        # equal images are in one class
        path = folder / imagenet().keys[number % DISTINCT % CLASSES] / f"{image_id(number)}.JPEG"
        if number % DISTINCT in first:
            os.link(first[number % DISTINCT], path)
        else:
            path.write_bytes(drawn[number % DISTINCT])
            first[number % DISTINCT] = path


def write_edition(folder: Path) -> None:
    """An edition of the images as ImageNet's, with just what stage preprocess reads."""
    (folder / "data").mkdir(parents=True)
    (folder / "params.yaml").write_text(PARAMS.format(root=PROJECT, images=IMAGES))
    (folder / "raw.md5").write_text("")


if __name__ == "__main__":
    main()
