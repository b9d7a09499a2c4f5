"""`CleansetError` and its kinds, of what a user can fix; the lines of a file of a newer version, of a missing extra."""

import errno
import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict
from urllib.parse import unquote, urlsplit

MAX_LINE = 600
"""Characters of a message: the longest list of known names, two paths and a remedy. Longer ones are cut."""


_ROOM = "expected room for it: free some space, or name a folder on another disk"
_NO_LOCKS = "expected a file system with locks: name a folder on another disk, or mount this one with locks"
_UNWRITABLE = "expected a writable folder: choose another one"
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _ROOM),
    **dict.fromkeys((errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP), _NO_LOCKS),
    errno.EIO: "expected a disk without faults: copy the readable files to another one",
    errno.EROFS: _UNWRITABLE,
    errno.ENOENT: "expected an existing file or folder: restore it, or choose another",
    errno.EACCES: "expected a file or folder that you may use: change its permissions, or name another",
}


class CleansetError(Exception):
    """A problem that a user can fix.

    The message is one line: the object, the value found, the expected value, the remedy. Characters
    that would break the line or hide a part of it are shown escaped, wherever they came from.
    """

    def __str__(self) -> str:
        return cut(one_line(super().__str__()), MAX_LINE)


class InputError(CleansetError):
    """An argument that does not apply: a name that is unknown, a value of another kind, a place without a set."""


class UnreachableError(CleansetError):
    """A repository, remote or server that does not answer, or refuses: the same call may succeed later."""


class DamagedError(CleansetError):
    """Files that differ from the digests of a set, a release or a repository."""


class NotComparableError(CleansetError):
    """Results that are not of the same images, or names of results that are not different."""


def written_by_newer(where: object, found: str, expected: str) -> str:
    """The message on a file of a newer version: what it has, and what this version knows."""
    return (
        f"{where}: written by a newer version of cleanset: {found}; this version reads {expected}: install a newer one"
    )


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
    # both ends are kept: the object comes first, the end of a path and the remedy last
    kept = max(length - len(number) - 1, 2)
    return f"{text[: (kept + 1) // 2]}…{text[-(kept // 2) :]}{number}"


def reason(error: BaseException, length: int = 120) -> str:
    """The message of a library's exception on one line, cut to `length`; its type if it has no message."""
    return cut(one_line(" ".join(str(error).split())) or type(error).__name__, length)


def raised(error: BaseException) -> str:
    """An exception of somebody else's code, in a phrase."""
    return f"{type(error).__name__} ({reason(error)})"


def system_error(error: OSError) -> str:
    """The message of an error of the system on one line, with the remedy for a disk or permissions."""
    remedy = _REMEDIES.get(error.errno or 0)
    # of a copy, the first name is that of its source
    named = (error.filename2 if remedy is _ROOM else None) or error.filename
    what = one_line(str(named or ("writing" if remedy is _ROOM else "reading or writing")))
    return f"{what}: {error.strerror or reason(error)}{f'; {remedy}' if remedy else ''}"


PACKAGE = "cleanset"


class DirectUrl(TypedDict, total=False):
    """The source of an installed package, as pip records it (PEP 610, direct_url.json)."""

    url: str
    dir_info: dict[str, bool]
    """Whether the installed folder is editable."""

    vcs_info: dict[str, str]
    """The program (vcs) and the commit (commit_id) of a repository."""

    subdirectory: str
    """The folder of the package in the source."""


def install_command(extra: str) -> str:
    """The command to type: the package is on no registry, so it names the repository, folder or file of its source."""
    return f"pip install {_requirement(f'{PACKAGE}[{extra}]', installed_from())}"


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Raise a CleansetError with the command that installs an extra for a library that is missing in the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == PACKAGE:
            raise
        raise InputError(f"{error.name}: not installed, and this needs it: {install_command(extra)}") from None


def installed_from() -> DirectUrl:
    """The source that pip has recorded; empty without a record."""
    from importlib.metadata import PackageNotFoundError, distribution  # which every command would wait for

    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    found: DirectUrl = json.loads(text) if text else {}
    return found


def _requirement(name: str, source: DirectUrl) -> str:
    """A requirement as pip takes it, quoted for a shell."""
    url = source.get("url", "")
    if source.get("dir_info", {}).get("editable"):
        folder = unquote(urlsplit(url).path)
        return f"--editable {shlex.quote(folder + name.removeprefix(PACKAGE))}"
    if not url:
        return shlex.quote(name)
    if vcs := source.get("vcs_info"):
        # the same commit, because another one may differ from what is installed
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    part = source.get("subdirectory")
    return shlex.quote(f"{name} @ {url}{f'#subdirectory={part}' if part else ''}")
