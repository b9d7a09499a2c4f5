"""The code and the libraries that changed images depend on."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from cleanset.edition.pipelines.modules import Definition, path_of, reached
from cleanset.files import sha256
from cleanset.studies.robustness.families import FAMILIES

PLUMBING = (
    "cleanset.dataset", "cleanset.edition", "cleanset.errors", "cleanset.sets", "cleanset.files",
    "cleanset.parsing", "cleanset.progress", "cleanset.tables", "cleanset.validation",
)  # fmt: skip
"""Modules and packages that read, check and report, and decide no pixel."""

CALLER = "cleanset.studies.robustness.changed_images"
"""Calls what makes a changed image, and stores it as a JPEG."""

LIBRARIES = {
    "imagecorruptions-imaug": ("imagecorruptions-imaug",),
    "numba": ("numba",),
    "numpy": ("numpy",),
    # one library, with and without windows
    "opencv": ("opencv-python-headless", "opencv-python"),
    "pillow": ("pillow",),
    "scikit-image": ("scikit-image",),
    "scipy": ("scipy",),
}
"""The libraries that make the pixels, and under which names each is installed."""


@cache
def changing_modules() -> tuple[str, ...]:
    """The modules that turn an image into a changed one: those that families name, and what these use."""
    roots = {CALLER, *(module for family in FAMILIES for module in family.changing_modules)}
    return tuple(reached(map(Definition, sorted(roots)), PLUMBING))


def changing_code() -> str:
    """A digest of the source files that turn an image into a changed one."""
    return sha256("".join(sha256(path_of(module).read_bytes()) for module in changing_modules()).encode())


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
