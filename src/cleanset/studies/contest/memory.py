"""What this machine has seen of contests: the last line of each log, in a file outside the contest's folder.

A log is the only witness of itself. Whoever may write into its folder can put an older one there, or another one that
begins in the same way; who has seen a line that is missing in it knows.
"""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from cleanset.errors import CleansetError
from cleanset.plumbing.cache import state_folder
from cleanset.plumbing.files import read_bytes, write_text
from cleanset.plumbing.validation import Section, Sha256


class SeenLine(Section):
    """The last line of a log that was seen."""

    n: Annotated[int, Field(ge=0)]
    digest: Sha256


def seen_file(contest: str) -> Path | None:
    """The file of a contest, by the digest of its first line; None for a user without a home folder."""
    folder = state_folder()
    return None if folder is None else folder / "contests" / f"{contest}.json"


def last_seen(contest: str) -> SeenLine | None:
    """The last line that was seen of a contest; None if there is none, or its file cannot be read."""
    path = seen_file(contest)
    if path is not None:
        with suppress(ValidationError, OSError, CleansetError):
            return SeenLine.model_validate_json(read_bytes(path))
    return None


def remember(contest: str, n: int, digest: str) -> None:
    """Keep the last line of a contest; nothing is kept where no file can be written."""
    path = seen_file(contest)
    if path is not None:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, SeenLine(n=n, digest=digest).model_dump_json() + "\n")


def forget(contest: str) -> None:
    """Forget what was seen of a contest."""
    path = seen_file(contest)
    if path is not None:
        path.unlink(missing_ok=True)
