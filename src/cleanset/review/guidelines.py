"""The rules of the reviews: an edition's own text in `reviews/GUIDELINES.md`, or the usual one."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.plumbing.files import is_there, read_text, write_text
from cleanset.review.reasons import REASON_ENTRIES, ReasonEntry

GUIDELINES = "GUIDELINES.md"
"""The file of the guidelines in the folder of all reviews."""

# size limit of the text, which goes into every set
MAX_GUIDELINES_BYTES = 200_000


def usual_guidelines(reasons: Mapping[str, ReasonEntry] = REASON_ENTRIES) -> str:
    """The text for editions without guidelines of their own: what counts, then the rule of each reason."""
    intro = (files("cleanset.review") / "guidelines.md").read_text("utf-8")
    rules = (f"\n## {name.replace('_', ' ')}\n{entry.rule}\n" for name, entry in reasons.items())
    return intro + "".join(rules)


def own_guidelines(reviews: Path) -> str | None:
    """The text of an edition, or None. Raises CleansetError for a file that is too long or not UTF-8."""
    path = reviews / GUIDELINES
    if not is_there(path):
        return None
    text = read_text(path, "save it as UTF-8", MAX_GUIDELINES_BYTES)
    if not text.strip():
        raise CleansetError(f"{path}: empty; expected the rules of the reviews: write them, or remove the file")
    return text


def check_reviews_folder(reviews: Path) -> None:
    """Raise CleansetError unless the folder of an edition's reviews is there."""
    if not reviews.is_dir():
        raise CleansetError(f"{reviews}: missing; make the folder, empty if nobody has reviewed yet")


def write_guidelines(reviews: Path, reasons: Mapping[str, ReasonEntry] = REASON_ENTRIES) -> Path:
    """Write the usual guidelines, with the rules of these reasons, into an edition, to be edited.

    Raises CleansetError if it has its own.
    """
    path = reviews / GUIDELINES
    if is_there(path):
        raise CleansetError(f"{path}: exists already; edit it, or move it away")
    check_reviews_folder(reviews)
    write_text(path, usual_guidelines(reasons))
    return path
