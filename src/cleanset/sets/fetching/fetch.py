"""The command `fetch`: a finished set from a git repository; used by `cleanset.load` and `cleanset.table`, too."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cleanset.edition.pipeline import object_path
from cleanset.errors import CleansetError
from cleanset.files import check_new, md5, new_folder, workspace_for
from cleanset.progress import cache_folder, tracked
from cleanset.sets import verify
from cleanset.sets.fetching.cache import KeptSet, SetLocation, keep_commit, keep_location, known_commit, writing
from cleanset.sets.fetching.cache import known_location as known
from cleanset.sets.fetching.dvc_files import directory_md5, files_of, remote_of
from cleanset.sets.fetching.git import COMMIT, PublishedSet, Snapshot, UnknownRevisionError, published_set, snapshot
from cleanset.sets.fetching.stores import MissingError, Store, UnreachableError, store_of
from cleanset.sets.manifest import MANIFEST

THREADS = 16
"""Files that are downloaded at a time."""


@dataclass(frozen=True, slots=True)
class FetchedSet:
    """A set that is on this machine, whole and checked."""

    folder: Path
    model: str
    commit: str
    images: int


def run(
    url: str, model: str, rev: str | None, folder: str, out: Path | None, update: bool = False, force: bool = False
) -> FetchedSet:
    """Fetch a set into the cache, and copy it into the new or empty folder `out`, if one is given.

    `update` asks the repository again what its branch or tag is; `force` computes the MD5 of every file again. Raises
    CleansetError if anything cannot be reached, or is missing or damaged there; what has been fetched is kept.
    """
    if out is not None:
        check_new(out)  # not only after everything has been fetched
    fetched = fetch(published_set(url, rev, folder, model), update, force)
    if out is None:
        return fetched
    with new_folder(out) as copy:
        _copy(fetched.folder, copy)
        if problems := verify.run(copy, decode=False).problems:
            raise CleansetError(f"{fetched.folder}: {problems[0]}; expected the set that was fetched: add --force")
    return FetchedSet(out, fetched.model, fetched.commit, fetched.images)


def _copy(folder: Path, out: Path) -> None:
    # not shutil.copytree, whose error forgets why, and not shutil.copyfile, whose error names the source
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        target = out / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())


def render(fetched: FetchedSet) -> str:
    """The line that the command prints."""
    return (
        f"{fetched.folder}: {fetched.images:,} images of model {fetched.model} at commit {fetched.commit[:12]}, checked"
    )


@writing()
def fetch(published: PublishedSet, update: bool = False, force: bool = False) -> FetchedSet:
    """The set, from this machine if it is here, whole; else what is missing or damaged is fetched. See `run`."""
    located = _located(published, update)
    kept = KeptSet(published, located)
    # without the lock, because a whole set is only read
    if not force and (files := kept.listing()) and kept.whole.is_dir() and not kept.faulty(kept.whole, files):
        return _fetched(published, located, kept, files)
    with kept.locked():
        source = _Source(published, located, kept)
        files = source.listing()
        # looked at again under the lock: another process may have fetched the set meanwhile
        folder = kept.whole if kept.whole.is_dir() else kept.part
        missing = kept.faulty(folder, files, afresh=force)
        source.download(folder, missing, files)
        if folder == kept.part or missing or force:
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
    return _fetched(published, located, kept, files)


@writing()
def manifest(published: PublishedSet, update: bool = False) -> tuple[str, str]:
    """The text of the set's manifest, and its name for messages; fetches no image."""
    located = _located(published, update)
    kept = KeptSet(published, located)
    where = f"{published}, {published.export}/{MANIFEST}"
    files = kept.listing()
    if files is None or (data := _kept_manifest(kept, files)) is None:
        with kept.locked():
            source = _Source(published, located, kept)
            files = source.listing()
            data = source.read(MANIFEST, _manifest_md5(files, where))
            (kept.home / MANIFEST).write_bytes(data)
    try:
        return data.decode(), where
    except UnicodeDecodeError as error:
        raise CleansetError(f"{where}: not a text file ({error}); expected a manifest") from None


def _kept_manifest(kept: KeptSet, files: Mapping[str, str]) -> bytes | None:
    expected = files.get(MANIFEST, "")
    if (data := kept.read(MANIFEST, expected)) is not None:
        return data
    with suppress(OSError):
        data = (kept.home / MANIFEST).read_bytes()
        return data if md5([data]) == expected else None
    return None


def _manifest_md5(files: Mapping[str, str], where: str) -> str:
    if MANIFEST not in files:
        raise CleansetError(f"{where}: not in the set; expected what stage export writes")
    return files[MANIFEST]


def _located(published: PublishedSet, update: bool) -> SetLocation:
    """The location of the set's files: the one kept before, else from the repository."""
    # a branch or tag may move, a full commit cannot
    is_commit = published.rev is not None and COMMIT.fullmatch(published.rev)
    commit = published.rev if is_commit else None if update else known_commit(published)
    if commit and (found := known(published, commit)):
        return found
    cache_folder().mkdir(parents=True, exist_ok=True)
    with workspace_for(cache_folder() / "repository") as workspace:
        files = _snapshot(published, commit, workspace)
        found = SetLocation(files.commit, directory_md5(files), remote_of(files))
    keep_location(published, found)
    if not is_commit:
        keep_commit(published, found.commit)
    return found


def _snapshot(published: PublishedSet, commit: str | None, workspace: Path) -> Snapshot:
    """The repository at the commit that the revision was, if it still has that; else as the revision is now."""
    if commit:
        with suppress(UnknownRevisionError):
            return snapshot(published, commit, workspace / "known")
    return snapshot(published, published.rev or "HEAD", workspace / "now")


class _Source:
    """The files of a set on its remote."""

    def __init__(self, published: PublishedSet, located: SetLocation, kept: KeptSet) -> None:
        self._url = published.url
        self._published = published
        self._located = located
        self._kept = kept
        self._opened: Store | None = None

    def _store(self) -> Store:
        if self._opened is None:
            self._opened = store_of(self._located.remote, self._url)
        return self._opened

    def listing(self) -> dict[str, str]:
        """MD5 of each file of the set, by path."""
        if (files := self._kept.listing()) is not None:
            return files
        directory = self._located.directory
        try:
            data = self._store().read(directory)
        except MissingError:
            raise CleansetError(
                f"{self._store().name}: the list of the set's files is missing there ({object_path(directory)}); "
                f"expected the set that {self._published} names: ask its publisher to run dvc push"
            ) from None
        except UnreachableError as error:
            raise self._unreachable(error, "") from None
        files = files_of(data, directory, self._store().name)
        self._kept.keep_listing(data)
        return files

    def read(self, file: str, expected: str) -> bytes:
        """The bytes of a file, checked. Raises CleansetError that says what is the matter with it there."""
        try:
            return self._checked(file, expected)
        except UnreachableError as error:
            raise self._unreachable(error, "") from None

    def download(self, folder: Path, missing: Iterable[str], files: Mapping[str, str]) -> None:
        """Fetch files into a folder, many at a time; all that can be had, before a problem is raised."""
        wanted = list(missing)
        problems: list[CleansetError] = []
        done = 0
        with ThreadPoolExecutor(THREADS) as pool:
            running = [pool.submit(self._download, folder, file, files[file]) for file in wanted]
            try:
                for future in tracked(as_completed(running), len(wanted), "fetch"):
                    try:
                        future.result()
                        done += 1
                    except CleansetError as error:
                        problems.append(error)
            # one damaged file says nothing about the next, a remote that does not answer does
            except UnreachableError as error:
                have = len(files) - len(wanted) + done
                raise self._unreachable(error, f"; {have:,} of {len(files):,} files are kept") from None
            finally:
                # otherwise the block would go through all downloads that have not begun
                pool.shutdown(cancel_futures=True)
        if problems:
            # threads finish in any order; the message is the same each time
            first = min(map(str, problems))
            count = f"; problems: {len(problems):,} of {len(files):,} files, this is the first" if problems[1:] else ""
            raise CleansetError(f"{first}{count}")

    def _download(self, folder: Path, file: str, expected: str) -> None:
        self._kept.write(folder, file, self._checked(file, expected))

    def _checked(self, file: str, expected: str) -> bytes:
        where = f"{self._store().name}: {file}"
        found = ""
        for _ in range(2):  # the line may have damaged it, or the remote
            try:
                data = self._store().read(expected)
            except MissingError:
                raise CleansetError(
                    f"{where} is missing there ({object_path(expected)}); ask the publisher of {self._published} to "
                    "run dvc push; all else that was fetched is kept"
                ) from None
            if (found := md5([data])) == expected:
                return data
        raise CleansetError(
            f"{where} is damaged there (MD5 {found}, expected {expected}); ask the publisher of {self._published} to "
            "repair it; all else that was fetched is kept"
        )

    def _unreachable(self, error: UnreachableError, kept: str) -> CleansetError:
        return CleansetError(
            f"{self._store().name}: remote unreachable ({error}){kept}; expected the files of {self._published}: check "
            "the network and run this again"
        )


def _verify(published: PublishedSet, folder: Path) -> None:
    problems = verify.run(folder, decode=False).problems
    if problems:
        raise CleansetError(
            f"{published}: the set was published with problems: {len(problems):,}, the first: {problems[0]}; "
            "tell its publisher"
        )


def _fetched(published: PublishedSet, located: SetLocation, kept: KeptSet, files: Mapping[str, str]) -> FetchedSet:
    images = sum("/" in file for file in files)
    return FetchedSet(kept.whole, published.model, located.commit, images)
