"""The command `fetch`: a finished set from a git repository or a release, kept in the cache and checked.

`cleanset.load`, `cleanset.table` and the commands that take a set get it here, too. In the cache are:

revisions/<address, revision>.json        the commit that a branch, tag or HEAD was when it was asked for
sets/<address, commit, path>.json         the MD5 of a set's list of files, and the remote with the files
<address, path>-<MD5>/                    a set:
    lock                                  held by the process that fetches it
    list.json                             its files, as DVC lists them
    checked.json                          state of each file when its MD5 was last computed
    <file>                                one that was asked for without the images, such as manifest.csv
    part/                                 the files so far, until all are there
    <model>-<MD5>/                        the finished set: libraries that cache by a folder's name distinguish sets
releases/<address>.json                   the SHA-256 of the tar that an address had
releases/<SHA-256>/release-<SHA-256>/     a release of `cleanset publish`, unpacked and verified
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from cleanset.classes import CLASSES_FILE
from cleanset.errors import CleansetError, DamagedError
from cleanset.plumbing.cache import cache_folder, writing_cache
from cleanset.plumbing.files import check_new, new_folder, workspace_for, write_text
from cleanset.plumbing.json_files import write_json
from cleanset.sets import verify
from cleanset.sets.description import Release, notices_of, release_of
from cleanset.sets.fetching import repository
from cleanset.sets.fetching.kept_set import KeptSet, SetLocation, kept_json, short_name, surplus
from cleanset.sets.fetching.releases import opened, print_origin
from cleanset.sets.fetching.remotes import SETTINGS
from cleanset.sets.folder import CROISSANT, ManifestText, class_table_of, one_set, read_entries, read_release
from cleanset.sets.manifest import MANIFEST


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
    again; either downloads a release again, where `rev` and `folder` mean nothing. `model` may be empty if one set
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
        if folder == kept.part or missing or force or surplus(folder, files):
            kept.remove_surplus(folder, files)
            _verify(published, folder)
        if folder == kept.part:
            # last: a folder of this name holds a set that is whole and checked
            kept.part.rename(kept.whole)
        # records the states of files, so that the next call need not read the files
        kept.faulty(kept.whole, files)
    with suppress(OSError):
        # the set is there, whether or not old parts can be removed
        kept.remove_stale_parts()
    fetched = _set_at(kept.whole, kept.located.commit)
    return replace(fetched, notices=[*fetched.notices, *kept.notices()])


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
            if found.remote.settings.keys() <= SETTINGS.get(found.remote.kind, {}).keys():
                print_origin(str(published), _location_file(published, commit), is_asked=False)
                return found
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with workspace_for(cache / "repository") as workspace:
        found = _keep_location(_snapshot(published, commit, workspace))
    print_origin(str(published), _location_file(published, found.commit), is_asked=True)
    return found


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
    return cache_folder() / "revisions" / f"{short_name(published.url, published.rev or '')}.json"


def _location_file(published: repository.PublishedSet, commit: str) -> Path:
    name = short_name(published.url, commit, published.folder, published.export)
    return cache_folder() / "sets" / f"{name}.json"


def _known_commit(published: repository.PublishedSet, update: bool) -> object:
    """The commit that the revision is, or was when it was asked for; None if it is to be asked for."""
    if _is_commit(published):
        return published.rev
    return None if update else kept_json(_revision_file(published)).get("commit")


def _keep_location(files: repository.Snapshot) -> SetLocation:
    """The location of a set's files in a snapshot, which is kept, as is the commit of its revision."""
    published = files.published
    found = SetLocation(files.commit, repository.directory_md5(files), repository.remote_of(files))
    write_json(_location_file(published, found.commit), asdict(found))
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
    if not entries:
        raise CleansetError(f"{folder}: a set without images; expected at least one: tell its publisher")
    return FetchedSet(
        folder=folder,
        model=entries[0].model,
        commit=commit,
        images=len(entries),
        notices=notices_of(entries, read_release(folder)),
    )
