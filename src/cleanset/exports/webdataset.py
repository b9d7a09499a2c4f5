"""The command `pack`: a finished set as shards of WebDataset."""

import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from cleanset.errors import CleansetError
from cleanset.exports.folder import read_entries, read_image
from cleanset.exports.manifest import Entry
from cleanset.exports.manifest_check import duplicates
from cleanset.files import new_folder

_SUFFIXES = {".JPEG": "jpg", ".png": "png"}


def run(folder: Path, out: Path, shard_size: int) -> str:
    """Write the images of an export into tars in `out`, `shard_size` in each, sorted by image id; return a summary.

    An image is three members: <image_id>.jpg or .png, .cls (the class index) and .json (its line of the manifest).
    The same export gives the same bytes. Raises CleansetError for a file that is not the one in the manifest.
    """
    entries = read_entries(folder)
    if twice := duplicates(dict(enumerate(entries, start=2))):
        raise CleansetError(f"{folder}: {twice[0]}; see cleanset verify {folder}")
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
                member = tarfile.TarInfo(f"{entry.image_id}.{suffix}")  # of nobody, of 1970, mode 0644
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def _members(folder: Path, entry: Entry) -> Iterator[tuple[str, bytes]]:
    yield _SUFFIXES[PurePosixPath(entry.file).suffix], read_image(folder, entry)
    yield "cls", str(entry.class_index).encode()
    yield "json", json.dumps(entry.model_dump(mode="json")).encode()
