"""The command `rebuild`: a finished set from its manifest and a user's copy of the images.

Its data card is shorter than stage export's; the labels are the same.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cleanset.dataset.archives import Location, locate
from cleanset.dataset.by_content import locate_by_content
from cleanset.images.codec import decode, decoder, pixels_sha256
from cleanset.plumbing.files import new_folder, sha256
from cleanset.plumbing.progress import found_in_threads
from cleanset.sets.card import rebuilt_card
from cleanset.sets.delivered import image_file, make_class_folders
from cleanset.sets.folder import CARD, check_listed, manifest_text, read_release, write_descriptions
from cleanset.sets.manifest import Entry
from cleanset.sets.manifest_checks import CheckedManifest, Problem, check_manifest, check_set


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """The images that could not be made as the manifest has them; if any, nothing was written."""

    out: str
    images: int
    problems: list[Problem]


class _IncompleteError(Exception):
    """An image cannot be rebuilt, so that nothing is to be written."""


def run(manifest: Path, images: Path, out: Path) -> RebuildResult:
    """Write the set of `manifest` into `out`, its images made from those under `images`, a folder or a tar.

    Source, file and pixels of each must match the manifest. The card is a shorter one (rebuilt_card), whatever
    is next to the manifest: the same manifest and release always give the same bytes. Raises CleansetError for a
    manifest that cannot be read, and for images that cannot be found.
    """
    read = manifest_text(manifest)
    checked = check_manifest(read.text, read.where, read.classes)
    problems = [*checked.problems, *check_set(checked.entries, checked.classes)]
    if not problems:
        locations = _locations(images, checked)
        with suppress(_IncompleteError), new_folder(out) as folder:
            problems = _write_images(folder, checked.entries, locations)
            if problems:
                # out of the block, so that new_folder removes what was written
                raise _IncompleteError
            entries = list(checked.entries.values())
            beside = manifest if manifest.is_dir() else manifest.parent
            check_listed(beside)
            release = read_release(beside)
            write_descriptions(folder, entries, release, {CARD: rebuilt_card(entries, release)})
    return RebuildResult(str(out), checked.lines, problems)


def _locations(images: Path, checked: CheckedManifest) -> Mapping[str, Location]:
    """ImageNet's images by their names, others by their bytes, whatever their names are today."""
    if checked.classes.is_imagenet:
        return locate(images)
    return locate_by_content(images, {entry.image_id: entry.source_sha256 for entry in checked.entries.values()})


def render(result: RebuildResult) -> str:
    """The lines that the command prints: one for each problem, and a summary."""
    bad = {problem.line for problem in result.problems}
    if not result.images:
        summary = "not written, because the manifest has no images"
    elif None in bad:
        summary = "not written, because the manifest has been changed"
    elif bad:
        summary = f"not written, for {len(bad):,} of {result.images:,} images do not match"
    else:
        summary = f"{result.images:,} images; source, file and pixels of each are those of the manifest"
    return "\n".join([*map(str, result.problems), f"{result.out}: {summary}"])


def _write_images(folder: Path, entries: Mapping[int, Entry], locations: Mapping[str, Location]) -> list[Problem]:
    make_class_folders(folder, (entry.wnid for entry in entries.values()))

    def write(numbered: tuple[int, Entry]) -> list[Problem]:
        line, entry = numbered
        return list(_write_one(folder, entry, locations.get(entry.image_id), line))

    return [problem for problems in found_in_threads(write, entries.items(), "rebuild") for problem in problems]


def _write_one(folder: Path, entry: Entry, location: Location | None, line: int) -> Iterator[Problem]:
    if location is None:
        yield Problem("missing", entry.image_id, "nothing", entry.source_sha256, line=line)
        return
    source = location.read()
    if (found := sha256(source)) != entry.source_sha256:
        yield Problem("source", entry.image_id, found, entry.source_sha256, line=line)
        return
    try:
        made = image_file(source, entry.crop)
        pixels = pixels_sha256(decode(source) if made.part is None else made.part)
    except ValueError as error:
        yield Problem("undecodable", entry.image_id, str(error), entry.pixels_sha256, line=line)
        return
    if pixels != entry.pixels_sha256:
        found = f"{pixels[:12]}... as {decoder()} decodes it"
        yield Problem("pixels", entry.file, found, entry.pixels_sha256, line=line)
    # after the pixels: where only the bytes differ, another version of Pillow solves it
    elif sha256(made.data) != entry.file_sha256:
        found = f"the same pixels, in the bytes of {made.encoder}"
        yield Problem("reencoded", entry.file, found, f"those of {_to_install(entry.encoder)}", line=line)
    else:
        (folder / entry.file).write_bytes(made.data)


def _to_install(encoder: str) -> str:
    """An encoder, and how to get it."""
    pillow = re.match(r"Pillow (\S+)", encoder)
    return f"{encoder}: pip install pillow=={pillow[1]}" if pillow else encoder or "another encoder"
