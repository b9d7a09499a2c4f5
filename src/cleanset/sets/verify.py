"""The command `verify`: the folder of a finished set against its manifest."""

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from cleanset.files import sha256
from cleanset.sets.croissant import croissant_json
from cleanset.sets.faults import Fault, manifest_faults
from cleanset.sets.folder import BESIDE, CROISSANT, METADATA, manifest_text, metadata_csv
from cleanset.sets.manifest import MANIFEST, Entry, manifest_csv, parse_manifest

_PICTURES = (".jpeg", ".jpg", ".png")
BLOCK = 32
"""Files that a thread takes at a time."""


@dataclass(frozen=True, slots=True)
class Report:
    """The faults, and how many of the manifest's pictures have none."""

    folder: str
    pictures: int
    good: int
    decoded: bool
    faults: list[Fault]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A line of the manifest, and the file that it speaks of: where it should be, or in another folder."""

    line: int
    entry: Entry
    file: str


def run(folder: Path, decode: bool) -> Report:
    """Compare the folder of an export with its manifest.

    Pixels are decoded where a file has other bytes; where it has the right ones, these are the pixels' bytes too,
    whatever the manifest says of them, and only `decode` looks. Raises CleansetError if no manifest can be read.
    """
    text, where = manifest_text(folder / MANIFEST)
    entries = parse_manifest(text, where)
    faults = manifest_faults(entries)
    files, empty, odd = _contents(folder)
    placed = _placed(entries, files)
    found = {each.line for each in placed}
    for line, entry in enumerate(entries, start=2):
        if line not in found:
            faults.append(Fault("missing", entry.file, "nothing", entry.file_sha256, line))
    faults += _of_files(folder, placed, decode)
    known = {each.file for each in placed} | set(BESIDE)
    faults += [Fault("surplus", file, "a file", "nothing") for file in sorted(files - known)]
    faults += [Fault("surplus", name, "an empty folder", "nothing") for name in sorted(empty)]
    faults += [Fault("surplus", name, "a link that leads to no file", "nothing") for name in sorted(odd)]
    if not faults and manifest_csv(entries) != text:
        faults.append(Fault("manifest", MANIFEST, "other line ends, quotes or digits", "the file as it was written"))
    faults += _beside(folder, text, entries)
    bad = {fault.line for fault in faults}
    good = sum(line not in bad for line in range(2, len(entries) + 2))
    return Report(str(folder), len(entries), good, decode, faults)


def printed(report: Report, as_json: bool) -> str:
    """What the command prints: a line for each fault and one that sums up, or JSON."""
    if as_json:
        return json.dumps(asdict(report), indent=2)
    faults = f"; faults: {len(report.faults):,}" if report.faults else ""
    last = f"{report.folder}: {report.good:,} of {report.pictures:,} pictures are good{faults}"
    return "\n".join([*map(str, report.faults), last])


def _contents(folder: Path, prefix: str = "") -> tuple[set[str], set[str], set[str]]:
    """Paths of the files, the empty folders, and links that lead to no file, relative to `folder`.

    Hidden files are left out, such as .DS_Store, unless a program might take them for pictures.
    """
    files, empty, odd = set(), set(), set()
    with os.scandir(folder) as there:
        for entry in there:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                inside = _contents(Path(entry.path), f"{name}/")
                files |= inside[0]
                empty |= inside[1] if any(inside) else {f"{name}/"}
                odd |= inside[2]
            elif not entry.name.startswith(".") or entry.name.lower().endswith(_PICTURES):
                (files if entry.is_file() else odd).add(name)
    return files, empty, odd


def _placed(entries: Sequence[Entry], files: set[str]) -> list[_Placed]:
    """For each line its file: in its place, or else one of the same name that no line claims."""
    claimed = {entry.file for entry in entries}
    elsewhere: dict[str, list[str]] = {}
    for file in sorted(files - claimed - set(BESIDE)):
        elsewhere.setdefault(PurePosixPath(file).name, []).append(file)
    placed = []
    for line, entry in enumerate(entries, start=2):
        if entry.file in files:
            placed.append(_Placed(line, entry, entry.file))
        elif others := elsewhere.get(PurePosixPath(entry.file).name):
            placed.append(_Placed(line, entry, others.pop(0)))
    return placed


def _of_files(folder: Path, placed: Sequence[_Placed], decode: bool) -> list[Fault]:
    """Read every file, on all cores: reading, hashing and decoding release the lock."""
    blocks = [placed[start : start + BLOCK] for start in range(0, len(placed), BLOCK)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda block: [fault for each in block for fault in _of_file(folder, each, decode)], blocks)
        return [fault for faults in found for fault in faults]


def _of_file(folder: Path, placed: _Placed, decode: bool) -> Iterator[Fault]:
    entry, line = placed.entry, placed.line
    if placed.file != entry.file:
        yield Fault("misplaced", placed.file, "here", entry.file, line)
    with open(f"{folder}/{placed.file}", "rb", buffering=0) as file:  # noqa: PTH123  # much faster than a Path
        data = file.read()
    found = sha256(data)
    right = found == entry.file_sha256
    if right and not decode:
        return
    pixels = _pixels(data)
    if isinstance(pixels, ValueError):
        yield Fault("undecodable", placed.file, str(pixels), entry.file_sha256, line)
    elif not right:
        same = pixels == entry.pixels_sha256
        yield Fault("reencoded" if same else "changed", placed.file, found, entry.file_sha256, line)
    elif pixels != entry.pixels_sha256:
        yield Fault("pixels", placed.file, pixels, entry.pixels_sha256, line)


def _pixels(data: bytes) -> str | ValueError:
    """SHA-256 of the pixels, or why there are none."""
    from cleanset import images

    try:
        return images.pixels_sha256(images.decode(data, ("JPEG", "PNG")))
    except ValueError as error:
        return error


def _beside(folder: Path, manifest: str, entries: Sequence[Entry]) -> Iterator[Fault]:
    """What is made from the manifest may be missing, but must not say something else."""
    made = {METADATA: metadata_csv(manifest), CROISSANT: croissant_json(entries, sha256(manifest.encode()))}
    for name, text in made.items():
        if (folder / name).is_file() and (folder / name).read_bytes() != text.encode():
            yield Fault("unlike", name, "something else", f"what is made from {MANIFEST}")
