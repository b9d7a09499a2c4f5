"""What changed images depend on beside images and params: code and libraries."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cleanset.files import sha256
from cleanset.pipelines.modules import reached
from cleanset.studies.robustness.families import FAMILIES

PLUMBING = (
    "cleanset.columns", "cleanset.dataset", "cleanset.edition", "cleanset.errors", "cleanset.exports", "cleanset.files",
    "cleanset.parsing", "cleanset.progress", "cleanset.tables", "cleanset.validation",
)  # fmt: skip
"""Modules and packages that read, check and report, and decide no pixel."""

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


@cache
def changing_modules() -> list[Path]:
    """The source files that turn an image into a changed one, found by following imports."""
    roots = [module for family in FAMILIES for module in family.changing_modules]
    return reached(*roots, stop=PLUMBING)


def changing_code() -> str:
    """A digest of the source files that turn an image into a changed one."""
    return sha256("".join(sha256(path.read_bytes()) for path in changing_modules()).encode())


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
