"""The cache on disk of what was computed before, which all editions on this machine share.

Among libraries for this, diskcache keeps pickles, which run code of whoever can write the folder, in a database, which
locks badly on network drives.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from cleanset.errors import CleansetError
from cleanset.plumbing.cache import PACKAGE, cache_folder
from cleanset.plumbing.files import read_bytes, sha256

_DIGITS = 64
"""Hexadecimal digits of a SHA-256."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """Files in a folder, by names that hold the digests of all that their content depends on.

    Several processes may use a folder at a time. A file has the SHA-256 of its content, and the content: one that is
    damaged, such as by a kill, or cannot be read counts as missing, and one that cannot be written is left out. Then
    the content is computed again.
    """

    folder: Path | None
    """None: nothing is kept."""

    def read(self, name: str) -> bytes | None:
        """The content of a file; None for a missing or damaged one."""
        if self.folder is None:
            return None
        with suppress(OSError, CleansetError):
            data = read_bytes(self.folder / name)
            content = data[_DIGITS:]
            if data[:_DIGITS] == sha256(content).encode():
                return content
        return None

    def keep(self, name: str, content: bytes) -> None:
        """Write a file, if the disk allows it."""
        if self.folder is None:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(sha256(content).encode() + content)

    def read_value(self, name: str, kind: TypeAdapter[Value]) -> Value | None:
        """The value in a file of JSON; None for a missing or damaged one."""
        content = self.read(name)
        if content is None:
            return None
        try:
            return kind.validate_json(content, strict=False)
        except ValidationError:
            return None

    def keep_value(self, name: str, kind: TypeAdapter[Value], value: Value) -> None:
        """Write a value as JSON, if the disk allows it."""
        self.keep(name, kind.dump_json(value))


NOTHING_KEPT = KeptFiles(None)
"""Keeps nothing: there is no folder for it."""


def kept_files(subject: str, code: Iterable[str], libraries: str, package: Path = PACKAGE) -> KeptFiles:
    """The files on a subject; nothing is kept without a home or CLEANSET_CACHE.

    Their folder is named after the files of the package, and the versions of libraries, that decide on the content.
    """
    made_by = sha256(b"".join((package / each).read_bytes() for each in code) + libraries.encode())
    try:
        return KeptFiles(cache_folder() / subject / made_by[:16])
    except CleansetError:
        return NOTHING_KEPT
