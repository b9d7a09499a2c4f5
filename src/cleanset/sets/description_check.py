"""The files that describe a set, against the manifest that they are made from and against their checksums."""

from collections.abc import Iterator
from pathlib import Path

from cleanset.files import sha256
from cleanset.sets.croissant import croissant_json
from cleanset.sets.description import Release
from cleanset.sets.folder import (
    CHECKSUMS,
    CROISSANT,
    DESCRIPTIONS,
    METADATA,
    OPTIONAL,
    ZENODO,
    checksums,
    metadata_csv,
    read_checksums,
    read_regular_file,
)
from cleanset.sets.manifest import MANIFEST, CheckedManifest, Problem
from cleanset.sets.zenodo import zenodo_json

_WITNESSES = {MANIFEST: CROISSANT, METADATA: MANIFEST}
"""By file, another that it must agree with: where that one has its SHA-256 in CHECKSUMS, CHECKSUMS is at fault."""


def derived_problems(
    folder: Path, files: set[str], manifest: CheckedManifest, release: Release, with_images: bool
) -> Iterator[Problem]:
    """Problems of the files that are made from the manifest: missing, or made from another one."""
    entries = list(manifest.entries.values())
    texts = {CROISSANT: croissant_json(entries, sha256(manifest.text.encode()), release)}
    if with_images:
        texts[METADATA] = metadata_csv(manifest.text)
    if ZENODO in files and entries:
        texts[ZENODO] = zenodo_json(entries, release, with_images)
    for name, text in texts.items():
        if name not in files:
            yield Problem("missing", name, "nothing", f"what is made from {MANIFEST}")
        elif read_regular_file(folder / name) != text.encode():
            yield Problem("unlike", name, "something else", f"what is made from {MANIFEST}")


def is_without_images(folder: Path, files: set[str]) -> bool:
    """Whether a set was published without its images, and so without METADATA, which needs them."""
    # a METADATA that is listed but lost is a fault, not a set without images
    return CHECKSUMS in files and METADATA not in {*files, *read_checksums(folder)[1]}


def checksum_problems(folder: Path, files: set[str], with_images: bool, agreeing: bool) -> Iterator[Problem]:
    """Problems of the files that describe the set, compared with CHECKSUMS.

    `agreeing`: the manifest is valid, and what is made from it is as it was made.
    """
    if CHECKSUMS not in files:
        yield Problem("missing", CHECKSUMS, "nothing", "the digests of the files that describe the set")
        return
    text, listed = read_checksums(folder)
    needed = [name for name in DESCRIPTIONS if name not in OPTIONAL and (with_images or name != METADATA)]
    if checksums(listed) != text or not set(needed) <= set(listed) <= set(DESCRIPTIONS):
        yield Problem("unlike", CHECKSUMS, "something else", f"a SHA-256 and a name for each of {', '.join(needed)}")
        return
    found = {name: sha256(read_regular_file(folder / name)) for name in listed if name in files}
    for name, digest in listed.items():
        witness = _WITNESSES.get(name)
        if name not in files:
            yield Problem("missing", name, "nothing", digest)
        elif found[name] == digest:
            continue
        elif agreeing and witness in found and found[witness] == listed[witness]:
            correct = f"{found[name][:12]}..., with which {witness} agrees"
            yield Problem("changed", CHECKSUMS, f"{digest[:12]}... of {name}", correct)
        else:
            yield Problem("changed", name, found[name], f"{digest[:12]}... as in {CHECKSUMS}")
    for name in DESCRIPTIONS:
        if name in files and name not in listed:
            yield Problem("surplus", name, "a file", f"nothing, for {CHECKSUMS} does not list it")
