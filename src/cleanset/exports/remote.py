"""Finished sets that a git repository publishes through DVC."""

import atexit
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleanset.errors import CleansetError
from cleanset.exports import verify
from cleanset.exports.folder import CROISSANT
from cleanset.exports.manifest import MANIFEST
from cleanset.files import remove_abandoned, sha256, workspace_for
from cleanset.machine import cache_folder

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://.*|[^/@\s]+@[^/:\s]+:.*")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Published:
    """The set of a model in an edition: `folder` of a repository, at a commit, tag or branch."""

    url: str
    rev: str | None
    folder: str
    model: str

    @property
    def path(self) -> str:
        """Of the export inside the repository."""
        return Path(self.folder, "data", "export", self.model).as_posix()

    def __str__(self) -> str:
        return f"{self.url}{f' at {self.rev}' if self.rev else ''}, {self.path}"


def is_address(edition: str | Path) -> bool:
    """Whether this is the address of a git repository, and no folder."""
    return isinstance(edition, str) and _ADDRESS.fullmatch(edition) is not None


def fetched(published: Published) -> Path:
    """The folder of a set, fetched and checked unless it is there already."""
    if published.rev and _COMMIT.fullmatch(published.rev) and (known := _kept(published, published.rev)).is_dir():
        return known
    with _opened(published) as (files, commit):
        kept = _kept(published, commit)
        if not kept.is_dir():
            kept.parent.mkdir(parents=True, exist_ok=True)
            remove_abandoned(kept.parent)
            # several processes may come here at once: each fetches for itself, the first one's is kept
            with workspace_for(kept) as workspace:
                partial = workspace / "new"
                files.get(published.path, str(partial), recursive=True)
                _check(published, partial)
                try:
                    partial.rename(kept)
                except OSError:
                    if not kept.is_dir():
                        raise
    return kept


def manifest(published: Published) -> tuple[str, str]:
    """The text of a set's manifest, and its name for messages. Raises CleansetError if CROISSANT describes another."""
    with _opened(published) as (files, _):
        data: bytes = files.read_bytes(f"{published.path}/{MANIFEST}")
        description: bytes = files.read_bytes(f"{published.path}/{CROISSANT}")
        where = f"{published}/{MANIFEST}"
        if sha256(data).encode() not in description:
            raise CleansetError(f"{where}: not the one that {CROISSANT} describes; expected them to go together")
        return data.decode(), where


def _kept(published: Published, commit: str) -> Path:
    name = sha256("\n".join((published.url, commit, published.path)).encode())
    return cache_folder() / name[:16] / published.model


@contextmanager
def _opened(published: Published) -> Iterator[tuple[Any, str]]:
    """The files of the repository, DVC's among them, and its commit; errors become one line."""
    from dvc.api import DVCFileSystem
    from dvc.exceptions import DvcException
    from dvc.repo.open_repo import clean_repos
    from dvc.scm import SCMError
    from dvc_data.index import DataIndexError

    atexit.register(clean_repos)  # DVC's own command line does so
    try:
        files = DVCFileSystem(published.url, rev=published.rev, subrepos=True)
        yield files, files.repo.get_rev()
    except FileNotFoundError:
        raise CleansetError(
            f"{published}: not there; expected an edition that was built and pushed: name its folder, model and rev"
        ) from None
    except (DataIndexError, DvcException, SCMError, UnicodeDecodeError) as error:
        raise CleansetError(f"{published}: {' '.join(str(error).split())}") from None


def _check(published: Published, folder: Path) -> None:
    """Verify what was fetched; DVC does not when it reads from another repository."""
    problems = verify.run(folder, decode=False).problems
    if problems:
        raise CleansetError(f"{published}: problems: {len(problems)}, the first: {problems[0]}")
