"""Files that others published, put by hand into a folder, and known by their digest."""

from dataclasses import dataclass
from pathlib import Path

from cleanset.plumbing.files import read_known


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """A file by its name, where to get it, and its digest."""

    name: str
    origin: str
    """Repository, commit and path."""
    sha256: str

    def missing(self) -> str:
        """What to do where it is not there."""
        return f"needs {self.name} of {self.origin}, in the folder of --files (SHA-256 {self.sha256})"


def read_published(file: PublishedFile, folder: Path | None) -> bytes | None:
    """The bytes of a published file in a folder; None without a folder, and where it is not there.

    Raises CleansetError for a file of this name with other bytes.
    """
    if folder is None or not (folder / file.name).is_file():
        return None
    return read_known(folder / file.name, file.sha256, f"download it again from {file.origin}")
