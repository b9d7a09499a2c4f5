"""Updates of whole folders, which leave alone the files that have their bytes already."""

import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cleanset.plumbing.file_locks import folder_lock
from cleanset.plumbing.files import errors_named, read_bytes, replacing, workspace_for


@contextmanager
def updating(path: Path) -> Iterator["FolderUpdate"]:
    """Replace the content of a folder, and leave alone the files in it that have their bytes already.

    The folder gets what the block writes and keeps, and nothing else. When the block raises, it stays unchanged. After
    a kill while the new files are put in place, it has some files of each: the next update completes it, as it compares
    the content of every file. An error of the system names `path`, as one of `replacing` does. While another process
    updates the folder, this one waits.
    """
    if path.is_symlink() or not path.is_dir():
        with replacing(path) as new:
            new.mkdir()
            yield FolderUpdate(new, None)
        return
    with errors_named(path), workspace_for(path) as workspace, folder_lock(path):
        update = FolderUpdate(workspace / "new", path)
        yield update
        update.finish(path)


class FolderUpdate:
    """The next content of a folder. Files are named by their paths below it; threads may share an update.

    No file is opened for writing: links in the folder may lead into the cache of DVC.
    """

    def __init__(self, new: Path, old: Path | None) -> None:
        self._new = new
        self._old = old
        self._present = frozenset(_regular_files(old)) if old else frozenset[str]()
        self._kept: set[str] = set()
        self._written: set[str] = set()

    def content(self, name: str) -> bytes | None:
        """The bytes of a file in the folder; None if it is missing, a link, or in a folder that is a link."""
        if self._old is None or name not in self._present:
            return None
        return read_bytes(self._old / name, sys.maxsize)

    def keep(self, name: str) -> None:
        """Leave a file in the folder unchanged."""
        self._kept.add(name)

    def write(self, name: str, data: bytes) -> None:
        """Give a file these bytes."""
        if self.content(name) == data:
            self.keep(name)
            return
        path = self._new / name
        try:
            path.write_bytes(data)
        except FileNotFoundError:  # the first in its folder
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self._written.add(name)

    def write_text(self, name: str, text: str) -> None:
        """Give a file this text in UTF-8."""
        self.write(name, text.encode())

    def finish(self, folder: Path) -> None:
        """Remove all else from the folder, and move the new files into it."""
        names = self._kept | self._written
        parents = set(_parents(names))
        # first, as where case does not distinguish names, a new file may have the name of an old one
        _remove_all_but(names, parents, str(folder))
        for name in sorted(self._written):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self._new / name).replace(folder / name)


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
