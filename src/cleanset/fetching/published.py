"""What is asked for: the finished set of a model, in an edition of a git repository, at a revision."""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cleanset.errors import CleansetError

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://.*|[^/@\s]+@[^/:\s]+:.*")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class Published:
    """The set of a model in an edition: `folder` of a repository, at a commit, tag or branch (None: its HEAD)."""

    url: str
    rev: str | None
    folder: str
    model: str

    @property
    def export(self) -> str:
        """The path of the export, relative to the edition."""
        return f"data/export/{self.model}"

    def __str__(self) -> str:
        folder = "" if self.folder == "." else f", folder {self.folder}"
        return f"{without_credentials(self.url)}{f' at {self.rev}' if self.rev else ''}{folder}"


def published_set(url: str, rev: str | None, folder: str, model: str) -> Published:
    """A Published with its arguments checked; `url` may also be the path of a repository on this machine."""
    if not is_address(url):
        if not Path(url).is_dir():
            raise CleansetError(f"{url}: no folder; expected the address of a git repository, such as https://…")
        url = Path(url).resolve().as_uri()
    inside = PurePosixPath(folder)
    if inside.is_absolute() or ".." in inside.parts:
        raise CleansetError(f"folder {folder}: outside the repository; expected a folder inside it, such as imagenet")
    if rev == "":
        raise CleansetError(f"{without_credentials(url)}: an empty revision; expected a branch, tag or commit")
    return Published(url, rev, inside.as_posix(), model)


def is_address(edition: str | Path) -> bool:
    """Whether this is the address of a git repository, and no folder."""
    return isinstance(edition, str) and _ADDRESS.fullmatch(edition) is not None


def without_credentials(text: str) -> str:
    """The text without the user names and passwords of addresses in it."""
    return _CREDENTIALS.sub("", text)
