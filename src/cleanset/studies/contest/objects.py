"""The files of a contest: the objects that its log names, and what people write, which is read through no link."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_known
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
        """The bytes of a file. Raises CleansetError for one that is missing or has changed."""
        return read_known(self.path(digest), digest, "dvc pull, or git checkout")


def read_content(path: Path) -> dict[str, object]:
    """The keys and values of a YAML file. Raises CleansetError, naming the file, for a link and for faults."""
    refuse_link(path)
    found = read_yaml(path, "save it as UTF-8", MAX_CHARACTERS)
    if not isinstance(found, dict):
        raise CleansetError(f"{path}: {shown(found)}; expected keys and values")
    return found


def refuse_link(path: Path) -> None:
    """Raise CleansetError for a link: its target may be any file of the organizers."""
    if path.is_symlink():
        raise CleansetError(f"{path}: a link; expected a file or folder: put a copy of its target in its place")


def files_in(folder: Path) -> dict[str, Path]:
    """The files in a folder and those in it, by relative path, sorted, without hidden ones. Raises for a link."""
    paths = sorted(folder.rglob("[!.]*"))
    for path in (folder, *paths):
        refuse_link(path)
    return {path.relative_to(folder).as_posix(): path for path in paths if path.is_file()}
