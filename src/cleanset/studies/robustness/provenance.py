"""What changed images depend on beside images and params: code and libraries."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from cleanset.images import (
    base,
    boxes,
    codec,
    jpeg,
    preprocessing,
)
from cleanset.scoring.shards import source_code
from cleanset.statistics import seeds
from cleanset.studies.robustness import (
    changed_images,
    changes,
    corruptions,
    exact,
    frost,
    geometry,
    image_masks,
    imagenet_s,
    kernels,
    mask_formats,
    masks,
    names,
    perturbations,
    published_images,
    scenarios,
)

CHANGING = (
    base, boxes, changed_images, changes, codec, corruptions, exact, frost, geometry, image_masks, imagenet_s, jpeg,
    kernels, mask_formats, masks, names, perturbations, preprocessing, published_images, scenarios, seeds,
)  # fmt: skip
"""The modules that decide a changed image's pixels."""

LIBRARIES = {
    "imagecorruptions-imaug": ("imagecorruptions-imaug",),
    "numba": ("numba",),
    "numpy": ("numpy",),
    "opencv": ("opencv-python-headless", "opencv-python"),  # one library, with and without windows
    "pillow": ("pillow",),
    "scikit-image": ("scikit-image",),
    "scipy": ("scipy",),
}
"""The libraries that make the pixels, and under which names each is installed."""


def changing_code() -> str:
    """A digest of the source files that turn an image into a changed one."""
    return source_code(CHANGING)


def installed_versions() -> dict[str, str]:
    """The versions of LIBRARIES here."""
    return {library: _version(names) for library, names in LIBRARIES.items()}


def _version(names: Sequence[str]) -> str:
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "not installed"
