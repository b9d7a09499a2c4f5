"""The libraries that changed images depend on."""

from cleanset.scoring.validity import library_versions

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


def installed_versions() -> dict[str, str]:
    """The versions of LIBRARIES here."""
    return {
        library: next(iter(library_versions(names).values()), "not installed") for library, names in LIBRARIES.items()
    }
