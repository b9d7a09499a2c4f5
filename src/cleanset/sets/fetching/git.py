"""A set that a git repository publishes, and files of that repository, read by the program git without a full clone."""

import errno
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cleanset.errors import CleansetError, reason
from cleanset.validation import shown

MAX_TEXT_BYTES = 1 << 24
"""A dvc.lock of ten models has some 30,000 bytes."""

MIN_ROOM_BYTES = 1 << 16
"""Room for what git keeps of a small repository."""

_ROLE = re.compile(r"[a-z][a-z0-9_]*")
COMMIT = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"\w[\w./+@-]*")  # no option of git, and no refspec
_MAYBE_COMMIT = re.compile(r"[0-9a-fA-F]{4,40}")
# git by itself waits for ever for a server that stops sending; with these settings, one minute
_OPTIONS = ("-c", "advice.detachedHead=false", "-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=60")
_PREFIX = re.compile(r"^(fatal|error|remote|ssh): *")
# variables by which a user sets git up for every repository
_SETTINGS = ("GIT_ASKPASS", "GIT_CONFIG", "GIT_EXEC", "GIT_PROXY", "GIT_SSH", "GIT_SSL", "GIT_TERMINAL", "GIT_TRACE")
# lines that git adds to any failure, and that tell nothing about the cause
_BOILERPLATE = ("warning:", "Please make sure you have", "and the repository exists")
# what git says of a disk that it cannot write
_DISK_ERRORS = {
    "No space left on device": errno.ENOSPC,
    "Out of diskspace": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
}
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://.*|[^/@\s]+@[^/:\s]+:.*")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


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
        if not Path(url).is_dir():
            raise CleansetError(f"{url}: not a folder; expected the address of a git repository, such as https://…")
        url = Path(url).resolve().as_uri()
    if not _ROLE.fullmatch(model):  # it becomes the name of a folder
        raise CleansetError(f"model {shown(model)}; expected the role of a model: small letters, digits and _")
    inside = PurePosixPath(folder)
    if inside.is_absolute() or ".." in inside.parts:
        raise CleansetError(f"folder {folder}: outside the repository; expected a folder inside it, such as imagenet")
    if rev == "":
        raise CleansetError(f"{without_credentials(url)}: an empty revision; expected a branch, tag or commit")
    return PublishedSet(url, rev, inside.as_posix(), model)


def is_address(edition: str | Path) -> bool:
    """Whether this is the address of a git repository rather than a folder."""
    return isinstance(edition, str) and _ADDRESS.fullmatch(edition) is not None


def without_credentials(text: str) -> str:
    """The text without the user names and passwords of addresses in it."""
    return _CREDENTIALS.sub("", text)


class UnknownRevisionError(CleansetError):
    """The repository has no such revision."""


class _GitError(Exception):
    """git failed; the message is its standard error."""


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
        listed = self._git("ls-tree", self.commit, "--", path)
        if not listed:
            return None
        if (kind := listed.split()[1]) != "blob":
            raise CleansetError(f"{self.published}, {path}: a {kind} of git; expected a file")
        if (size := int(self._git("cat-file", "-s", f"{self.commit}:{path}"))) > MAX_TEXT_BYTES:
            raise CleansetError(f"{self.published}, {path}: {size:,} bytes; expected at most {MAX_TEXT_BYTES:,}")
        return self._git("cat-file", "blob", f"{self.commit}:{path}")

    def folders_with(self, *names: str) -> list[str]:
        """The folders in which files of all these names lie; "." is the root."""
        listed = self._git("ls-tree", "-r", "--name-only", "-z", self.commit).split("\0")
        having = (
            {PurePosixPath(path).parent.as_posix() for path in listed if PurePosixPath(path).name == name}
            for name in names
        )
        return sorted(set.intersection(*having))

    def _git(self, *arguments: str) -> str:
        try:
            return _git(self.folder, *arguments)
        except _GitError as error:  # what is not there yet is downloaded now
            raise _unreachable(self.published, error) from None


def snapshot(published: PublishedSet, rev: str, folder: Path) -> Snapshot:
    """The repository at a revision, in the new folder `folder`.

    Downloads the files that are read and the names of the others; where `rev` is an abbreviated commit, also the list
    of all commits. Raises UnknownRevisionError, CleansetError if there is no such repository or it does not answer, and
    OSError if the disk with `folder` is full.
    """
    try:
        # without a template, which holds hooks that nothing here runs
        _git(None, "init", "--quiet", "--bare", "--template=", str(folder))
        # a promisor remote is asked for a file only when the file is read
        for key, value in (("url", published.url), ("promisor", "true"), ("partialclonefilter", "blob:none")):
            _git(folder, "config", f"remote.origin.{key}", value)
        return Snapshot(published, folder, _commit(published, rev, folder))
    except _GitError as error:
        # git words a full disk in many ways: whether there is room shows here
        (folder.parent / "room").write_bytes(bytes(MIN_ROOM_BYTES))
        raise _unreachable(published, error) from None


def _commit(published: PublishedSet, rev: str, folder: Path) -> str:
    # servers send branches, tags and full commits; an abbreviated commit is looked up in the history
    if _NAME.fullmatch(rev) and (not _MAYBE_COMMIT.fullmatch(rev) or COMMIT.fullmatch(rev)):
        try:
            _git(folder, "fetch", "--quiet", "--no-tags", "--depth=1", "--filter=blob:none", "origin", rev)
            return _git(folder, "rev-parse", "--verify", "FETCH_HEAD^{commit}").strip()
        except _GitError as error:
            if not re.search(r"couldn't find remote ref|invalid refspec|not our ref|unadvertised object", str(error)):
                raise
    return _commit_in_history(published, folder, rev)


def _commit_in_history(published: PublishedSet, folder: Path, rev: str) -> str:
    refs = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
    # tree:0: the commits alone, without folders and files
    _git(folder, "fetch", "--quiet", "--filter=tree:0", "origin", *refs)
    for name in (rev, f"refs/remotes/origin/{rev}"):
        try:
            # a revision may begin with "-", which git would take for an option
            return _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
        except _GitError:
            continue
    listed = _git(
        folder, "for-each-ref", "--format=%(refname:lstrip=2)", "--sort=-creatordate", "--count=5", "refs/tags"
    ).split()
    tags = f"; its latest tags: {', '.join(listed)}" if listed else ""
    raise UnknownRevisionError(
        f"{without_credentials(published.url)}: no revision {rev}; expected a branch, a tag or a commit of it{tags}"
    )


def _git(folder: Path | None, *arguments: str) -> str:
    """Run git and return its output. Raises _GitError if it fails, and OSError if a disk here is full or read-only."""
    place = [] if folder is None else [f"--git-dir={folder}"]
    try:
        done = subprocess.run(
            ["git", *_OPTIONS, *place, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False,
            env=_environment(),
        )  # fmt: skip
    except FileNotFoundError:
        raise CleansetError(
            "git: not found; expected the program git, which reads the repository: install it"
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        # git marks the lines of the other machine, whose disk is not meant
        here = [line for line in said.splitlines() if not line.startswith("remote:")]
        for phrase, code in _DISK_ERRORS.items():
            if any(phrase in line for line in here):
                raise OSError(code, os.strerror(code))
        raise _GitError(said)
    return done.stdout.decode(errors="replace")


def _environment() -> dict[str, str]:
    """This process's, without what a hook of another repository sets; nobody is asked where nobody can answer."""
    # GIT_DIR and the like, which git sets for its hooks, would lead to that repository
    kept = {name: value for name, value in os.environ.items() if name.startswith(_SETTINGS) or name[:4] != "GIT_"}
    quiet = {} if sys.stdin is not None and sys.stdin.isatty() else {"GIT_TERMINAL_PROMPT": "0"}
    # in English, because _commit reads the messages
    return {**kept, "LC_ALL": "C", **quiet}


def _unreachable(published: PublishedSet, error: _GitError) -> CleansetError:
    lines = [line.strip() for line in str(error).splitlines()]
    said = " ".join(_PREFIX.sub("", line) for line in lines if line and not line.startswith(_BOILERPLATE))
    why = without_credentials(reason(_GitError(said), 240))
    return CleansetError(
        f"{without_credentials(published.url)}: repository unreachable ({why}); expected the address of a git "
        "repository that you may read: check it and the network"
    )
