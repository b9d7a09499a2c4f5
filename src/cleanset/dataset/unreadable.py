"""Images that cannot be read: one message by kinds of problems, and a table where it cannot name all."""

import re
from collections.abc import Mapping
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import write_csv
from cleanset.plumbing.validation import first_names

UNREADABLE_IMAGES = "unreadable_images.csv"
"""The name of the table."""
SHOWN_OF_A_KIND = 3
"""Images that a message names for each kind of problem."""
MAX_KINDS = 8
"""Kinds of problems that a message names."""
_NUMBERS = re.compile(r" ?\([^()]*[0-9][^()]*\)|[0-9][0-9,.]*")
"""Parts of a problem that differ from image to image, such as a number of bytes."""


def refuse_unreadable(problems: Mapping[str, str], where: str, formats: tuple[str, ...], table: Path | None) -> None:
    """Raise CleansetError, naming `where`, if there are problems: the first images of each kind; all are in `table`.

    `problems`: by image id; `formats`: those that are read. The table is written where the message cannot name all;
    one of before is removed.
    """
    _write_table(problems, table)
    if problems:
        is_jpeg = formats == ("JPEG",)
        wanted = "JPEGs" if is_jpeg else "JPEGs or PNGs of 8 bits, RGB or grey"
        remedy = "fetch" if is_jpeg else "convert or remove"
        where_all = f"; all are in {table}" if table is not None and len(problems) > SHOWN_OF_A_KIND else ""
        raise CleansetError(
            f"{where}: {len(problems):,} cannot be read: {by_kind(problems)}; expected whole {wanted}: {remedy} "
            f"them{where_all}"
        )


def by_kind(problems: Mapping[str, str]) -> str:
    """Problems by kind, each with the first images that have it; `problems`: by image id."""
    kinds: dict[str, list[str]] = {}
    for name, problem in problems.items():
        kinds.setdefault(_NUMBERS.sub("", problem.partition("; expected")[0]).strip(), []).append(name)
    parts = []
    for kind, names in kinds.items():
        count = f"{len(names):,} " if len(names) > SHOWN_OF_A_KIND else ""
        # one image has its own numbers
        words = problems[names[0]].partition("; expected")[0] if len(names) == 1 else kind
        parts.append(f"{count}{first_names(names, SHOWN_OF_A_KIND)} ({words})")
    return first_names(parts, MAX_KINDS)


def _write_table(problems: Mapping[str, str], path: Path | None) -> None:
    if path is None:
        return
    if len(problems) > SHOWN_OF_A_KIND:
        write_csv(path, ("image_id", "problem"), sorted(problems.items()))
    else:
        path.unlink(missing_ok=True)
