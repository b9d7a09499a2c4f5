"""The files in the folder of a finished set, next to its folders of classes: written, and read with checks."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cleanset.classes import CLASSES_FILE, ClassTable, imagenet, parse_class_table
from cleanset.errors import CleansetError, DamagedError, InputError
from cleanset.plumbing.files import check_unpacked, read_bytes, sha256, write_text
from cleanset.plumbing.validation import SHA256_FORM, shown
from cleanset.review.guidelines import GUIDELINES
from cleanset.sets.catalogues import citation_cff, croissant_json, records_of
from cleanset.sets.description import Release, licence_text, manifest_sha256_of, release_of
from cleanset.sets.manifest import MANIFEST, Entry, manifest_csv
from cleanset.sets.manifest_checks import read_manifest

METADATA = "metadata.csv"
"""The manifest once more, as the library `datasets` wants it: class_index is called label, file file_name."""
METADATA_LINES = "metadata.jsonl"
"""METADATA of your own images, as JSON lines: in a CSV, libraries take `1` for a number and `NA` for no value."""
MANIFEST_LINES = "manifest.jsonl"
"""The manifest as JSON lines, in its place where your own images are published without them."""
CROISSANT = "croissant.json"
CROISSANT_LINES = "croissant.jsonl"
"""The records that CROISSANT describes, of your own images: an object for each file."""
CARD = "README.md"
REJECTED_CSV = "rejected.csv"
"""The candidates that are not in the set, each with its reason."""
LICENCE = "LICENSE"
CITATION = "CITATION.cff"
ZENODO = ".zenodo.json"
CHECKSUMS = "checksums.sha256"
"""The digests of the others, as `sha256sum` writes and checks them; the manifest has the images' digests."""
SIGNATURE = f"{CHECKSUMS}.sig"
DESCRIPTIONS = (
    ZENODO, CITATION, GUIDELINES, LICENCE, CARD, CLASSES_FILE, CROISSANT, CROISSANT_LINES, MANIFEST, MANIFEST_LINES,
    METADATA, METADATA_LINES, REJECTED_CSV,
)  # fmt: skip
"""The files that describe a set, sorted by name."""
OPTIONAL = (ZENODO, CITATION, GUIDELINES, LICENCE, CARD, CLASSES_FILE, REJECTED_CSV)
"""Descriptions that a set may lack: a rebuilt one lacks REJECTED_CSV, only a published one has LICENCE, ZENODO and
perhaps CITATION, only the set of an edition with guidelines of its own has GUIDELINES, and only one of other images
than ImageNet's has CLASSES_FILE. `derived_names` are the others, besides MANIFEST."""
_CHECKSUM = re.compile(rf"^({SHA256_FORM.pattern})  (.+)$", re.MULTILINE)

MAX_FILE_BYTES = 1 << 29
"""Size limit of a file of a set, larger than any image: 100 million pixels are 300 MB."""


def metadata_csv(manifest: str) -> str:
    """The text of METADATA, from the text of the manifest."""
    # once each: the header is the first line
    return manifest.replace(",class_index,", ",label,", 1).replace(",file,", ",file_name,", 1)


def checksums(digests: dict[str, str]) -> str:
    """CHECKSUMS of files, from their SHA-256 by name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def derived_names(classes: ClassTable, *, with_images: bool, is_empty: bool = False) -> list[str]:
    """The files that are made from every manifest of images of these classes, besides CLASSES_FILE."""
    if classes.is_imagenet:
        return [CROISSANT, *([METADATA] if with_images and not is_empty else [])]
    lines = METADATA_LINES if with_images else MANIFEST_LINES
    return [CROISSANT, CROISSANT_LINES, *([] if is_empty else [lines])]


def derived_texts(
    manifest: str, entries: Sequence[Entry], release: Release, *, with_images: bool = True
) -> dict[str, str]:
    """The texts of the files that are made from a manifest, which has these entries, by name."""
    is_imagenet = release.classes.is_imagenet
    digest = sha256(manifest.encode())
    if is_imagenet:
        texts = {CROISSANT: croissant_json(entries, digest, release)}
        # without images `datasets` cannot infer the columns of a table
        texts |= {METADATA: metadata_csv(manifest)} if with_images and entries else {}
    else:
        named = {"class_index": "label", "file": "file_name"} if with_images else {}
        flat = []
        nested = []
        for each in records_of(manifest, release.classes):
            flat.append(json.dumps({named.get(name, name): value for name, value in each.items()}) + "\n")
            nested.append(json.dumps({"file": each.pop("file"), "record": each}) + "\n")
        lines = "".join(nested)
        texts = {
            CROISSANT: croissant_json(entries, digest, release, sha256(lines.encode())),
            CROISSANT_LINES: lines,
            **({METADATA_LINES if with_images else MANIFEST_LINES: "".join(flat)} if entries else {}),
        }
    return texts | ({} if is_imagenet else {CLASSES_FILE: release.classes.text})


def released_texts(zenodo: str, release: Release, *, with_images: bool) -> dict[str, str]:
    """The texts of the files that only a published set has, by name; `zenodo` is its metadata for Zenodo."""
    cited = {CITATION: citation_cff(release, with_images=with_images)} if release.about else {}
    return {ZENODO: zenodo, LICENCE: licence_text(release.texts), **cited}


def write_descriptions(
    folder: Path, entries: Sequence[Entry], release: Release, optional: Mapping[str, str] | None = None
) -> None:
    """Write the texts of `description_texts` for the manifest of these entries into a folder."""
    manifest = manifest_csv(entries, release.classes)
    for name, text in description_texts(manifest, entries, release, optional).items():
        write_text(folder / name, text)


def description_texts(
    manifest: str, entries: Sequence[Entry], release: Release, optional: Mapping[str, str] | None = None
) -> dict[str, str]:
    """A manifest, the files made from it, the texts of OPTIONAL files by name, and the digests of them all."""
    texts = {MANIFEST: manifest, **derived_texts(manifest, entries, release), **(optional or {})}
    texts[CHECKSUMS] = checksums({name: sha256(text.encode()) for name, text in texts.items()})
    return texts


def read_regular_file(path: Path) -> bytes:
    """The bytes of a file of a set. Raises as `read_bytes` does."""
    return read_bytes(path, MAX_FILE_BYTES)


class ManifestText(NamedTuple):
    """A manifest as read: its text, its name for messages, and the classes of its images."""

    text: str
    where: str
    classes: ClassTable


def manifest_text(path: Path, expected: str = "the folder of an export, or its manifest.csv") -> ManifestText:
    """The text of a manifest, with the class table next to it, or without one ImageNet's.

    `path`: the manifest or its folder.
    """
    check_unpacked(path.parent if path.name == MANIFEST else path, expected)
    manifest = path / MANIFEST if path.is_dir() else path
    try:
        text = read_regular_file(manifest).decode()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{manifest}: missing; expected {expected}") from None
    except UnicodeDecodeError as error:
        raise CleansetError(f"{manifest}: not a text file ({error}); expected a manifest") from None
    if "\0" in text:
        raise CleansetError(f"{manifest}: not a text file (it has the character 0); expected {expected}: unpack a tar")
    return ManifestText(text, str(manifest), read_class_table(manifest.parent))


def read_class_table(folder: Path) -> ClassTable:
    """The class table in the folder of a set; ImageNet's without one."""
    path = folder / CLASSES_FILE
    try:
        return class_table_of(read_regular_file(path), str(path))
    except (FileNotFoundError, NotADirectoryError):
        return imagenet()


def class_table_of(data: bytes, where: str) -> ClassTable:
    """The class table in the bytes of a set's CLASSES_FILE; ImageNet's without bytes."""
    return parse_class_table(data.decode("utf-8", "replace"), where) if data else imagenet()


def sets_in(folder: Path) -> dict[Path, str]:
    """The role of each set in a folder, by path: the folder itself, or the sets below it."""
    for above in ("", "data/export/*/", "sets/*/", "*/"):
        if found := sorted(path for path in folder.glob(above + MANIFEST) if path.is_file()):
            # the first column of the first line
            lines = ((path, read_regular_file(path).decode("utf-8", "replace").split("\n", 2)) for path in found)
            return {path.parent: text[1].partition(",")[0] if text[1:] else "" for path, text in lines}
    return {}


def one_set(folder: Path, model: str = "") -> Path:
    """The set of a model in a folder, or the only one there; the folder itself if it holds no set."""
    found = sets_in(folder)
    chosen = [path for path, role in found.items() if model in ("", role)]
    if found and len(chosen) != 1:
        those = ", ".join(sorted(found.values()))
        if model and not chosen:
            raise InputError(f"{folder}: no finished set of {shown(model)}; expected a role that has one: {those}")
        raise InputError(
            f"{folder}: finished sets of {those}; expected one: give the role of a model, or the folder of a set"
        )
    return chosen[0] if chosen else folder


def check_outside(out: Path, folder: Path) -> None:
    """Raise CleansetError if `out` is in the folder of a set, which would then hold surplus files."""
    if out.resolve().is_relative_to(folder.resolve()) and out.resolve() != folder.resolve():
        raise CleansetError(f"{out}: inside the set {folder}; expected a new or empty folder outside of it")


@dataclass(frozen=True, slots=True)
class SetEntries:
    """The entries of a finished set in the order of its manifest, and the classes of its images."""

    classes: ClassTable
    entries: list[Entry]
    manifest_sha256: str
    """Digest of the manifest that they were read from."""


def read_set(path: Path) -> SetEntries:
    """The entries and classes of an export.

    Raises CleansetError for the first problem of its manifest, and as `check_listed`.
    """
    found = manifest_text(path)
    entries = read_manifest(found.text, found.where, found.classes)
    check_listed(path if path.is_dir() else path.parent)
    return SetEntries(classes=found.classes, entries=entries, manifest_sha256=sha256(found.text.encode()))


def read_entries(path: Path) -> list[Entry]:
    """The entries of an export, as `read_set` reads them."""
    return read_set(path).entries


def check_listed(folder: Path, is_set: bool = False) -> None:
    """Raise CleansetError for a description that is read by commands, and is not the one that CHECKSUMS lists.

    Without CHECKSUMS a folder holds a manifest alone, unless it must be a set (`is_set`). Once the manifest is checked,
    which has the digests of the images, so is every image that is read.
    """
    try:
        listed = read_checksums(folder)[1]
    except (FileNotFoundError, NotADirectoryError):
        if not is_set:
            return
        raise DamagedError(
            f"{folder / CHECKSUMS}: missing; expected the digest of {MANIFEST} in it: export or fetch the set again"
        ) from None
    for name in (MANIFEST, CLASSES_FILE, CROISSANT, REJECTED_CSV):
        if not (folder / name).is_file() or (found := sha256(read_regular_file(folder / name))) == listed.get(name):
            continue
        if name == MANIFEST and (name not in listed or _described_sha256(folder) == found):
            raise DamagedError(
                f"{folder / CHECKSUMS}: {listed.get(name, 'no SHA-256')} for {name}; expected {found}, which "
                f"{f'{CROISSANT} has too' if name in listed else 'it has'}; see cleanset verify {folder}"
            )
        raise DamagedError(
            f"{folder / name}: SHA-256 {found}, expected {listed.get(name, 'no such file')} as in {CHECKSUMS}; see "
            f"cleanset verify {folder}"
        )


def read_release(folder: Path) -> Release:
    """The release in the Croissant description of a set; one without facts if it is missing."""
    classes = read_class_table(folder)
    try:
        return release_of(read_regular_file(folder / CROISSANT), classes)
    except (OSError, CleansetError):
        return Release(classes=classes)


def read_checksums(folder: Path) -> tuple[str, dict[str, str]]:
    """The text of CHECKSUMS, and the SHA-256 by file that it lists. Raises OSError for a missing one."""
    text = read_regular_file(folder / CHECKSUMS).decode("utf-8", "replace")
    return text, {name: digest for digest, name in _CHECKSUM.findall(text)}


def _described_sha256(folder: Path) -> str | None:
    """The SHA-256 of the manifest in the Croissant description, if there is one that can be read."""
    with suppress(OSError, CleansetError):
        return manifest_sha256_of(read_regular_file(folder / CROISSANT))
    return None


def read_image(folder: Path, entry: Entry) -> bytes:
    """The bytes of an exported image. Raises CleansetError if they are missing or differ from the manifest."""
    path = folder / entry.file
    try:
        data = read_regular_file(path)
    except FileNotFoundError:
        raise DamagedError(f"{path}: missing; see cleanset verify {folder}, and fetch the set again") from None
    if (found := sha256(data)) != entry.file_sha256:
        raise DamagedError(
            f"{path}: SHA-256 {found}, expected {entry.file_sha256} as in the manifest; see cleanset verify {folder}"
        )
    return data
