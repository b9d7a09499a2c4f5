"""The guidelines by which people review: `reviews/GUIDELINES.md` of an edition, or the usual ones."""

from importlib.resources import files
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.files import is_there, read_text, write_text
from cleanset.review.store import GUIDELINES

MAX_BYTES = 200_000
"""Size limit of the text, which goes into every set."""


def usual_guidelines() -> str:
    """The text for editions that have none of their own."""
    return (files("cleanset.review") / "guidelines.md").read_text("utf-8")


def own_guidelines(reviews: Path) -> str | None:
    """The text of an edition; None if it has none. Raises CleansetError for a file that is too long or not UTF-8."""
    path = reviews / GUIDELINES
    if not is_there(path):
        return None
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise CleansetError(f"{path}: {size:,} bytes; expected at most {MAX_BYTES:,}: shorten it")
    text = read_text(path, "save it as UTF-8")
    if not text.strip():
        raise CleansetError(f"{path}: empty; expected the rules of the reviews: write them, or remove the file")
    return text


def write_guidelines(reviews: Path) -> Path:
    """Write the usual guidelines into an edition, to be edited. Raises CleansetError if it has its own."""
    path = reviews / GUIDELINES
    if is_there(path):
        raise CleansetError(f"{path}: there already; expected no such file: edit it, or move it away")
    if not reviews.is_dir():
        raise CleansetError(f"{reviews}: missing; make the folder, empty if nobody has reviewed yet")
    write_text(path, usual_guidelines())
    return path
