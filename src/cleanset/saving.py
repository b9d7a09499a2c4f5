"""Saving entries of files that several people write, one at a time: reviews, and judges' answers."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cleanset.errors import CleansetError


class ChangedMeanwhileError(CleansetError):
    """Somebody else has changed an entry since the caller last read it."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other writers; the lock of a killed process is released."""
    # the file is never removed: two processes could then lock two different files of its name
    with (folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def replace_file(path: Path, data: bytes) -> None:
    """Write the file, or remove it if there is nothing to write; on the disk when this returns.

    After an OSError the file is the old one; the new one only where the disk failed at the folder.
    """
    # in the same folder, because only there is a rename atomic; hidden, so that readers skip it
    partial = path.with_name(f".{path.name}.partial")
    try:
        if data:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                # before the rename: after a power cut the new name could otherwise lead to an empty file
                os.fsync(file.fileno())
            partial.replace(path)
        else:
            path.unlink()
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        # the user knows this name, not that of the hidden copy
        error.filename = str(path)
        raise


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, as far as its file system can: some mounts refuse it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
