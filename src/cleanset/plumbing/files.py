"""Files and folders: written whole or not at all, opened safely, hashed.

After a kill a file is the old or the new one, and a folder is new or absent. Locks: `file_locks`. Folders most of
whose files stay unchanged: `folder_updates`.
"""

import errno
import fcntl
import hashlib
import itertools
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import take_lock

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK_BYTES = 2**22
"""Bytes of a large file that are read at a time."""

MAX_BYTES = 2**28
"""Bytes of a file that is read whole, unless its kind has another limit: a table of a million rows has less."""

_WORKSPACE = re.compile(r"\..+\.[a-z0-9_]{8}\.partial")
WORKSPACE_LOCK = "lock"
MAKING_SECONDS = 60
"""Age at which a workspace without its lock, which is taken at once, counts as abandoned."""
_NEW = "new"
_OLD = "old"
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# what rename reports for a folder in the way; which of the first two depends on the file system
_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST, errno.EISDIR)


class HasFolder(Protocol):
    """An object with a folder."""

    @property
    def folder(self) -> Path:
        """The folder."""


@dataclass(frozen=True, slots=True)
class PathBelow:
    """An attribute of a class with a folder: the path of a file in it, such as `PathBelow("data/index.parquet")`."""

    path: str

    def __get__(self, owner: HasFolder, _: type) -> Path:
        return owner.folder / self.path


@dataclass(frozen=True, slots=True)
class PathOfName:
    """A method of a class with a folder: the path of a file by a name, such as `PathOfName("data/scores/{}.json")`."""

    path: str

    def __get__(self, owner: HasFolder, _: type) -> Callable[[str], Path]:
        return lambda name: owner.folder / self.path.format(name)


def partial_shards(result: Path) -> Path:
    """The folder of what is finished of a result, until all is; `result`: its path, of a file without the suffix."""
    return result.with_name(f"{result.name}.partial-shards")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path, which replaces `path` on success.

    Works for a file and for a folder. When the block raises, `path` stays unchanged and the temporary file is removed.
    Several processes may write `path` at once: each has a workspace of its own, and the last one to finish wins.
    `remove_abandoned` removes the workspaces of killed processes. A full disk is reported under the name of `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with errors_named(path), workspace_for(path) as workspace:
        yield workspace / _NEW
        _move(workspace / _NEW, path, workspace / _OLD)


@contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Let an error of the system in a workspace of `path` name `path`, which the user knows."""
    try:
        yield
    except OSError as error:
        hidden = str(path.with_name(f".{path.name}."))
        if not error.filename or str(error.filename).startswith(hidden):
            error.filename = str(path)
            error.filename2 = None
        elif str(error.filename2).startswith(hidden):
            error.filename2 = str(path)
        raise


@contextmanager
def workspace_for(path: Path) -> Iterator[Path]:
    """A new folder next to `path`, with a locked file in it for as long as this process lives and needs it."""
    workspace = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    try:
        # created under another name, so that nobody finds the lock before it is taken
        with (workspace / "unlocked").open("wb") as lock:
            take_lock(lock, workspace)
            (workspace / "unlocked").rename(workspace / WORKSPACE_LOCK)
            yield workspace
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def _move(new: Path, path: Path, old: Path) -> None:
    """Rename `new` to `path`; a folder in the way is moved to `old`, as often as another process puts one there."""
    for attempt in itertools.count():
        try:
            new.replace(path)
        except OSError as error:
            # onto a link a folder cannot be renamed either, but the error is ENOTDIR
            if error.errno not in _OCCUPIED and not path.is_symlink():
                raise
            # another process may have moved it away already
            with suppress(FileNotFoundError):
                path.rename(f"{old}{attempt}")
        else:
            return


def remove_abandoned(folder: Path) -> None:
    """Remove the workspaces of `replacing` in `folder` whose processes no longer live, and nothing else."""
    # listed before anything is removed from it
    for entry in list(os.scandir(folder)) if folder.is_dir() else ():
        if _WORKSPACE.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False) and _is_abandoned(Path(entry.path)):
            shutil.rmtree(entry.path, ignore_errors=True)


def _is_abandoned(workspace: Path) -> bool:
    try:
        with (workspace / WORKSPACE_LOCK).open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:  # just being made, or left by a process that was killed then
        return time.time() - workspace.stat().st_mtime > MAKING_SECONDS
    except OSError:  # locked, or not one of ours
        return False
    return True


def check_new(path: Path) -> None:
    """Raise CleansetError unless `path` is a new or empty folder."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise CleansetError(f"{path}: exists already; expected a new or empty folder")


def is_there(path: Path) -> bool:
    """Whether a file or folder is there. Raises CleansetError for a broken link, which must not count as absent."""
    if path.is_symlink() and not path.exists():
        raise CleansetError(f"{path}: broken symlink to {path.readlink()}; restore its target, or remove the link")
    return path.exists()


FileState = tuple[int, int, int, int]
"""Size in bytes, times of the last change of content and of status in nanoseconds, inode."""


def file_state(status: os.stat_result) -> FileState:
    """The state by which a file is known as unchanged without reading it.

    Programs that rewrite a file in place can set back the time of its content, not that of its status.
    """
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder as `replacing` does; raises CleansetError unless `path` is new or empty."""
    check_new(path)
    remove_abandoned(path.resolve().parent)
    with replacing(path.resolve()) as partial:
        yield partial


def check_regular(path: Path, status: os.stat_result | None = None) -> os.stat_result:
    """The status of a file, or of the file that a link leads to. Raises CleansetError unless it is a regular file."""
    status = status or path.stat()
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a special file")
        raise CleansetError(f"{path}: {kind}; expected a regular file: name another, or copy the content into one")
    return status


PACKED = re.compile(r"(?i)\.(zip|7z|rar|tgz|tbz2?|txz|tar\.(gz|bz2|xz|zst))$")
"""The ends of the names of packed folders that nothing here opens."""


def check_unpacked(path: Path, expected: str) -> None:
    """Raise CleansetError with what is `expected` and the command that unpacks it, for a packed folder."""
    if PACKED.search(path.name) and path.is_file():
        command = "unzip" if path.suffix.lower() == ".zip" else "tar -xf"
        raise CleansetError(f"{path}: a packed folder; expected {expected}: unpack it, as by {command} {path.name}")


def open_descriptor(path: Path | str) -> int:
    """Open a file for reading without waiting for the writer of a pipe, so that its kind can be checked then."""
    try:
        return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except BlockingIOError:  # another process, such as a file server, has a lease on it: wait until it is given back
        return os.open(path, os.O_RDONLY)


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Let an error of the system that names no file, such as one while reading, name this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
            error.strerror = f"{error.strerror} while reading"
        raise


class _NamedFile(FileIO):
    """A file open for reading, whose errors name it."""

    def __init__(self, path: Path) -> None:
        super().__init__(open_descriptor(path))
        self._path = path

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        with reading(self._path):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with reading(self._path):
            return super().readall()


def open_file(path: Path, most: int | None = None) -> "BufferedReader[_NamedFile]":
    """Open a file that a user names for reading, at once: opening a named pipe would wait for a writer.

    Raises CleansetError for a folder, pipe, socket or device and for more than `most` bytes, and OSError as `open`
    does.
    """
    _check_size(path, most)
    file = BufferedReader(_NamedFile(path))
    try:
        check_regular(path, os.fstat(file.fileno()))  # it may have been replaced in between
    except CleansetError:
        file.close()
        raise
    return file


def _check_size(path: Path, most: int | None) -> int:
    """The size of a regular file, which is checked before it is opened: a device may act on that alone."""
    size = check_regular(path).st_size
    if most is not None and size > most:
        raise CleansetError(f"{path}: {size:,} bytes; expected at most {most:,}: shorten it, or name another file")
    return size


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """The content of a file that a user names, of at most `most` bytes. Raises as `open_file` does."""
    size = _check_size(path, most)
    # without a file object, which takes longer than reading a small file
    descriptor = open_descriptor(path)
    try:
        check_regular(path, os.fstat(descriptor))
        with reading(path):
            blocks = list(iter(lambda: os.read(descriptor, max(size + 1, 2**16)), b""))
    finally:
        os.close(descriptor)
    return b"".join(blocks)


def read_known(path: Path, expected: str, remedy: str) -> bytes:
    """The content of a file that others published, which is known by its SHA-256, `expected`.

    Raises CleansetError, ending in `remedy`, for a missing file and for other bytes; else as `read_bytes` does.
    """
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; expected SHA-256 {expected}: {remedy}") from None
    if (found := sha256(data)) != expected:
        raise CleansetError(f"{path}: SHA-256 {found}; expected {expected}, the published file: {remedy}")
    return data


def read_text(path: Path, remedy: str, most: int = MAX_BYTES) -> str:
    """The text of a UTF-8 file that a user names, line ends unchanged, without a byte order mark.

    Raises CleansetError, ending in `remedy`, for a missing file and for other encodings; else as `read_bytes` does.
    """
    try:
        return read_bytes(path, most).decode("utf-8").removeprefix("\ufeff")
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; {remedy}") from None
    except UnicodeDecodeError as error:
        raise CleansetError(f"{path}: not UTF-8 at byte {error.start}; {remedy}") from None


def day_written(path: Path) -> str:
    """The day on which a file was last written, such as 9 November 2026, for notices; no output has it."""
    day = date.fromtimestamp(path.stat().st_mtime)
    return f"{day.day} {day:%B %Y}"


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all."""
    with replacing(path) as partial:
        partial.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with `\\n` line ends, whole or not at all."""
    write_bytes(path, text.encode())


def write_together(texts: Mapping[Path, str]) -> None:
    """Write all text files, or leave all unchanged; after a kill some may be new and some old."""
    before = {path: path.read_bytes() for path in texts}
    try:
        # all are written before one is put in place: a full disk shows here
        with ExitStack() as stack:
            for path, text in texts.items():
                stack.enter_context(replacing(path)).write_bytes(text.encode())
    except OSError:
        for path in (each for each, data in before.items() if each.read_bytes() != data):
            write_bytes(path, before[path])
        raise


def sha256(data: bytes) -> str:
    """SHA-256 in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def md5(blocks: Iterable[bytes]) -> str:
    """MD5 of blocks of bytes, one after the other, in lower-case hexadecimal: as DVC and md5sum write it."""
    # in FIPS mode OpenSSL refuses MD5 unless it is declared harmless
    digest = hashlib.md5(usedforsecurity=False)
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def blocks_of(path: Path) -> Iterator[bytes]:
    """The bytes of a file, BLOCK_BYTES at a time."""
    with open_file(path) as file:
        yield from iter(lambda: file.read(BLOCK_BYTES), b"")


def md5_of(path: Path) -> str:
    """MD5 of a file."""
    return md5(blocks_of(path))


def replace_file(path: Path, data: bytes) -> None:
    """Write the file, or remove it without content; on the disk when this returns.

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


def append_line(path: Path, line: str, header: str = "") -> None:
    """Append a line, after the header in a new file; on the disk when this returns.

    After an OSError the file has the lines that it had.
    """
    # without a buffer, which would be written once more when the file is closed
    with path.open("ab", buffering=0) as file:
        size = file.tell()
        data = f"{'' if size else header}{line}".encode()
        try:
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(size)
            raise
    if not size:
        sync_folder(path.parent)


def cut_torn_line(path: Path) -> None:
    """Remove the end of a file after its last whole line, which a kill or a power cut leaves of a line appended."""
    with path.open("r+b") as file:
        data = file.read()
        # only then: cutting nothing would change the file's time, too
        if not data.endswith(b"\n"):
            file.truncate(data.rfind(b"\n") + 1)


def check_no_links(root: Path, path: Path) -> None:
    """Raise CleansetError for a link at `path`, or between it and the folder `root`, which a stranger may have packed.

    What is written there would go to any file or folder of the user.
    """
    for each in (path, *path.parents):
        if each == root:
            return
        if each.is_symlink():
            raise CleansetError(f"{each}: a symbolic link; expected none where something is written: remove it")


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
