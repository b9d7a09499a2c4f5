"""The command `fetch`: a finished set from a git repository or a release, kept in the cache and checked.

`cleanset.load`, `cleanset.table` and the commands that take a set get it here, too. In the cache are:

revisions/<address, revision>.json        the commit that a branch, tag or HEAD was when it was asked for
sets/<address, commit, path>.json         the MD5 of a set's list of files, and the remote with the files
<address, path>-<MD5>/                    a set:
    list.json                             its files, as DVC lists them
    checked.json                          size and time of each file when its MD5 was last computed
    part/                                 the files so far, until all are there
    <model>-<MD5>/                        the set, from then on: libraries that cache by a folder's name tell sets apart
releases/<address>.json                   the SHA-256 of the tar that an address had
releases/<SHA-256>/release-<SHA-256>/     a release of `cleanset publish`, unpacked and verified
"""

import fcntl
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from cleanset.cache import cache_folder, writing_cache
from cleanset.classes import CLASSES_FILE
from cleanset.edition.dvc_files import object_path
from cleanset.errors import CleansetError, DamagedError, InputError, UnreachableError
from cleanset.file_locks import locked
from cleanset.files import (
    check_new,
    md5,
    md5_of,
    new_folder,
    remove_abandoned,
    replacing,
    sha256,
    sha256_of,
    workspace_for,
    write_text,
)
from cleanset.json_files import JsonObject, parse_json
from cleanset.progress import tracked
from cleanset.sets import verify
from cleanset.sets.archive import unpack
from cleanset.sets.description import Release, notices_of, release_of
from cleanset.sets.fetching import repository
from cleanset.sets.fetching.stores import MissingError, NoAnswerError, Store, download, store_of
from cleanset.sets.folder import CROISSANT, ManifestText, class_table_of, one_set, read_entries, read_release, sets_in
from cleanset.sets.manifest import MANIFEST

STALE_SECONDS = 7 * 24 * 3600
"""Age at which a part of a set that nobody has continued is removed."""

_LIST = "list.json"
_CHECKED = "checked.json"
_PART = "part"
_LOCK = "lock"
THREADS = 16
"""Files that are downloaded at a time."""
ZENODO_API = "https://zenodo.org/api/records/"
MAX_RELEASE_BYTES = 1 << 36
"""Limit of a tar; one with the images of 1,000 classes has 0.3 GB."""


@dataclass(frozen=True, slots=True)
class SetLocation:
    """The location of a set's files: the MD5 of their list, and the remote."""

    commit: str
    directory: str
    remote: repository.Remote


class KeptSet:
    """The files of one set: on this machine, whole or in part, and on its remote."""

    def __init__(self, published: repository.PublishedSet, located: SetLocation) -> None:
        self.published = published
        self.located = located
        self.of = _name(published.url, published.folder, published.export)
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
        """The files that are missing or have another MD5; one whose size and time are as before is not read again."""
        checked = {} if afresh else _read_json(self.home / _CHECKED)
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
        return self.whole.is_dir() and not self.faulty(self.whole, files) and not _surplus(self.whole, files)

    def remove_surplus(self, folder: Path, files: Mapping[str, str]) -> None:
        """Remove everything that the set does not list, such as leftovers of a killed process."""
        for path in _surplus(folder, files):
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

        # before the threads begin, of which two may have one folder
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
            "the network and run this again"
        )


def _surplus(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """The files and links below a folder that a set does not list."""
    there = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return [path for path in there if path.relative_to(folder).as_posix() not in files]


def _state(path: Path) -> list[int]:
    # not of what a link leads to: a link in place of a file counts as a change
    status = path.lstat()
    return [status.st_size, status.st_mtime_ns]


def _age_seconds(part: Path) -> float:
    return time.time() - max((path.lstat().st_mtime for path in (part, *part.iterdir())), default=0)


def _name(*parts: str) -> str:
    return sha256("\n".join(parts).encode())[:16]


def _read_json(path: Path) -> JsonObject:
    """An object; an empty one for a file that is missing or damaged."""
    try:
        found = json.loads(path.read_bytes())
    # json raises RecursionError for deeply nested text
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class FetchedSet:
    """A set that is on this machine, whole and checked; `notices`: its limits, in sentences.

    `commit` is empty for a set of a release.
    """

    folder: Path
    model: str
    commit: str
    images: int
    notices: Sequence[str]


def run(
    url: str, model: str, rev: str | None, folder: str, out: Path | None, update: bool = False, force: bool = False
) -> FetchedSet:
    """Fetch a set into the cache, and copy it into the new or empty folder `out`, if one is given.

    `update` asks the repository again for the commit of its branch or tag; `force` computes the MD5 of every file
    again; either downloads a release again, where `rev` and `folder` mean nothing. `model` may be empty where one set
    is there: a repository is then asked which, at the same commit. Raises CleansetError if anything cannot be reached,
    or is missing or damaged there; files fetched from a repository are kept.
    """
    if out is not None:
        check_new(out)  # not only after everything has been fetched
    if not repository.is_release(url):
        if model:
            fetched = fetch(repository.published_set(url, rev, folder, model), update, force)
        else:
            # its location is known then, and a branch is asked once
            fetched = fetch(_only_set(repository.published_set(url, rev, folder, "any"), update), force=force)
    elif rev is not None or folder != ".":
        raise CleansetError(f"{url}: a release; expected --rev and --folder with a git repository alone")
    else:
        fetched = _set_at(one_set(opened(url, update or force), model), "")
    if out is None:
        return fetched
    with new_folder(out) as copy:
        _copy(fetched.folder, copy)
        if problems := verify.run(copy, decode=False).problems:
            raise CleansetError(f"{fetched.folder}: {problems[0]}; expected the set that was fetched: add --force")
    return replace(fetched, folder=out)


def _copy(folder: Path, out: Path) -> None:
    # not shutil.copytree, whose error forgets why, and not shutil.copyfile, whose error names the source
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        target = out / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())


def render(fetched: FetchedSet) -> str:
    """The lines that the command prints."""
    images = f"{fetched.images:,} images of model {fetched.model}"
    at = f"at commit {fetched.commit[:12]}" if fetched.commit else "of a release"
    return "\n".join([f"{fetched.folder}: {images} {at}, checked", *fetched.notices])


@writing_cache()
def fetch(published: repository.PublishedSet, update: bool = False, force: bool = False) -> FetchedSet:
    """The set, from this machine if it is complete here; otherwise missing and damaged files are fetched. See `run`."""
    kept = KeptSet(published, _located(published, update))
    # without the lock, because a whole set is only read
    if not force and (files := kept.listing()) and kept.is_whole(files):
        return _set_at(kept.whole, kept.located.commit)
    with kept.locked():
        files = kept.fetched_listing()
        # looked at again under the lock: another process may have fetched the set meanwhile
        folder = kept.whole if kept.whole.is_dir() else kept.part
        missing = kept.faulty(folder, files, afresh=force)
        kept.download(folder, missing, files)
        if folder == kept.part or missing or force or _surplus(folder, files):
            kept.remove_surplus(folder, files)
            _verify(published, folder)
        if folder == kept.part:
            # last: a folder of this name holds a set that is whole and checked
            kept.part.rename(kept.whole)
        # records sizes and times, so that the next call need not read the files
        kept.faulty(kept.whole, files)
    with suppress(OSError):
        # the set is there, whether or not old parts can be removed
        kept.remove_stale_parts()
    return _set_at(kept.whole, kept.located.commit)


@writing_cache()
def descriptions(published: repository.PublishedSet, update: bool = False) -> tuple[ManifestText, Release]:
    """The set's manifest and its release; fetches no image."""
    kept = KeptSet(published, _located(published, update))
    where = f"{published}, {published.export}"
    names = (MANIFEST, CROISSANT, CLASSES_FILE)
    files = kept.listing() or {}
    texts = {name: kept.read(name, files[name]) for name in names if name in files}
    if not files or None in texts.values():
        with kept.locked():
            files = kept.fetched_listing()
            found = ((name, files[name]) for name in names if name in files)
            texts = {name: kept.read(name, md5) or kept.fetch_alone(name, md5) for name, md5 in found}
    if MANIFEST not in files:
        raise CleansetError(f"{where}/{MANIFEST}: not in the set; expected the output of stage export")
    manifest, croissant, classes = (texts.get(name) or b"" for name in names)
    table = class_table_of(classes, f"{where}/{CLASSES_FILE}")
    try:
        text = manifest.decode()
    except UnicodeDecodeError as error:
        raise CleansetError(f"{where}/{MANIFEST}: not a text file ({error}); expected a manifest") from None
    return ManifestText(text, f"{where}/{MANIFEST}", table), release_of(croissant, table)


def _located(published: repository.PublishedSet, update: bool) -> SetLocation:
    """The location of the set's files: the one kept before, else from the repository."""
    commit = _known_commit(published, update)
    if isinstance(commit, str):
        with suppress(OSError, ValidationError):
            found = TypeAdapter(SetLocation).validate_json(_location_file(published, commit).read_bytes())
            if "url" in found.remote.options:
                return found
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with workspace_for(cache / "repository") as workspace:
        return _keep_location(_snapshot(published, commit, workspace))


@writing_cache()
def _only_set(anyones: repository.PublishedSet, update: bool) -> repository.PublishedSet:
    """The only set of the edition, whatever the model of `anyones`; its location is kept, as `_located` finds it."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with workspace_for(cache / "repository") as workspace:
        files = _snapshot(anyones, _known_commit(anyones, update), workspace)
        published = replace(anyones, model=repository.only_model(files))
        _keep_location(replace(files, published=published))
    return published


def _is_commit(published: repository.PublishedSet) -> bool:
    """Whether the revision is a full commit: a branch or tag may move, that cannot."""
    return published.rev is not None and repository.COMMIT.fullmatch(published.rev) is not None


def _revision_file(published: repository.PublishedSet) -> Path:
    return cache_folder() / "revisions" / f"{_name(published.url, published.rev or '')}.json"


def _location_file(published: repository.PublishedSet, commit: str) -> Path:
    name = _name(published.url, commit, published.folder, published.export)
    return cache_folder() / "sets" / f"{name}.json"


def _known_commit(published: repository.PublishedSet, update: bool) -> object:
    """The commit that the revision is, or was when it was asked for; None if it is to be asked for."""
    if _is_commit(published):
        return published.rev
    return None if update else _read_json(_revision_file(published)).get("commit")


def _keep_location(files: repository.Snapshot) -> SetLocation:
    """The location of a set's files in a snapshot, which is kept, as is the commit of its revision."""
    published = files.published
    found = SetLocation(files.commit, repository.directory_md5(files), repository.remote_of(files))
    write_text(_location_file(published, found.commit), json.dumps(asdict(found), indent=2) + "\n")
    if not _is_commit(published):
        write_text(_revision_file(published), json.dumps({"commit": found.commit, "rev": published.rev}) + "\n")
    return found


def _snapshot(published: repository.PublishedSet, commit: object, workspace: Path) -> repository.Snapshot:
    """The repository at the commit that the revision was, if it still has that; else as the revision is now."""
    if isinstance(commit, str):
        with suppress(repository.UnknownRevisionError):
            return repository.snapshot(published, commit, workspace / "known")
    return repository.snapshot(published, published.rev or "HEAD", workspace / "now")


def _verify(published: repository.PublishedSet, folder: Path) -> None:
    problems = verify.run(folder, decode=False).problems
    if problems:
        raise DamagedError(
            f"{published}: the set was published with problems: {len(problems):,}, the first: {problems[0]}; "
            "tell its publisher"
        )


def _set_at(folder: Path, commit: str) -> FetchedSet:
    entries = read_entries(folder)
    return FetchedSet(
        folder=folder,
        model=entries[0].model,
        commit=commit,
        images=len(entries),
        notices=notices_of(entries, read_release(folder)),
    )


@writing_cache()
def opened(place: str | Path, afresh: bool = False) -> Path:
    """The folder of a release, in the cache; any other path as it is. `afresh`: not as it is in the cache already.

    Raises CleansetError for a release that is not the file of its record, or has a set that does not verify.
    """
    if not repository.is_release(place) or Path(place).is_dir():
        return Path(place)
    if Path(place).is_file():
        return _unpacked(Path(place), str(place), afresh)
    if "://" not in str(place) and repository.record_number(str(place)) is None:
        raise InputError(f"{place}: missing; expected the tar of a release, its address, or a DOI")
    known = cache_folder() / "releases" / f"{_name(str(place))}.json"
    folder = _release_folder(str(_read_json(known).get("sha256")))
    if afresh or not folder.is_dir():
        known.parent.mkdir(parents=True, exist_ok=True)
        with workspace_for(known) as workspace:
            tar = _downloaded(str(place), workspace)
            folder = _unpacked(tar, str(place), afresh)
            write_text(known, json.dumps({"sha256": sha256_of(tar)}) + "\n")
    return folder


def _downloaded(address: str, workspace: Path) -> Path:
    """The tar of a release, compared with the size and MD5 in its record if it is in one."""
    tar = workspace / "release.tar"
    record = workspace / "record.json"
    number = repository.record_number(address)
    if number is None:
        download(address, tar, MAX_RELEASE_BYTES)
        return tar
    download(ZENODO_API + number, record, repository.MAX_TEXT_BYTES)
    files = parse_json(record.read_text("utf-8", "replace"), ZENODO_API + number, "a record of Zenodo")
    try:
        ((url, size, digest),) = (
            (each["links"]["self"], min(int(each["size"]), MAX_RELEASE_BYTES), each["checksum"])
            for each in files["files"]
            if each["key"].endswith(".tar")
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        raise CleansetError(
            f"{ZENODO_API}{number}: not Zenodo's answer for an open record with one tar; expected one of "
            "cleanset publish: give the address of the tar"
        ) from None
    download(url, tar, max(size, 0))
    if (found := f"md5:{md5_of(tar)}") != digest:
        raise DamagedError(f"{address}: {found}, expected {digest} as in the record: run this again")
    return tar


def _release_folder(digest: str) -> Path:
    return cache_folder() / "releases" / digest[:32] / f"release-{digest[:16]}"


def _unpacked(tar: Path, name: str, afresh: bool) -> Path:
    """The folder in a tar, which messages call `name`, verified and in the cache."""
    folder = _release_folder(sha256_of(tar))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent):
        if afresh or not folder.is_dir():
            with replacing(folder) as partial, unpack(tar, partial.parent) as (inside, same_bytes):
                problems = [each for at in sets_in(inside) for each in verify.run(at, decode=False).problems]
                if problems or not same_bytes or not sets_in(inside):
                    what = problems[0] if problems else "not the bytes that cleanset publish gives, or no finished set"
                    raise DamagedError(f"{name}: {what}; expected a release: tell its publisher")
                inside.rename(partial)
    return folder
