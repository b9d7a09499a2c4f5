"""The corruptions of hendrycks/robustness, make_imagenet_c.py, beside those of cleanset: every value of every image.

The authors' functions run as they are. Names that today's libraries no longer have stand for what they were, and
ImageMagick's motion blur runs by its program `convert`, which gives the same bytes as their binding, wand.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import scipy.ndimage
import skimage
import skimage.filters
from numpy.typing import NDArray
from PIL import Image
from skimage.util import random_noise

from authors.odd import odd_images
from authors.rows import Row, compared
from cleanset.images.codec import decode
from cleanset.images.preprocessing import base_image
from cleanset.statistics.seeds import change_seed
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from cleanset.studies.robustness.corruptions.params import IMAGENET_C, SEVERITIES

CREATE_C = Path("hendrycks-robustness/ImageNet-C/create_c")
SCRIPT = "make_imagenet_c.py"
MOVES = {
    "fog": "its fractal has float32 here, float64 there: single values",
    "spatter": "its mud has float64 here, float32 there: single values",
}


def rows(programs: Path, photographs: list[Path]) -> Iterator[Row]:
    """Two rows for each corruption, at all severities: of all photographs, and of the odd images."""
    defined = functions(programs)
    groups = {
        f"{len(photographs)} photographs, 5 severities": [
            base_image(decode(path.read_bytes())) for path in photographs
        ],
        "8 odd images, 5 severities": [base_image(image) for image in odd_images().values()],
    }
    for on, images in groups.items():
        for name in IMAGENET_C:
            found = []
            for number, image in enumerate(images):
                for severity, ours in zip(SEVERITIES, corrupted_images(image, name, SEVERITIES, number), strict=True):
                    seed = change_seed(number, "corruption", name, severity)
                    theirs = authors_image(defined, programs, image, name, severity, seed)
                    found.append(compared(name, f"{SCRIPT}:{name}", on, ours, theirs, MOVES.get(name, "")))
            yield total(found)


def total(rows: list[Row]) -> Row:
    """One row of several of one measure."""
    counts = sum(each.values for each in rows), sum(each.differing for each in rows)
    return replace(rows[0], values=counts[0], differing=counts[1], largest=max(each.largest for each in rows))


class WandImage:
    """The part of wand's Image that the authors' programs use."""

    def __init__(self, blob: bytes) -> None:
        self.blob, self.wand = blob, self

    def make_blob(self) -> bytes:
        return self.blob

    def blur(self, radius: float, sigma: float, angle: float) -> None:
        command = ["convert", "png:-", "-motion-blur", f"{radius}x{sigma}{angle:+.17g}", "png:-"]
        self.blob = subprocess.run(command, input=self.blob, capture_output=True, check=True).stdout


@contextmanager
def libraries_of_then() -> Iterator[None]:
    """Let the authors' programs find what they import, and put everything back at the end."""
    gaussian = skimage.filters.gaussian
    library = SimpleNamespace(MagickMotionBlurImage=_blurring())
    names = {
        "wand": ModuleType("wand"),
        "wand.image": SimpleNamespace(Image=WandImage),
        "wand.api": SimpleNamespace(library=library),
        "wand.color": SimpleNamespace(),
        "scipy.ndimage.interpolation": scipy.ndimage,
    }
    names["wand"].color = names["wand.color"]  # type: ignore[attr-defined]
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)  # type: ignore[arg-type]
    np.float_, np.fromstring = np.float64, np.frombuffer  # type: ignore[assignment, attr-defined]

    def with_multichannel(values: NDArray[Any], *arguments: Any, multichannel: bool = False, **options: Any) -> Any:
        options["channel_axis"] = -1 if multichannel else None
        return gaussian(values, *arguments, **options)  # type: ignore[no-untyped-call]

    skimage.filters.gaussian = with_multichannel  # type: ignore[assignment]
    try:
        yield
    finally:
        skimage.filters.gaussian = gaussian
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _blurring() -> Callable[..., None]:
    """A function that takes `argtypes`, as those of ctypes do."""

    def blur(image: WandImage, radius: float, sigma: float, angle: float) -> None:
        image.blur(radius, sigma, angle)

    return blur


def functions(programs: Path) -> dict[str, Any]:
    """The names that the authors' script defines, without what it does with them."""
    text = (programs / CREATE_C / SCRIPT).read_text()
    defined: dict[str, Any] = {"__name__": "make_imagenet_c"}
    with libraries_of_then():
        exec(compile(text[: text.index("def save_distorted")], SCRIPT, "exec"), defined)
    return defined


def authors_image(
    defined: dict[str, Any], programs: Path, image: NDArray[np.uint8], name: str, severity: int, seed: int
) -> NDArray[np.uint8]:
    """The authors' image, uint8 as they stored it, with the draws of a seed; `image` is 224 x 224."""
    before = Path.cwd()
    os.chdir(programs / CREATE_C)  # where the photographs of frost are
    np.random.seed(seed)
    # skimage has drawn from a generator of its own since 0.21
    defined["sk"].util.random_noise = partial(random_noise, rng=seed)
    try:
        found: NDArray[np.uint8] = np.uint8(defined[name](Image.fromarray(image), severity))  # type: ignore[assignment]
    finally:
        defined["sk"].util.random_noise = random_noise
        os.chdir(before)
    return found
