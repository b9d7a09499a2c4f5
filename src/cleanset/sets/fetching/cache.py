"""The cache of fetched sets on this machine: revisions, locations of their files, and the files.

revisions/<address, revision>.json        the commit that a branch, tag or HEAD was when it was asked for
sets/<address, commit, path>.json         the MD5 of a set's list of files, and the remote with the files
<address, path>-<MD5>/                    a set:
    list.json                             its files, as DVC lists them
    checked.json                          size and time of each file when its MD5 was last computed
    part/                                 the files so far, until all are there
    <model>/                              the set, from then on
"""

import fcntl
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cleanset.errors import CleansetError
from cleanset.files import blocks_of, md5, remove_abandoned, sha256, write_text
from cleanset.progress import cache_folder
from cleanset.sets.fetching.dvc_files import Remote, files_of
from cleanset.sets.fetching.git import PublishedSet

STALE_SECONDS = 7 * 24 * 3600
"""Age at which a part of a set that nobody has continued is removed."""

_LIST, _CHECKED, _PART, _LOCK = "list.json", "checked.json", "part", "lock"


@dataclass(frozen=True, slots=True)
class SetLocation:
    """The location of a set's files: the MD5 of their list, and the remote."""

    commit: str
    directory: str
    remote: Remote


def known_commit(published: PublishedSet) -> str | None:
    """The commit that the revision was when it was last asked for."""
    commit = _read_json(_revision_file(published)).get("commit")
    return commit if isinstance(commit, str) else None


def keep_commit(published: PublishedSet, commit: str) -> None:
    """Keep the commit of the revision."""
    write_text(_revision_file(published), json.dumps({"commit": commit, "rev": published.rev}) + "\n")


def known_location(published: PublishedSet, commit: str) -> SetLocation | None:
    """The location of the set's files, if it was kept before."""
    found = _read_json(_location_file(published, commit))
    try:
        directory, remote = found["directory"], Remote(**found["remote"])
        is_whole = isinstance(directory, str) and isinstance(remote.options["url"], str)
    except (KeyError, TypeError):
        return None
    return SetLocation(commit, directory, remote) if is_whole else None


def keep_location(published: PublishedSet, located: SetLocation) -> None:
    """Keep the location of the set's files."""
    write_text(_location_file(published, located.commit), json.dumps(asdict(located), indent=2) + "\n")


@contextmanager
def writing() -> Iterator[None]:
    """Name the cache, and what to do, where a system error in the block comes from it: no room, no permission."""
    try:
        yield
    except OSError as error:
        cache = cache_folder()
        # a write names no file
        at = Path(error.filename).absolute() if isinstance(error.filename, str) else cache
        if error.strerror is None or not (at.is_relative_to(cache) or cache.is_relative_to(at)):
            raise
        raise CleansetError(
            f"{cache}: {error.strerror}; expected a folder for what is fetched, with room, that can be written: free "
            "some, or set CLEANSET_CACHE to another folder"
        ) from None


class KeptSet:
    """The files of one set on this machine, whole or in part."""

    def __init__(self, published: PublishedSet, located: SetLocation) -> None:
        self.model = published.model
        self.directory = located.directory
        self.of = _name(published.url, published.folder, published.export)
        # by content, not by commit: commits that leave a set unchanged share one copy
        self.home = cache_folder() / f"{self.of}-{located.directory[:16]}"
        self.whole = self.home / published.model
        self.part = self.home / _PART

    def listing(self) -> dict[str, str] | None:
        """MD5 of each file of the set, by path; None if the list is not here, or damaged."""
        try:
            return files_of((self.home / _LIST).read_bytes(), self.directory, str(self.home))
        except (OSError, CleansetError):
            return None

    def keep_listing(self, data: bytes) -> None:
        """Store DVC's list of the set's files."""
        write_text(self.home / _LIST, data.decode())

    def read(self, file: str, expected: str) -> bytes | None:
        """The bytes of a file, from the set or its part; None if it is not here, or damaged."""
        for folder in (self.whole, self.part):
            with suppress(OSError):
                data = (folder / file).read_bytes()
                if md5([data]) == expected:
                    return data
        return None

    def write(self, folder: Path, file: str, data: bytes) -> None:
        """Store a file of the set, whole or not at all; what is in its way is removed. Only while the set is locked."""
        path = folder / file
        # a damaged cache may have a file where the set has a folder
        for above in reversed(path.relative_to(folder).parents[:-1]):
            if (folder / above).is_symlink() or (folder / above).is_file():
                (folder / above).unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        # files.replacing would make and lock a folder for each of thousands of files, and the set is locked already
        partial = path.with_name(f".{path.name}.part")
        partial.write_bytes(data)
        partial.replace(path)

    def faulty(self, folder: Path, files: Mapping[str, str], afresh: bool = False) -> list[str]:
        """The files that are missing or have another MD5; one whose size and time are as before is not read again."""
        checked = {} if afresh else _read_json(self.home / _CHECKED)
        now: dict[str, list[int]] = {}
        faulty = []
        for file, expected in files.items():
            try:
                state = _state(folder / file)
                if checked.get(file) != state and md5(blocks_of(folder / file)) != expected:
                    raise FileNotFoundError
                now[file] = state
            except (OSError, CleansetError):  # missing, or not a regular file
                faulty.append(file)
        if now != checked:
            with suppress(OSError):  # a cache that can only be read
                write_text(self.home / _CHECKED, json.dumps(now) + "\n")
        return faulty

    def remove_surplus(self, folder: Path, files: Mapping[str, str]) -> None:
        """Remove everything that the set does not list, such as what a killed process left."""
        # backwards, so that what a folder holds is removed before the folder
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                with suppress(OSError):  # not empty
                    path.rmdir()
            elif path.relative_to(folder).as_posix() not in files:
                path.unlink()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from this set; waits for them."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / _LOCK).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def remove_stale_parts(self) -> None:
        """Remove parts of this set at other revisions, and of any set that nobody has continued for a week."""
        remove_abandoned(cache_folder())
        for part in cache_folder().glob(f"*-*/{_PART}"):
            others = part.parent != self.home
            if others and (part.parent.name.startswith(f"{self.of}-") or _age_seconds(part) > STALE_SECONDS):
                with suppress(OSError), (part.parent / _LOCK).open("ab") as lock:
                    # without waiting: a part that another process is filling is not abandoned
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(part, ignore_errors=True)


def _state(path: Path) -> list[int]:
    # not of what a link leads to: a link in place of a file counts as a change
    status = path.lstat()
    return [status.st_size, status.st_mtime_ns]


def _age_seconds(part: Path) -> float:
    return time.time() - max((path.lstat().st_mtime for path in (part, *part.iterdir())), default=0)


def _revision_file(published: PublishedSet) -> Path:
    return cache_folder() / "revisions" / f"{_name(published.url, published.rev or '')}.json"


def _location_file(published: PublishedSet, commit: str) -> Path:
    return cache_folder() / "sets" / f"{_name(published.url, commit, published.folder, published.export)}.json"


def _name(*parts: str) -> str:
    return sha256("\n".join(parts).encode())[:16]


def _read_json(path: Path) -> dict[str, Any]:
    """An object; an empty one for a file that is missing or damaged."""
    try:
        found = json.loads(path.read_bytes())
    # json raises RecursionError for deeply nested text
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
