"""Dependencies of scores besides images and weights: code, libraries and, below float64, the settings."""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from cleanset.edition.versions import COMPUTING
from cleanset.images import codec, preprocessing
from cleanset.scoring import checkpoints, decoding, logits, models, scorer
from cleanset.scoring.engine import Settings
from cleanset.scoring.shards import source_code

MODULES = (codec, preprocessing, decoding, models, checkpoints, scorer, logits)
"""The modules that turn an image into scores. Records of scores hold a digest of their files in this order."""


def scoring_code() -> str:
    """A digest of the source files of MODULES."""
    return source_code(MODULES)


def library_versions() -> dict[str, str]:
    """The versions of the libraries that compute scores, without their local part: 2.11.0 for 2.11.0+cpu.

    RobustBench is left out where it is not installed: only its own models need it.
    """
    versions = {}
    for name in COMPUTING:
        with suppress(PackageNotFoundError):
            versions[name] = version(name).partition("+")[0]
    return versions


def below_float64(settings: Settings) -> str:
    """Batch size and device for a precision below float64, where results depend on them; empty for float64."""
    return "" if settings.precision == "float64" else f"{settings.batch_size} on {settings.devices[0].type}"
