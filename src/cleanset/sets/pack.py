"""The command `pack`: a finished set as shards of WebDataset."""

import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from cleanset.errors import CleansetError
from cleanset.files import new_folder
from cleanset.sets.faults import manifest_faults
from cleanset.sets.folder import read_entries, read_picture
from cleanset.sets.manifest import Entry

_SUFFIXES = {".JPEG": "jpg", ".png": "png"}


def run(folder: Path, out: Path, shard_size: int) -> str:
    """Write the pictures of an export into tars in `out`, `shard_size` in each, sorted by image id; says what was made.

    A picture is three members: <image_id>.jpg or .png, .cls (the class index) and .json (its line of the manifest).
    The same export gives the same bytes. Raises CleansetError for a file that is not as the manifest says.
    """
    entries = read_entries(folder)
    if faults := manifest_faults(entries):  # also of names that lead out of a folder
        raise CleansetError(f"{folder}: {faults[0]}; see cleanset verify {folder}")
    entries.sort(key=lambda entry: entry.image_id)
    shards = [entries[start : start + shard_size] for start in range(0, len(entries), shard_size)]
    with new_folder(out) as partial:
        partial.mkdir()
        for number, shard in enumerate(shards):
            _write_shard(partial / f"{shard[0].model}-{number:06d}.tar", folder, shard)
    return f"{out}: {len(entries):,} pictures in shards: {len(shards)}"


def _write_shard(path: Path, folder: Path, entries: Sequence[Entry]) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in entries:
            for suffix, data in _members(folder, entry):
                member = tarfile.TarInfo(f"{entry.image_id}.{suffix}")  # of nobody, of 1970, mode 0644
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def _members(folder: Path, entry: Entry) -> Iterator[tuple[str, bytes]]:
    yield _SUFFIXES[PurePosixPath(entry.file).suffix], read_picture(folder, entry)
    yield "cls", str(entry.class_index).encode()
    yield "json", json.dumps(asdict(entry)).encode()
