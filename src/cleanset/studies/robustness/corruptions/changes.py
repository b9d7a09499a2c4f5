"""The pixels of each corruption of ImageNet-C and ImageNet-C-bar by severity, as by the authors' programs.

They come from a library or are computed here, and their amounts at the severities are next to the computation:

- motion_blur, snow, frost, elastic_transform: `authors`
- zoom_blur, brightness, saturate: `robustness/exact.py`
- those of ImageNet-C-bar: `c_bar`, with the amounts in corruptions.yaml
- all others, such as fog, noise, contrast and jpeg_compression: the library imagecorruptions, which takes a severity
  alone; with other amounts a corruption is a function here, as those of `authors.DRAWN`

Fog and spatter of imagecorruptions-imaug 1.1.5 differ from the authors' by at most 1 in single values; all others, and
those computed here, have the authors' values. A subset of the images remains: no error here is an official number.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import imagecorruptions
import imagecorruptions.corruptions
import numpy as np

from cleanset.errors import CleansetError, raised
from cleanset.evaluation.sets import ImageFile
from cleanset.images.preprocessing import Pixels
from cleanset.plumbing.validation import check_known, is_callable_name
from cleanset.scoring.own_code import imported_callable
from cleanset.statistics.seeds import change_seed, numpy_seeded
from cleanset.studies.robustness.corruptions.authors import DRAWN
from cleanset.studies.robustness.corruptions.c_bar import MADE as C_BAR_MADE
from cleanset.studies.robustness.corruptions.params import (
    CORRUPTION_ENTRIES,
    CORRUPTIONS_3DCC,
    MADE_CORRUPTIONS,
    SEVERITIES,
    CorruptionEntry,
)
from cleanset.studies.robustness.exact import brightness, exact_kernels, keep_compiled, saturate, zoom_blur
from cleanset.studies.robustness.images import base_pixels

# compiled again, it would take seconds in each process
keep_compiled(imagecorruptions.corruptions._shuffle_pixels_njit_glass_blur)

KIND = "corruption"
"""The kind of change, from which seeds are derived."""

MIN_SIDE = 32
"""Pixels; the library takes no smaller image."""

_SEEDED = ("impulse_noise", "glass_blur")
"""Corruptions that draw from a generator of their own, which takes a seed; others draw from numpy's global one."""

_EXACT: dict[str, Callable[[Pixels, int], Pixels]] = {
    "zoom_blur": zoom_blur,
    "brightness": brightness,
    "saturate": saturate,
}


BY_AMOUNT: Mapping[str, Callable[[Pixels, float, np.random.RandomState], Pixels]] = C_BAR_MADE
"""The corruptions with amounts in corruptions.yaml, of image, amount and a generator."""


def functions(name: str) -> list[str]:
    """What makes a corruption: the tables here that have it, or the library."""
    tables: dict[str, Collection[str]] = {"exact": _EXACT, "authors": DRAWN, "amount": BY_AMOUNT}
    found = [table for table, members in tables.items() if name in members]
    return found or ["library"] * (name in imagecorruptions.get_corruption_names("all"))


def check_functions(entries: Mapping[str, CorruptionEntry]) -> None:
    """Raise TypeError unless each corruption that is made here has one function, and amounts if it takes one."""
    for name, entry in entries.items():
        if name in CORRUPTIONS_3DCC:
            continue
        if len(found := functions(name)) != 1:
            raise TypeError(f"{name}: made by {', '.join(found) or 'nothing'}; expected one function")
        if (entry.amounts is not None) != (found == ["amount"]):
            raise TypeError(f"{name}: by {found[0]}, amounts {entry.amounts}; expected amounts with BY_AMOUNT alone")


check_functions(CORRUPTION_ENTRIES)

_ONE_CALL = threading.Lock()
"""Held while the library runs, which draws from numpy's global generator and has its kernels replaced."""


def corrupted_images(
    image: Pixels,
    name: str,
    severities: Iterable[int] = SEVERITIES,
    seed: int = 0,
    *,
    folder: Path | None = None,
) -> list[Pixels]:
    """The image with one corruption at each of the severities, in their order.

    `image` is uint8 of shape (height, width, 3), red first, with sides of at least 32 pixels, and stays unchanged; so
    are the results. `seed` is the image's (`seeds.image_seed`); each severity's draws follow from it, the name and the
    severity alone. `folder`: where the module of a custom corruption is looked for first. Raises CleansetError for an
    unknown corruption, ValueError for a severity other than 1 to 5 and for another array.
    """
    check_image(image)
    if is_callable_name(name):
        function = imported_callable(name, "corruptions", folder)
        return [_custom(image, name, severity, seed, function) for severity in severities]
    check_known("corruption", name, MADE_CORRUPTIONS)
    return [_at_severity(image, name, severity, seed) for severity in severities]


def _custom(image: Pixels, name: str, severity: int, seed: int, function: Callable[..., object]) -> Pixels:
    """The result of a user's function of image, severity and generator. Raises CleansetError for another result."""
    # RandomState, whose numbers numpy never changes
    drawn = np.random.RandomState(change_seed(seed, KIND, name, severity))
    try:
        found = np.asarray(function(image.copy(), severity, drawn))
    except (Exception, SystemExit) as error:  # whatever its code raises
        raise CleansetError(f"{name}: raises {raised(error)} at severity {severity}; expected an image") from None
    if found.dtype != np.uint8 or found.shape != image.shape:
        raise CleansetError(f"{name}: gives {found.dtype} {found.shape}; expected uint8 {image.shape}")
    return np.ascontiguousarray(found)


def check_image(image: Pixels) -> None:
    """Raise ValueError unless the array is an image that can be corrupted."""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or min(image.shape[:2]) < MIN_SIDE:
        raise ValueError(
            f"array of {image.dtype} and shape {image.shape}; "
            f"expected uint8 of shape (height, width, 3) with sides of at least {MIN_SIDE}"
        )


def _at_severity(image: Pixels, name: str, severity: int, seed: int) -> Pixels:
    if severity not in SEVERITIES:
        raise ValueError(f"severity {severity}; expected one of {', '.join(map(str, SEVERITIES))}")
    if name in _EXACT:
        return _EXACT[name](image, severity)
    own = change_seed(seed, KIND, name, severity)
    if name in DRAWN:
        return DRAWN[name](image, severity, np.random.RandomState(own))
    if (amounts := CORRUPTION_ENTRIES[name].amounts) is not None:
        return np.ascontiguousarray(BY_AMOUNT[name](image, amounts[severity - 1], np.random.RandomState(own)))
    options = {"seed": own} if name in _SEEDED else {}
    with _ONE_CALL, numpy_seeded(own), exact_kernels():
        result = imagecorruptions.corrupt(image, severity, name, **options)
    return np.ascontiguousarray(result, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class CustomCorrupted:
    """Corruptions, some of them custom, as a change: a callable that can be pickled."""

    folder: Path
    """Where their modules are looked for first."""

    def __call__(self, file: ImageFile, change: str, step: int, seed: int) -> Pixels:
        """The base image with a corruption; `step` is its severity."""
        (pixels,) = corrupted_images(base_pixels(file), change, [step], seed, folder=self.folder)
        return pixels


def corrupted_image(file: ImageFile, change: str, step: int, seed: int) -> Pixels:
    """The base image with a corruption; `step` is its severity."""
    (pixels,) = corrupted_images(base_pixels(file), change, [step], seed)
    return pixels
