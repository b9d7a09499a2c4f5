"""Addresses of published sets, and the git repositories behind them: their files, and where the set's images are.

The program git reads the files without a full clone. The images are on the DVC remote that .dvc/config names, under the
digests in dvc.lock and in DVC's list of the set's folder. (`stores` reads the remote.)
"""

import errno
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import yaml

from cleanset.edition.dvc_files import stages_in
from cleanset.edition.git import GitError, run_git, trust_command
from cleanset.errors import CleansetError, DamagedError, InputError, UnreachableError, reason
from cleanset.plumbing.files import check_unpacked, md5
from cleanset.plumbing.json_files import JsonObject, parse_json
from cleanset.plumbing.validation import ROLE_FORM, shown
from cleanset.sets.fetching.http import redirected, without_credentials
from cleanset.sets.fetching.remotes import Remote, default_remote

MAX_TEXT_BYTES = 1 << 24
"""A dvc.lock of ten models has some 30,000 bytes."""

MIN_ROOM_BYTES = 1 << 16
"""Room for git's data of a small repository."""

MAX_DEPTH = 3
MAX_FOLDERS = 500
"""How far editions are looked for in a repository, to name them."""

COMMIT = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"\w[\w./+@-]*")  # no option of git, and no refspec
_MAYBE_COMMIT = re.compile(r"[0-9a-fA-F]{4,40}")
# git by itself waits for ever for a server that stops sending; with these settings, one minute
_OPTIONS = (
    "-c", "advice.detachedHead=false", "-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=60",
    # `redirected` follows instead, and leads to no internal address
    "-c", "http.followRedirects=false",
)  # fmt: skip
_IS_REDIRECTED = re.compile(r"returned error: 30[12378]")
_REFS = "/info/refs?service=git-upload-pack"
_PREFIX = re.compile(r"^(fatal|error|remote|ssh): *")
# lines that git adds to any failure, and that explain nothing
_BOILERPLATE = ("warning:", "Please make sure you have", "and the repository exists")
# what git says of a disk that it cannot write
_DISK_ERRORS = {
    "No space left on device": errno.ENOSPC,
    "Out of diskspace": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
}
_RECORD = re.compile(
    r"(?:(?:doi:|https?://(?:(?:dx\.)?doi\.org|zenodo\.org/doi)/)?10\.5281/zenodo\.|https://zenodo\.org/records?/)"
    r"([0-9]+)/?",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://.*|[^/@\s]+@[^/:\s]+:.*")


@dataclass(frozen=True, slots=True)
class PublishedSet:
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


def published_set(url: str, rev: str | None, folder: str, model: str) -> PublishedSet:
    """A PublishedSet with its arguments checked; `url` may also be the path of a repository on this machine."""
    if not is_address(url):
        check_unpacked(Path(url), "the tar of cleanset publish, or the folder or address of a git repository")
        if not Path(url).is_dir():
            raise InputError(f"{url}: not a folder; expected the address of a git repository, such as https://…")
        url = Path(url).resolve().as_uri()
    if not ROLE_FORM.fullmatch(model):  # it becomes the name of a folder
        raise InputError(f"model {shown(model)}; expected the role of a model: small letters, digits and _")
    inside = PurePosixPath(folder)
    if inside.is_absolute() or ".." in inside.parts:
        raise InputError(f"folder {folder}: outside the repository; expected a folder inside it, such as imagenet")
    if rev == "":
        raise InputError(f"{without_credentials(url)}: an empty revision; expected a branch, tag or commit")
    return PublishedSet(url, rev, inside.as_posix(), model)


def is_address(edition: str | Path) -> bool:
    """Whether this is the address of a git repository rather than a folder or a release."""
    return isinstance(edition, str) and _ADDRESS.fullmatch(edition) is not None and not is_release(edition)


def is_release(place: str | Path) -> bool:
    """Whether this is a release: a tar or the address of one, or a DOI or record of Zenodo."""
    text = str(place)
    path = urlsplit(text).path if text.startswith(("https://", "http://")) else text
    return path.endswith((".tar", ".tar/content")) or record_number(text) is not None


def record_number(place: str) -> str | None:
    """The number in the DOI or address of a record of Zenodo."""
    found = _RECORD.fullmatch(place)
    return found and found[1]


class UnknownRevisionError(InputError):
    """The repository has no such revision."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a repository at a commit; `folder` is a bare repository that lacks most of them."""

    published: PublishedSet
    folder: Path
    commit: str

    def read(self, path: str) -> str | None:
        """The text of a file, downloaded on first use; None if the commit has no such file.

        Raises CleansetError for a folder or submodule of that name, and for more than MAX_TEXT_BYTES.
        """
        listed = self._git(["ls-tree", self.commit, "--", path])
        if not listed:
            return None
        if (kind := listed.split()[1]) != "blob":
            raise CleansetError(f"{self.published}, {path}: a {kind} of git; expected a file")
        if (size := int(self._git(["cat-file", "-s", f"{self.commit}:{path}"]))) > MAX_TEXT_BYTES:
            raise CleansetError(f"{self.published}, {path}: {size:,} bytes; expected at most {MAX_TEXT_BYTES:,}")
        return self._git(["cat-file", "blob", f"{self.commit}:{path}"])

    def folders_with(self, *names: str) -> list[str]:
        """The folders that contain files of all these names, at most MAX_DEPTH below the root, which is ".".

        All files of a repository cannot be listed: a few objects may name a thousand million.
        """
        found = []
        level = ["."]
        for _ in range(MAX_DEPTH + 1):
            # a folder by its name with "/" is listed by what it contains
            within = [] if level == ["."] else ["--", *(f"{folder}/" for folder in level[:MAX_FOLDERS])]
            listed = self._git(["ls-tree", "-z", self.commit, *within]).split("\0")
            entries = [line.partition("\t") for line in filter(None, listed)]
            paths = {path for _, _, path in entries}
            found += [each for each in level if all(_inside(each, name) in paths for name in names)]
            level = [path for kind, _, path in entries if kind.split()[1] == "tree"]
            if not level:
                break
        return sorted(found)

    def _git(self, arguments: Sequence[str]) -> str:
        try:
            return _git(self.folder, arguments)
        except GitError as error:  # what is not there yet is downloaded now
            raise _unreachable(self.published, error) from None


def snapshot(published: PublishedSet, rev: str, folder: Path) -> Snapshot:
    """The repository at a revision, in the new folder `folder`.

    Downloads the files that are read and the names of the others; where `rev` is an abbreviated commit, also the list
    of all commits. Raises UnknownRevisionError, CleansetError if the repository is missing or does not answer, and
    OSError if the disk with `folder` is full.
    """
    try:
        # without a template, which holds hooks that nothing here runs
        _git(None, ["init", "--quiet", "--bare", "--template=", str(folder)])
        # a promisor remote is asked for a file only when the file is read
        for key, value in (("url", published.url), ("promisor", "true"), ("partialclonefilter", "blob:none")):
            _git(folder, ["config", f"remote.origin.{key}", value])
        try:
            commit = _commit(published, rev, folder)
        except GitError as error:
            if not _IS_REDIRECTED.search(str(error)):
                raise
            address = redirected(published.url + _REFS).removesuffix(_REFS)
            _git(folder, ["config", "remote.origin.url", address])
            commit = _commit(published, rev, folder)
        return Snapshot(published, folder, commit)
    except GitError as error:
        # git words a full disk in many ways: whether there is room shows here
        (folder.parent / "room").write_bytes(bytes(MIN_ROOM_BYTES))
        raise _unreachable(published, error) from None


def _commit(published: PublishedSet, rev: str, folder: Path) -> str:
    # servers send branches, tags and full commits; an abbreviated commit is looked up in the history
    if _NAME.fullmatch(rev) and (not _MAYBE_COMMIT.fullmatch(rev) or COMMIT.fullmatch(rev)):
        try:
            _git(folder, ["fetch", "--quiet", "--no-tags", "--depth=1", "--filter=blob:none", "origin", rev])
            return _git(folder, ["rev-parse", "--verify", "FETCH_HEAD^{commit}"]).strip()
        except GitError as error:
            if not re.search(r"couldn't find remote ref|invalid refspec|not our ref|unadvertised object", str(error)):
                raise
    return _commit_in_history(published, folder, rev)


def _commit_in_history(published: PublishedSet, folder: Path, rev: str) -> str:
    refs = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
    # tree:0: the commits alone, without folders and files
    _git(folder, ["fetch", "--quiet", "--filter=tree:0", "origin", *refs])
    for name in (rev, f"refs/remotes/origin/{rev}"):
        try:
            # a revision may begin with "-", which git would take for an option
            command = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
            return _git(folder, command).strip()
        except GitError:
            continue
    newest = ["--sort=-creatordate", "--count=5"]
    listed = _git(folder, ["for-each-ref", "--format=%(refname:lstrip=2)", *newest, "refs/tags"]).split()
    tags = f"; its latest tags: {', '.join(listed)}" if listed else ""
    raise UnknownRevisionError(
        f"{without_credentials(published.url)}: no revision {rev}; expected a branch, a tag or a commit of it{tags}"
    )


def _git(folder: Path | None, arguments: Sequence[str]) -> str:
    """Run git and return its output. Raises GitError if it fails, and OSError if a disk here is full or read-only."""
    place = [] if folder is None else [f"--git-dir={folder}"]
    try:
        return run_git(Path(), *_OPTIONS, *place, *arguments, connects=True).decode(errors="replace")
    except GitError as error:
        # git marks the lines of the other machine, whose disk is not meant
        here = [line for line in str(error).splitlines() if not line.startswith("remote:")]
        for phrase, code in _DISK_ERRORS.items():
            if any(phrase in line for line in here):
                raise OSError(code, os.strerror(code)) from None
        raise


def _unreachable(published: PublishedSet, error: GitError) -> CleansetError:
    if (command := trust_command(error)) is not None:
        return UnreachableError(
            "a repository of another user, which git does not read; expected a clone of your own, or your trust: "
            f"{command}"
        )
    lines = [line.strip() for line in str(error).splitlines()]
    said = " ".join(_PREFIX.sub("", line) for line in lines if line and not line.startswith(_BOILERPLATE))
    why = without_credentials(reason(GitError(said), 240))
    return UnreachableError(
        f"{without_credentials(published.url)}: repository unreachable ({why}); expected the address of a git "
        "repository that you may read: check it and the network"
    )


MAX_LIST_BYTES = 1 << 24
"""Three times the list of a set with all 50,000 validation images."""
MAX_NAME_BYTES = 255
"""The longest name that file systems take."""

_DIRECTORY = re.compile(r"[0-9a-f]{32}\.dir")
_MD5 = re.compile(r"[0-9a-f]{32}")


_EXPORTS = "data/export/"


def only_model(snapshot: Snapshot) -> str:
    """The model of the only finished set of the edition. Raises CleansetError, which lists them, for another number."""
    models = _models(_outs_of(snapshot))
    if len(models) != 1:
        listed = (
            f"expected the name of one: {', '.join(models)}" if models else "expected an edition with finished sets"
        )
        raise InputError(f"{snapshot.published}: {len(models)} finished sets; {listed}")
    return models[0]


def _models(outs: Mapping[str, object]) -> list[str]:
    return sorted(path.removeprefix(_EXPORTS) for path in outs if path.startswith(_EXPORTS))


def _outs_of(snapshot: Snapshot) -> dict[str, JsonObject]:
    """The outputs in the edition's dvc.lock, by path."""
    asked = snapshot.published
    text = snapshot.read(_inside(asked.folder, "dvc.lock"))
    if text is None:
        # studies have both files, too
        folders = snapshot.folders_with("dvc.lock", "params.yaml")
        folders = [each for each in folders if PurePosixPath(each).parent.name != "studies"]
        found = f"editions are in: {', '.join(folders)}" if folders else "it has no edition"
        raise InputError(f"{asked}: no dvc.lock; expected the folder of an edition (--folder); {found}")
    return _outs(text, f"{asked}, dvc.lock")


def directory_md5(snapshot: Snapshot) -> str:
    """MD5 of the list of the set's files, with its ending `.dir`, from the edition's dvc.lock."""
    asked = snapshot.published
    outs = _outs_of(snapshot)
    if asked.export not in outs:
        models = _models(outs)
        raise InputError(
            f"{asked}: no finished set of model {asked.model}; expected one of {', '.join(models) or 'none'}"
        )
    found = str(outs[asked.export].get("md5"))
    # DVC 2 wrote no key hash; its MD5 of a text file was that of converted line ends
    if not _DIRECTORY.fullmatch(found) or outs[asked.export].get("hash") != "md5":
        raise CleansetError(f"{asked}, dvc.lock: no MD5 of {asked.export}; expected the output of DVC 3")
    return found


def remote_of(snapshot: Snapshot) -> Remote:
    """The default remote of the DVC project that the edition belongs to."""
    asked = snapshot.published
    # an edition may be a DVC project inside another one (dvc init --subdir): the nearest counts
    for root in (PurePosixPath(asked.folder), *PurePosixPath(asked.folder).parents):
        text = snapshot.read(_inside(root.as_posix(), ".dvc/config"))
        if text is not None:
            return default_remote(text, root.as_posix(), f"{asked}, {_inside(root.as_posix(), '.dvc/config')}")
    raise CleansetError(f"{asked}: no .dvc/config; expected a DVC project, which names the remote with the images")


def files_of(listing: bytes, directory: str, where: str) -> dict[str, str]:
    """MD5 of each file of a folder, by path inside it, from DVC's list; the list is checked against its own MD5.

    Raises CleansetError, naming `where`, for a list that is damaged, or that does not list the files of one set.
    """
    what = f"{where}: the list of the set's files"
    found = md5([listing])
    if found != directory.removesuffix(".dir"):
        raise DamagedError(f"{what} is damaged (MD5 {found}, expected {directory[:32]})")
    if len(listing) > MAX_LIST_BYTES:
        raise CleansetError(f"{what} has {len(listing):,} bytes; expected at most {MAX_LIST_BYTES:,}")
    try:
        text = listing.decode()
    except UnicodeDecodeError as error:
        raise CleansetError(f"{what} is not UTF-8 at byte {error.start}; expected the output of DVC 3") from None
    entries = parse_json(text, what, "the output of DVC 3")
    if not isinstance(entries, list) or not entries:
        raise CleansetError(f"{what} is {shown(entries)}; expected an entry for each file, as DVC 3 writes them")
    files: dict[str, str] = {}
    for each in entries:
        path, digest = _path_and_md5(each, what)
        if path in files:
            raise CleansetError(f"{what} has {shown(path)} twice; expected each file once")
        files[path] = digest
    folders = {path.partition("/")[0] for path in files if "/" in path}
    if both := sorted(folders & set(files)):
        raise CleansetError(f"{what} has {shown(both[0])} as a file and as a folder; expected one of the two")
    return files


def _path_and_md5(entry: object, what: str) -> tuple[str, str]:
    """The values of an entry. Raises CleansetError unless the path is one that a set may have, in its only spelling."""
    path, digest = (entry.get("relpath"), entry.get("md5")) if isinstance(entry, dict) else (None, None)
    if not isinstance(path, str) or not isinstance(digest, str) or not _MD5.fullmatch(digest):
        raise CleansetError(f"{what} has the entry {shown(entry)}; expected an MD5 and a path")
    # a set has folders of images, and no folder in these
    names = path.split("/")
    if (
        not path.isprintable()
        or len(names) > 2
        or not all(name not in ("", ".", "..") and len(name.encode()) <= MAX_NAME_BYTES for name in names)
    ):
        raise CleansetError(f"{what} has the path {shown(path)}; expected a path in the set")
    return path, digest


def _outs(text: str, where: str) -> dict[str, JsonObject]:
    """The outs of all stages in a dvc.lock, by path."""
    try:
        outs: dict[str, JsonObject] = {}
        for out in (out for stage in stages_in(text, with_aliases=False).values() for out in stage.get("outs", ())):
            if not isinstance(out, dict) or not isinstance(out["path"], str):
                raise TypeError(f"the out {shown(out)}")
            if out["path"] in outs:
                raise ValueError(f"the out {shown(out['path'])} a second time")
            outs[out["path"]] = out
        return outs
    except (yaml.YAMLError, ValueError, TypeError, KeyError) as error:
        raise CleansetError(f"{where}: not readable ({reason(error)}); expected the output of DVC 3") from None


def _inside(folder: str, name: str) -> str:
    return PurePosixPath(folder, name).as_posix()
