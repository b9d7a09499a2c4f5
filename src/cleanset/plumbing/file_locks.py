"""Locks, so that one process at a time writes into a folder: waited for, or refused while another is at work.

filelock can lock files only, which would be among the results, and does not come with a plain installation.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold a lock of a folder itself, as a file for it would be among the results; without a lock if there is no
    folder.

    Waits for it.
    """
    descriptor = _locked_folder(folder, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked_folder(folder: Path, kind: int) -> int:
    """A descriptor of the folder, which holds its lock; without one where the file system has none for folders.

    Raises BlockingIOError where another process holds it, if `kind` has LOCK_NB.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        # a file system without locks on folders
        pass
    return descriptor


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
    """Keep a folder of results to one run, for as long as the block lasts; None: nothing is locked.

    Raises CleansetError at once if another run is using this folder, on this machine or, if the file
    system shares locks, on another one. The folder is made, and removed again if nothing has been written into it.
    """
    if folder is None:
        yield
        return
    is_new = not folder.exists()
    descriptor = _made_and_locked(folder)
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):  # not empty
                folder.rmdir()
        os.close(descriptor)


def _made_and_locked(folder: Path) -> int:
    """A descriptor of the folder, which is made and locked. Raises CleansetError if another run holds the lock."""
    while True:
        # the run that holds the lock may remove the folder at its end, at each point here
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = _locked_folder(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CleansetError(
                f"{folder}: another run is using this folder; expected one at a time: wait until it ends, or choose "
                "another folder"
            ) from None
        except FileNotFoundError:
            continue
        except FileExistsError:
            if _is_something_else(folder):
                raise
            continue
        if _is_open(descriptor, folder):
            return descriptor
        os.close(descriptor)


def _is_something_else(path: Path) -> bool:
    """Whether something is under this name that is not a folder, such as a file or a link to nothing."""
    try:
        return not stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _is_open(descriptor: int, folder: Path) -> bool:
    """Whether a descriptor is of the folder that has this path now."""
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except FileNotFoundError:
        return False


class ChangedMeanwhileError(CleansetError):
    """Somebody else has changed an entry since the caller last read it."""
