"""The folder of a finished set: what lies in it beside the folders of the classes."""

from collections.abc import Sequence
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.files import sha256, write_text
from cleanset.sets.croissant import croissant_json
from cleanset.sets.manifest import MANIFEST, Entry, manifest_csv, read_manifest

METADATA = "metadata.csv"
"""The manifest once more, as the library `datasets` wants it: its column of files is called file_name."""
CROISSANT = "croissant.json"
CARD = "README.md"
BESIDE = (MANIFEST, METADATA, CROISSANT, CARD)


def metadata_csv(manifest: str) -> str:
    """METADATA of a manifest."""
    return manifest.replace(",file,", ",file_name,", 1)


def write_manifest(folder: Path, entries: Sequence[Entry]) -> None:
    """Write the manifest, and what is made from it alone."""
    manifest = manifest_csv(entries)
    write_text(folder / MANIFEST, manifest)
    write_text(folder / METADATA, metadata_csv(manifest))
    write_text(folder / CROISSANT, croissant_json(entries, sha256(manifest.encode())))


def manifest_text(path: Path, expected: str = "the folder of an export, or its manifest.csv") -> tuple[str, str]:
    """The text of a manifest, and what to call it; `path` is that of the manifest or of its folder."""
    manifest = path / MANIFEST if path.is_dir() else path
    try:
        return manifest.read_bytes().decode(), str(manifest)
    except FileNotFoundError:
        raise CleansetError(f"{manifest}: missing; expected {expected}") from None
    except UnicodeDecodeError as error:
        raise CleansetError(f"{manifest}: not a text file ({error}); expected a manifest") from None


def read_entries(path: Path) -> list[Entry]:
    """The entries of an export."""
    return read_manifest(*manifest_text(path))


def read_picture(folder: Path, entry: Entry) -> bytes:
    """The bytes of an exported picture. Raises CleansetError if they are missing or not those of the manifest."""
    path = folder / entry.file
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; see cleanset verify {folder}, and fetch the set again") from None
    if (found := sha256(data)) != entry.file_sha256:
        raise CleansetError(
            f"{path}: SHA-256 {found}, expected {entry.file_sha256} as in the manifest; see cleanset verify {folder}"
        )
    return data
