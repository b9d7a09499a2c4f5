"""Tars of a finished set, byte for byte the same on any machine: a published set, and shards of WebDataset."""

import errno
import filecmp
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from cleanset.errors import CleansetError, reason
from cleanset.files import new_folder
from cleanset.sets.folder import check_outside, read_entries, read_image
from cleanset.sets.manifest import Entry, check_set


def write_tar(folder: Path, out: Path) -> None:
    """Write the files of `folder`, sorted by path, into a tar in which they lie in a folder of the same name.

    Not compressed: images do not shrink, and other versions of zlib write other bytes.
    """
    # not pax, the default of tarfile, which adds records of its own wherever a value does not fit
    with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            data = path.read_bytes()
            # TarInfo has no owner, the time 0 and the mode 0644 by default: the same bytes on every machine
            member = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder).as_posix()}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


@contextmanager
def unpack(path: Path) -> Iterator[tuple[Path, bool]]:
    """The folder in a tar of write_tar, and whether the tar has the bytes that write_tar gives for that folder.

    It is gone after the block. Raises CleansetError for anything but a tar with one folder of files.
    """
    with tempfile.TemporaryDirectory() as scratch:
        at, again = Path(scratch, "in"), Path(scratch, "again")
        try:
            folder = _extracted(path, at)
            # unpacking hides a member twice, other headers, bytes behind the end: writing the tar again shows them
            write_tar(folder, again)
        except OSError as error:
            raise CleansetError(
                f"{path}: cannot be unpacked into {tempfile.gettempdir()} ({reason(error)}); expected room there for "
                "twice the tar: free some, or set TMPDIR to another folder"
            ) from None
        try:
            yield folder, filecmp.cmp(again, path, shallow=False)
        # the user knows the tar, not where it was unpacked
        except CleansetError as error:
            raise CleansetError(str(error).replace(f"{at}/", f"{path}, ")) from None
        except OSError as error:
            error.filename = str(error.filename or "writing").replace(f"{at}/", f"{path}, ")
            raise


def _extracted(path: Path, at: Path) -> Path:
    """The only folder in a tar, extracted into the new folder `at`. Raises OSError if there is no room."""
    try:
        # "r:" and not "r", which would decompress, too: what publish writes is never compressed
        with tarfile.open(path, "r:") as tar:
            # the filter refuses paths and links that lead out of the folder: the tar may come from anywhere
            tar.extractall(at, filter="data")
    except (tarfile.TarError, OSError, ValueError, EOFError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise CleansetError(
            f"{path}: not a tar that can be read ({reason(error)}); expected one of cleanset publish"
        ) from None
    folders = list(at.iterdir()) if at.is_dir() else []
    if len(folders) != 1 or not folders[0].is_dir():
        raise CleansetError(f"{path}: entries at its top: {len(folders)}; expected one folder")
    return folders[0]


_SUFFIXES = {".JPEG": "jpg", ".png": "png"}


def pack(folder: Path, out: Path, shard_size: int) -> str:
    """Write the images of an export into tars in `out`, `shard_size` in each, sorted by image id; return a summary.

    An image is three members: <image_id>.jpg or .png, .cls (the class index) and .json (its line of the manifest).
    The same export gives the same bytes. Raises CleansetError for a file that is not the one in the manifest.
    """
    check_outside(out, folder)
    entries = read_entries(folder)
    if problems := check_set(dict(enumerate(entries, start=2))):
        raise CleansetError(f"{folder}: {problems[0]}; see cleanset verify {folder}")
    entries.sort(key=lambda entry: entry.image_id)
    shards = [entries[start : start + shard_size] for start in range(0, len(entries), shard_size)]
    with new_folder(out) as partial:
        partial.mkdir()
        for number, shard in enumerate(shards):
            _write_shard(partial / f"{shard[0].model}-{number:06d}.tar", folder, shard)
    return f"{out}: {len(entries):,} images in shards: {len(shards)}"


def _write_shard(path: Path, folder: Path, entries: Sequence[Entry]) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in entries:
            for suffix, data in _members(folder, entry):
                # no owner, time 0, mode 0644, as in write_tar
                member = tarfile.TarInfo(f"{entry.image_id}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def _members(folder: Path, entry: Entry) -> Iterator[tuple[str, bytes]]:
    yield _SUFFIXES[PurePosixPath(entry.file).suffix], read_image(folder, entry)
    yield "cls", str(entry.class_index).encode()
    yield "json", json.dumps(entry.model_dump(mode="json")).encode()
