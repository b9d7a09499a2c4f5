"""Updates of whole folders, which leave alone the files that have their bytes already."""

import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import TypeAdapter

from cleanset.plumbing.file_locks import folder_lock
from cleanset.plumbing.files import errors_named, file_state, read_bytes, replacing, sha256, workspace_for
from cleanset.plumbing.kept_files import NOTHING_KEPT, KeptFiles

Noted = tuple[int, int, int, str]
"""Size in bytes, time of the last change in nanoseconds and inode of a file, by which DVC knows it, too; and a note.

Not the time of the last change of its status, since DVC sets the permissions of all files in every run.
"""

_NOTES = TypeAdapter(dict[str, Noted])


@contextmanager
def updating(path: Path, kept: KeptFiles = NOTHING_KEPT) -> Iterator["FolderUpdate"]:
    """Replace the content of a folder, and leave alone the files in it that have their bytes already.

    The folder gets what the block writes and keeps, and nothing else. When the block raises, it stays unchanged. After
    a kill while the new files are put in place, it has some files of each: the next update completes it, as it compares
    the content of every file. An error of the system names `path`, as one of `replacing` does. While another process
    updates the folder, this one waits. `kept`: where the notes on files are from one update to the next.
    """
    name = sha256(str(path.absolute()).encode())
    if path.is_symlink() or not path.is_dir():
        with replacing(path) as new:
            new.mkdir()
            update = FolderUpdate(new, None)
            yield update
        kept.keep_value(name, _NOTES, update.notes(path))
        return
    with errors_named(path), workspace_for(path) as workspace, folder_lock(path):
        update = FolderUpdate(workspace / "new", path, kept.read_value(name, _NOTES))
        yield update
        update.finish(path)
        kept.keep_value(name, _NOTES, update.notes(path))


class FolderUpdate:
    """The next content of a folder. Files are named by their paths below it; threads may share an update.

    No file is opened for writing: links in the folder may lead into the cache of DVC.
    """

    def __init__(self, new: Path, old: Path | None, noted: Mapping[str, Noted] | None = None) -> None:
        self._noted = noted or {}
        self._notes: dict[str, str] = {}
        self._states: dict[str, tuple[int, int, int]] = {}
        self._new = new
        self._old = old
        self._present = frozenset(_regular_files(old)) if old else frozenset[str]()
        self._kept: set[str] = set()
        self._written: set[str] = set()

    def content(self, name: str) -> bytes | None:
        """The bytes of a file in the folder; None if it is missing, a link, or in a folder that is a link."""
        if self._old is None or name not in self._present:
            return None
        # before it is read, so that no later change is taken for it
        self._states[name] = _state(self._old / name)
        return read_bytes(self._old / name, sys.maxsize)

    def note(self, name: str) -> str:
        """What the last update noted of a file that nobody has changed since; empty for any other file."""
        if self._old is None or name not in self._present or name not in self._noted:
            return ""
        *state, note = self._noted[name]
        self._states[name] = _state(self._old / name)
        return note if self._states[name] == tuple(state) else ""

    def keep(self, name: str, note: str = "") -> None:
        """Leave a file in the folder unchanged, given its content or note."""
        self._kept.add(name)
        self._notes[name] = note

    def write(self, name: str, data: bytes, note: str = "") -> None:
        """Give a file these bytes, and let the next update know what is noted of them."""
        if self.content(name) == data:
            self.keep(name, note)
            return
        self._notes[name] = note
        path = self._new / name
        try:
            path.write_bytes(data)
        except FileNotFoundError:  # the first in its folder
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self._written.add(name)

    def write_text(self, name: str, text: str, note: str = "") -> None:
        """Give a file this text in UTF-8."""
        self.write(name, text.encode(), note)

    def notes(self, folder: Path) -> dict[str, Noted]:
        """The notes on the files of the folder, once it is finished."""
        return {
            name: (*(self._states[name] if name in self._kept else _state(folder / name)), note)
            for name, note in self._notes.items()
            if note
        }

    def finish(self, folder: Path) -> None:
        """Remove all else from the folder, and move the new files into it."""
        names = self._kept | self._written
        parents = set(_parents(names))
        # first, as where case does not distinguish names, a new file may have the name of an old one
        _remove_all_but(names, parents, str(folder))
        for name in sorted(self._written):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self._new / name).replace(folder / name)


def _state(path: Path) -> tuple[int, int, int]:
    size, changed, _, inode = file_state(os.lstat(path))
    return size, changed, inode


def _parents(names: Iterable[str]) -> Iterator[str]:
    """The folders that files with these paths are in."""
    nearest = {name.rpartition("/")[0] for name in names} - {""}
    while nearest:
        yield from nearest
        nearest = {name.rpartition("/")[0] for name in nearest} - {""}


def _regular_files(folder: Path, above: str = "") -> Iterator[str]:
    """The paths of the files below a folder that are neither links nor below one."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _regular_files(folder / entry.name, f"{above}{entry.name}/")
        elif entry.is_file(follow_symlinks=False):
            yield f"{above}{entry.name}"


def _remove_all_but(names: Collection[str], parents: Collection[str], folder: str, above: str = "") -> None:
    """Remove from a folder all but files with these paths and the folders that they are in."""
    for entry in list(os.scandir(folder)):
        name = f"{above}{entry.name}"
        if not entry.is_dir(follow_symlinks=False):
            if name not in names:
                Path(entry.path).unlink()
        elif name in parents:
            _remove_all_but(names, parents, entry.path, f"{name}/")
        else:
            shutil.rmtree(entry.path)
