"""Locks, so that one process at a time writes into a folder: waited for, or refused while another is at work."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from cleanset.errors import CleansetError


def take_lock(file: IO[bytes] | IO[str] | int, path: Path, kind: int = fcntl.LOCK_EX) -> None:
    """Take a lock on an open file. Raises OSError that names `path`, as where the file system has no locks."""
    try:
        fcntl.flock(file, kind)
    except OSError as error:
        error.filename = str(path)
        raise


@contextmanager
def folder_lock(folder: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold a lock of a folder itself, as a file for it would lie among the results; without one where there is none.

    Waits for it, or, if `kind` has LOCK_NB, raises BlockingIOError where another process holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, kind)
        except BlockingIOError:
            raise
        except OSError:
            # a file system without locks on folders: as before there were any
            pass
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file or folder; never where the file system has no locks."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


@contextmanager
def locked(folder: Path, name: str = ".lock") -> Iterator[None]:
    """Lock a folder against other writers, by a file in it; the lock of a killed process is released."""
    # the file is never removed: two processes could then lock two different files of its name
    with (folder / name).open("a") as file:
        take_lock(file, folder)
        yield


@contextmanager
def only_run(folder: Path | None) -> Iterator[None]:
    """Keep a folder of results to one run, for as long as the block lasts; None is no folder.

    Raises CleansetError at once if another run is at work there, on this machine or where the file system tells others.
    The folder is made, and removed again if nothing has been written into it.
    """
    if folder is None:
        yield
        return
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as lock:
            try:
                lock.enter_context(folder_lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB))
            except BlockingIOError:
                raise CleansetError(
                    f"{folder}: another run is at work there; expected one at a time: wait until it has ended, or name "
                    "another folder"
                ) from None
            yield
    finally:
        if is_new:
            with suppress(OSError):  # not empty
                folder.rmdir()


class ChangedMeanwhileError(CleansetError):
    """Somebody else has changed an entry since the caller last read it."""
