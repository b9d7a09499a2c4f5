"""A cache on disk of the text in images.

Reading the text of an image takes 0.15 to 0.65 s, and gives the same lines each time.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from cleanset.cache import cache_folder
from cleanset.edition.versions import installed_version
from cleanset.errors import CleansetError
from cleanset.review.hints.kept_files import KeptFiles
from cleanset.review.hints.text import TextLine, can_read_text

VERSION = 2
"""Raise it when `lines_of_text` reads or returns something else."""

_LINES = TypeAdapter(tuple[TextLine, ...])


class TextCache:
    """Lines of text by the SHA-256 of an image's bytes, a JSON file each.

    Several processes may use one folder at a time. A file that is damaged or cannot be read counts as missing, and one
    that cannot be written is left out: then the text is read again.
    """

    def __init__(self, folder: Path) -> None:
        self._files = KeptFiles(folder)

    def lines(self, digest: str) -> tuple[TextLine, ...] | None:
        """The lines of the image with this SHA-256; None if they are not kept."""
        with suppress(OSError, CleansetError, ValidationError):
            return _LINES.validate_json(self._files.read(digest), strict=False)
        return None

    def keep(self, digest: str, lines: Sequence[TextLine]) -> None:
        """Keep the lines of the image with this SHA-256, if the disk allows it."""
        self._files.keep(digest, _LINES.dump_json(tuple(lines)))


def usual_text_cache() -> TextCache | None:
    """The cache that all editions on this machine share; None without the extra `text`, or without a home.

    Its folder is named after the versions of RapidOCR, whose package holds the models, and of what computes them.
    """
    if not can_read_text():
        return None
    libraries = "-".join(f"{name}-{installed_version(name)}" for name in ("rapidocr", "onnxruntime"))
    try:
        return TextCache(cache_folder() / "hints" / f"text-{VERSION}-{libraries}")
    except CleansetError:
        return None
