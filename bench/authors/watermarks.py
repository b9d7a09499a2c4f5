"""The watermark as ImageNet-W's program draws it, on the photographs and odd images.

The program gets what it asks for: a tensor of a short side of 256 pixels, cropped to 224 x 224 by torchvision.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torchvision import transforms

from authors.odd import odd_images
from authors.rows import Row, compared
from cleanset.images.preprocessing import base_image
from cleanset.studies.robustness.watermarks.changes import FontFile, watermarked
from cleanset.studies.robustness.watermarks.params import AUTHORS_FONT_SHA256

PROGRAM = "imagenet-w-1.0.0"
FONT = "imagenet_w/fonts/SourceHanSerifSC-ExtraLight.otf"
SIDE = 224


def rows(programs: Path, photographs: list[Path]) -> Iterator[Row]:
    """The watermark with the authors' font and in strokes, on photographs and on odd images, a row each."""
    sys.path.insert(0, str(programs / PROGRAM))
    from imagenet_w import AddWatermark  # type: ignore[import-not-found]

    program = transforms.Compose(
        [transforms.Resize(256), transforms.CenterCrop(SIDE), transforms.ToTensor(), AddWatermark(SIDE)]
    )
    font = FontFile(programs / PROGRAM / FONT, AUTHORS_FONT_SHA256)
    sets = {
        f"{len(photographs)} photographs": [Image.open(path).convert("RGB") for path in photographs],
        "8 odd images": list(odd_images().values()),
    }
    for on, images in sets.items():
        theirs = np.stack([_pixels(program(image)) for image in images])
        base = [base_image(image) for image in images]
        for name, own in (("in the authors' font", font), ("in strokes", None)):
            ours = np.stack([watermarked(each, own) for each in base])
            differing = np.abs(ours.astype(np.int64) - theirs)[ours != theirs]
            mean = f"{differing.mean():.2f} of 255 where they differ" if differing.size else ""
            yield compared(f"watermark, {name}", "imagenet-w 1.0.0", on, ours, theirs, mean)


def _pixels(tensor: Tensor) -> NDArray[np.uint8]:
    """A tensor of 0 to 1 as uint8 of shape (224, 224, 3)."""
    return np.asarray((255 * tensor).round().byte().permute(1, 2, 0))
