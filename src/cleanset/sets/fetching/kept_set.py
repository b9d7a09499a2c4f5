"""A published set in the cache: its files so far, compared with its list and downloaded from its remote."""

import fcntl
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cleanset.edition.dvc_files import object_path
from cleanset.errors import CleansetError, DamagedError, UnreachableError
from cleanset.plumbing.cache import cache_folder
from cleanset.plumbing.file_locks import locked
from cleanset.plumbing.files import file_state, md5, md5_of, remove_abandoned, sha256, write_text
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.progress import tracked
from cleanset.sets.fetching import repository
from cleanset.sets.fetching.http import MissingError, NoAnswerError
from cleanset.sets.fetching.remotes import Remote
from cleanset.sets.fetching.stores import Store, store_of

STALE_SECONDS = 7 * 24 * 3600
"""Age at which a part of a set that nobody has continued is removed."""

_LIST = "list.json"
_CHECKED = "checked.json"
_PART = "part"
_LOCK = "lock"
THREADS = 16
"""Files that are downloaded at a time."""


@dataclass(frozen=True, slots=True)
class SetLocation:
    """The location of a set's files: the MD5 of their list, and the remote."""

    commit: str
    directory: str
    remote: Remote


class KeptSet:
    """The files of one set: on this machine, whole or in part, and on its remote."""

    def __init__(self, published: repository.PublishedSet, located: SetLocation) -> None:
        self.published = published
        self.located = located
        self.of = short_name(published.url, published.folder, published.export)
        # by content, not by commit: commits that leave a set unchanged share one copy
        self.home = cache_folder() / f"{self.of}-{located.directory[:16]}"
        self.whole = self.home / f"{published.model}-{located.directory[:16]}"
        self.part = self.home / _PART

    def listing(self) -> dict[str, str] | None:
        """MD5 of each file of the set, by path; None if the list is not here, or damaged."""
        try:
            return repository.files_of((self.home / _LIST).read_bytes(), self.located.directory, str(self.home))
        except (OSError, CleansetError):
            return None

    def read(self, file: str, expected: str) -> bytes | None:
        """The bytes of a file, from the set, its part, or those kept alone; None if it is not here, or damaged."""
        for folder in (self.whole, self.part, self.home):
            with suppress(OSError):
                data = (folder / file).read_bytes()
                if md5([data]) == expected:
                    return data
        return None

    def make_way(self, folder: Path, file: str) -> None:
        """Make the folder of a file of the set; what is in the way of both is removed. Only while the set is locked."""
        path = folder / file
        # a damaged cache may have a file where the set has a folder
        for above in reversed(path.relative_to(folder).parents[:-1]):
            if (folder / above).is_symlink() or (folder / above).is_file():
                (folder / above).unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)

    def write(self, folder: Path, file: str, data: bytes) -> None:
        """Store a file of the set atomically, to which `make_way` has made the way."""
        path = folder / file
        # files.replacing would make and lock a folder for each of thousands of files, and the set is locked already
        partial = path.with_name(f".{path.name}.part")
        partial.write_bytes(data)
        partial.replace(path)

    def faulty(self, folder: Path, files: Mapping[str, str], afresh: bool = False) -> list[str]:
        """The files that are missing or have another MD5; one in the same state is not read again."""
        checked = {} if afresh else kept_json(self.home / _CHECKED)
        now: dict[str, list[int]] = {}
        faulty = []
        for file, expected in files.items():
            try:
                state = _state(folder / file)
                if checked.get(file) != state and md5_of(folder / file) != expected:
                    raise FileNotFoundError
                now[file] = state
            except (OSError, CleansetError):  # missing, or not a regular file
                faulty.append(file)
        if now != checked:
            with suppress(OSError):  # a cache that can only be read
                write_text(self.home / _CHECKED, json.dumps(now) + "\n")
        return faulty

    def is_whole(self, files: Mapping[str, str]) -> bool:
        """Whether the set is here: every file, and no other."""
        return self.whole.is_dir() and not self.faulty(self.whole, files) and not surplus(self.whole, files)

    def remove_surplus(self, folder: Path, files: Mapping[str, str]) -> None:
        """Remove everything that the set does not list, such as leftovers of a killed process."""
        for path in surplus(folder, files):
            path.unlink()
        # backwards, so that what a folder holds is removed before the folder
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                with suppress(OSError):  # not empty
                    path.rmdir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from this set; waits for them."""
        self.home.mkdir(parents=True, exist_ok=True)
        with locked(self.home, _LOCK):
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

    @cached_property
    def store(self) -> Store:
        """The remote."""
        return store_of(self.located.remote, self.published.url)

    def notices(self) -> list[str]:
        """What was left out of the remote's settings, if anything was asked of it."""
        return [self.store.notice] if "store" in vars(self) and self.store.notice else []

    def fetched_listing(self) -> dict[str, str]:
        """MD5 of each file of the set, by path; from the remote, if the list is not here."""
        if (files := self.listing()) is not None:
            return files
        directory = self.located.directory
        try:
            data = self.store.read(directory)
        except MissingError:
            raise CleansetError(
                f"{self.store.name}: the list of the set's files is missing there ({object_path(directory)}); "
                f"expected the set that {self.published} names: ask its publisher to run dvc push"
            ) from None
        except NoAnswerError as error:
            raise self._unreachable(error) from None
        files = repository.files_of(data, directory, self.store.name)
        write_text(self.home / _LIST, data.decode())
        return files

    def fetch_alone(self, file: str, expected: str) -> bytes:
        """Fetch a file without the others, and keep it. Raises CleansetError with the fault of the file there."""
        try:
            data = self._checked(file, expected)
        except NoAnswerError as error:
            raise self._unreachable(error) from None
        (self.home / file).write_bytes(data)
        return data

    def download(self, folder: Path, missing: Sequence[str], files: Mapping[str, str]) -> None:
        """Fetch files into a folder, many at a time; all that can be had, before a problem is raised."""

        def download_one(file: str) -> None:
            self.write(folder, file, self._checked(file, files[file]))

        # before the threads begin; two of them may have one folder
        for file in missing:
            self.make_way(folder, file)
        problems: list[CleansetError] = []
        done = 0
        with ThreadPoolExecutor(THREADS) as pool:
            running = [pool.submit(download_one, file) for file in missing]
            try:
                for future in tracked(as_completed(running), len(missing), "fetch"):
                    try:
                        future.result()
                        done += 1
                    except CleansetError as error:
                        problems.append(error)
            # one damaged file says nothing about the next, a remote that does not answer does
            except NoAnswerError as error:
                have = len(files) - len(missing) + done
                raise self._unreachable(error, f"; {have:,} of {len(files):,} files are kept") from None
            finally:
                # otherwise the block would go through all downloads that have not begun
                pool.shutdown(cancel_futures=True)
        if problems:
            # threads finish in any order; the message is the same each time
            first = min(map(str, problems))
            count = f"; problems: {len(problems):,} of {len(files):,} files, this is the first" if problems[1:] else ""
            raise CleansetError(f"{first}{count}")

    def _checked(self, file: str, expected: str) -> bytes:
        where = f"{self.store.name}: {file}"
        publisher = f"ask the publisher of {self.published} to"
        found = ""
        for _ in range(2):  # the line may have damaged it, or the remote
            try:
                data = self.store.read(expected)
            except MissingError:
                raise CleansetError(
                    f"{where} is missing there ({object_path(expected)}); {publisher} run dvc push; all else that was "
                    "fetched is kept"
                ) from None
            if (found := md5([data])) == expected:
                return data
        raise DamagedError(
            f"{where} is damaged there (MD5 {found}, expected {expected}); {publisher} repair it; all else that was "
            "fetched is kept"
        )

    def _unreachable(self, error: NoAnswerError, kept: str = "") -> CleansetError:
        return UnreachableError(
            f"{self.store.name}: remote unreachable ({error}){kept}; expected the files of {self.published}: check "
            "the network and run this again" + "".join(f"; {each}" for each in self.notices())
        )


def surplus(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """The files and links below a folder that a set does not list."""
    there = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return [path for path in there if path.relative_to(folder).as_posix() not in files]


def _state(path: Path) -> list[int]:
    # not of what a link leads to: a link in place of a file counts as a change
    return list(file_state(path.lstat()))


def _age_seconds(part: Path) -> float:
    return time.time() - max((path.lstat().st_mtime for path in (part, *part.iterdir())), default=0)


def short_name(*parts: str) -> str:
    """A name in the cache for an address and what else distinguishes it."""
    return sha256("\n".join(parts).encode())[:16]


def kept_json(path: Path) -> JsonObject:
    """An object; an empty one for a file that is missing or damaged."""
    try:
        found = json.loads(path.read_bytes())
    # json raises RecursionError for deeply nested text
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
