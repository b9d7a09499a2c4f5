"""The files of a contest, never read through a link: the objects that its log names, and what people write."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_bytes, sha256
from cleanset.plumbing.validation import shown
from cleanset.plumbing.yaml_files import read_yaml

OBJECTS = "objects"
MAX_CHARACTERS = 2**26
"""Size limit of a YAML file: one has a judge's answers of a week."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The files that a log names by their SHA-256."""

    contest: Path
    new: Mapping[str, Path] = field(default_factory=dict)
    """Those not in the folder yet."""

    def path(self, digest: str) -> Path:
        """Where a file lies, whether it is there or not."""
        return self.new.get(digest, self.contest / OBJECTS / digest)

    def read(self, digest: str) -> bytes:
        """The bytes of a file. Raises CleansetError for a link, and for a file that is missing or has changed."""
        path = self.path(digest)
        refuse_link(path.parent)
        refuse_link(path)
        if not path.is_file():
            raise CleansetError(f"{path}: missing; expected every file that the log names: dvc pull")
        data = read_bytes(path)
        if sha256(data) != digest:
            raise CleansetError(f"{path}: SHA-256 {sha256(data)}; expected {digest}: the file has changed")
        return data


def refuse_link(path: Path) -> None:
    """Raise CleansetError for a link: its target may lie anywhere, and change."""
    if path.is_symlink():
        raise CleansetError(f"{path}: a link; expected a file or folder: put a copy of its target in its place")


def read_content(path: Path) -> dict[str, object]:
    """The keys and values of a YAML file. Raises CleansetError, naming the file, for a link and for faults."""
    refuse_link(path)
    found = read_yaml(path, "save it as UTF-8", MAX_CHARACTERS)
    if not isinstance(found, dict):
        raise CleansetError(f"{path}: {shown(found)}; expected keys and values")
    return found


def visible(folder: Path) -> list[Path]:
    """The paths in a folder, sorted, without hidden files; empty without a folder. Raises CleansetError for a link."""
    refuse_link(folder)
    found = sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []
    for path in found:
        refuse_link(path)
    return found
