"""The command `rebuild`: a finished set from its manifest and one's own copy of the pictures."""

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.files import new_folder, sha256
from cleanset.images import decode, decoder, pixels_sha256
from cleanset.pictures import Location, locate
from cleanset.progress import tracked
from cleanset.sets.faults import Fault, manifest_faults
from cleanset.sets.folder import manifest_text, write_manifest
from cleanset.sets.manifest import Entry, manifest_csv, parse_manifest
from cleanset.sets.picture_files import picture_file


@dataclass(frozen=True, slots=True)
class Report:
    """What could not be made as the manifest says; if there is anything, nothing was written."""

    out: str
    pictures: int
    faults: list[Fault]


class _FaultyError(Exception):
    """Leaves nothing behind."""


def run(manifest: Path, images: Path, out: Path) -> Report:
    """Write the set of `manifest` into `out`, its pictures made from those under `images`.

    Source, file and pixels of each must be those of the manifest. Raises CleansetError for a manifest that cannot
    be read, and for pictures that cannot be found.
    """
    text, where = manifest_text(manifest)
    entries = parse_manifest(text, where)
    faults = manifest_faults(entries)
    if not faults and manifest_csv(entries) != text:
        raise CleansetError(f"{where}: line ends, quotes or digits were changed; expected the file as it was written")
    if not faults:
        locations = locate(images)
        try:
            with new_folder(out) as folder:
                folder.mkdir()
                faults = _write_pictures(folder, entries, locations)
                if faults:
                    raise _FaultyError
                write_manifest(folder, entries)
        except _FaultyError:
            pass
    return Report(str(out), len(entries), faults)


def printed(report: Report) -> str:
    """What the command prints."""
    last = f"{report.out}: "
    if report.faults:
        bad = len({fault.line for fault in report.faults})
        last += f"not written, for {bad:,} of {report.pictures:,} pictures do not match"
    else:
        last += f"{report.pictures:,} pictures; source, file and pixels of each are those of the manifest"
    return "\n".join([*map(str, report.faults), last])


def _write_pictures(folder: Path, entries: Sequence[Entry], locations: dict[str, Location]) -> list[Fault]:
    for wnid in {entry.wnid for entry in entries}:
        (folder / wnid).mkdir()

    def write(numbered: tuple[int, Entry]) -> list[Fault]:
        line, entry = numbered
        return list(_write_one(folder, entry, locations.get(entry.image_id), line))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        written = pool.map(write, enumerate(entries, start=2))
        return [fault for faults in tracked(written, len(entries), "rebuild") for fault in faults]


def _write_one(folder: Path, entry: Entry, location: Location | None, line: int) -> Iterator[Fault]:
    if location is None:
        yield Fault("missing", entry.image_id, "nothing", entry.source_sha256, line)
        return
    source = location.read()
    if (found := sha256(source)) != entry.source_sha256:
        yield Fault("source", entry.image_id, found, entry.source_sha256, line)
        return
    try:
        made = picture_file(source, entry.crop)
        pixels = pixels_sha256(decode(source) if made.part is None else made.part)
    except ValueError as error:
        yield Fault("undecodable", entry.image_id, str(error), entry.pixels_sha256, line)
        return
    if pixels != entry.pixels_sha256:
        found = f"{pixels[:12]}... as {decoder()} decodes it"
        yield Fault("pixels", entry.file, found, entry.pixels_sha256, line)
    elif sha256(made.data) != entry.file_sha256:
        found = f"the right pixels, in the bytes of {made.encoder}"
        yield Fault("reencoded", entry.file, found, f"those of {_to_install(entry.encoder)}", line)
    else:
        (folder / entry.file).write_bytes(made.data)


def _to_install(encoder: str) -> str:
    """An encoder, and how to get it."""
    pillow = re.match(r"Pillow (\S+)", encoder)
    return f"{encoder}: pip install pillow=={pillow[1]}" if pillow else encoder or "another encoder"
