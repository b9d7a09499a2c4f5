"""The exception for problems that a user can fix; any text as one line of bounded length."""

import errno

MAX_LINE = 600
"""Characters of a message: the longest list of known names, two paths and a remedy. Longer ones are cut."""


_FULL = "expected room for it: free some space, or name a folder on another disk"
_UNWRITABLE = "expected a place that can be written: name another folder"
_REMEDIES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _UNWRITABLE,
    errno.EACCES: "expected a file or folder that you may use: change its permissions, or name another",
}


class CleansetError(Exception):
    """A problem that a user can fix.

    The message is one line: the object, what was found, what was expected, what to do. Characters
    that would break the line or hide a part of it are shown escaped, wherever they came from.
    """

    def __str__(self) -> str:
        return cut(one_line(super().__str__()), MAX_LINE)


def one_line(text: str) -> str:
    """The text with every character that is not printable escaped: line breaks, NEL, U+2028, controls, surrogates."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def cut(text: str, length: int) -> str:
    """The text; one of more than `length` characters with its middle left out, and their number behind it."""
    if len(text) <= length:
        return text
    number = f" ({len(text):,} characters)"
    kept = max(length - len(number) - 1, 2)
    return f"{text[: (kept + 1) // 2]}…{text[-(kept // 2) :]}{number}"


def reason(error: BaseException, length: int = 120) -> str:
    """The message of a library's exception on one line, cut to `length`; its type if it has no message."""
    return cut(one_line(" ".join(str(error).split())) or type(error).__name__, length)


def system_error(error: OSError) -> str:
    """The message of an error of the system on one line, with what to do about a full disk or missing permissions."""
    remedy = _REMEDIES.get(error.errno or 0)
    what = one_line(str(error.filename or "writing"))
    return f"{what}: {error.strerror or reason(error)}{f'; {remedy}' if remedy else ''}"
