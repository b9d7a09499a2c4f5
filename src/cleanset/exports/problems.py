"""What can be wrong with a finished set."""

import re
from dataclasses import dataclass

from cleanset.errors import cut, one_line

_SHA256 = re.compile(r"[0-9a-f]{64}")

MAX_SHOWN_CHARACTERS = 100
"""Of a value in a message; a damaged file may hold one of any length."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of kind `what` in `file`; `found` and `expected` are SHA-256 or a few words.

    Kinds: manifest (a line is invalid, or contradicts another), twice (the bytes or pixels of one image in two
    places), missing, surplus, misplaced (in another folder), changed (other bytes, other pixels), reencoded (other
    bytes, the same pixels), undecodable, pixels (the bytes of the manifest, but other pixels), unlike (a file that is
    made from the manifest has other content), source (another original), signature (none, or one that does not hold).
    `line` is the line of the manifest.
    """

    what: str
    file: str
    found: str
    expected: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.what:<11}  {printable(self.file)}: {_short(self.found)}; expected {_short(self.expected)}"


def printable(text: str) -> str:
    """The text on one line, cut in the middle where it is long."""
    return cut(one_line(text), MAX_SHOWN_CHARACTERS)


def _short(text: str) -> str:
    """A SHA-256 by its first digits, anything else as it prints."""
    return f"{text[:12]}..." if _SHA256.fullmatch(text) else printable(text)
