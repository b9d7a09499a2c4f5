"""The commits of a contest, read by git without obeying anything that the repository says.

A config, an attribute or a hook may name programs, replacements may stand for other commits, and a submission may bring
a repository of its own. Git is therefore asked in an empty repository that only borrows the objects of the contest's
one, and files are compared with commits without git.

A commit may carry any date, but it cannot be older than those that it follows: it counts as of the latest date among
itself and all of these.
"""

import datetime
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cleanset.edition.git import GitError, run_git
from cleanset.errors import CleansetError
from cleanset.studies.contest.rules import day_of
from cleanset.validation import shown

_OPTIONS = (
    "core.commitGraph=false",  # a cache of dates and parents that nothing checks
    "gpg.program=false", "gpg.x509.program=false",  # only keys in allowed_signers count
)  # fmt: skip
_GITLINK = "160000"
_MARK = "commit "


@dataclass(frozen=True, slots=True)
class Version:
    """A file as one commit left it; `blob` is None where the commit removed it. `path`: from the contest's folder."""

    at: datetime.datetime
    commit: str
    path: str
    blob: str | None

    @property
    def day(self) -> datetime.date:
        return day_of(self.at)


@contextmanager
def open_history(contest: Path) -> Iterator["History"]:
    """The commits of a contest up to now; none without a repository.

    Raises CleansetError for a repository that git cannot read.
    """
    contest = contest.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        yield History(contest, Path(scratch))


class History:
    """See `open_history`; `folder` is that of an empty repository."""

    def __init__(self, contest: Path, folder: Path) -> None:
        self._contest, self._folder, self._prefix, self._head = contest, folder, "", ""
        self._is_shallow = False
        for top in (contest, *contest.parents):
            if (top / ".git").exists():
                self._prefix = "" if top == contest else contest.relative_to(top).as_posix()
                self._borrow(_git_folder(top / ".git"))
                break

    def _borrow(self, origin: Path) -> None:
        """Make the empty repository, with the objects of another one and its present commit."""
        asked = ("--show-object-format", "--git-path", "shallow", "--git-path", "objects")
        kind, *places = self._git("rev-parse", *asked, origin=origin).splitlines()
        shallow, objects = (origin / place for place in places)
        head = self._git("rev-parse", "--quiet", "--verify", "HEAD", origin=origin, may_fail=True)
        if not head and self._git("for-each-ref", "--count=1", origin=origin):
            raise CleansetError(f"{self._contest}: a repository without HEAD; expected a commit: git checkout a branch")
        for name in ("objects/info", "refs"):
            (self._folder / name).mkdir(parents=True)
        (self._folder / "objects" / "info" / "alternates").write_text(f"{objects.resolve()}\n")
        extension = f"\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = {kind}\n"
        (self._folder / "config").write_text("[core]\n\tbare = true\n" + (extension if kind != "sha1" else ""))
        (self._folder / "HEAD").write_text(head or "ref: refs/heads/none\n")
        self._head, self._is_shallow = head.strip(), shallow.exists()
        if self._is_shallow:
            shutil.copy(shallow, self._folder / "shallow")

    @cached_property
    def is_committed(self) -> bool:
        """Whether there is any commit of the contest. Raises CleansetError for a submodule in one of them."""
        return bool(self.versions(""))

    def require_whole(self) -> None:
        """Raise CleansetError for a shallow clone: the commits that it lacks may be those that matter."""
        if self._is_shallow:
            raise CleansetError(
                f"{self._contest}: a shallow clone, which lacks older commits; expected the whole history: "
                "git fetch --unshallow"
            )

    def _git(self, *arguments: str, origin: Path | None = None, given: str = "", may_fail: bool = False) -> str:
        options = [part for option in _OPTIONS for part in ("-c", option)]
        # nothing of anybody's config counts
        only = {
            "GIT_DIR": str(origin or self._folder), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1", "GIT_LITERAL_PATHSPECS": "1", "GIT_NO_LAZY_FETCH": "1",
        }  # fmt: skip
        try:
            found = run_git(self._folder, *options, *arguments, given=given.encode(), only=only)
        except GitError as error:
            if may_fail:
                return ""
            said = shown(str(error).strip().partition("\n")[0])
            raise CleansetError(
                f"{self._contest}: git cannot read its repository ({said}); expected a whole one: clone it anew"
            ) from None
        return found.decode(errors="surrogateescape")

    @cached_property
    def _instants(self) -> Mapping[str, datetime.datetime]:
        """By commit, when it counts; parents come before their children."""
        found: dict[str, datetime.datetime] = {}
        for line in self._git("log", "--topo-order", "--reverse", "--format=%H,%ct,%P").splitlines():
            commit, date, parents = line.split(",")
            found[commit] = max([self._instant(date), *(found[each] for each in parents.split())])
        return found

    def _instant(self, seconds: str) -> datetime.datetime:
        try:
            return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
        except (ValueError, OverflowError, OSError):
            raise CleansetError(
                f"{self._contest}: a commit dated {shown(seconds)}; expected a date of this contest: leave it out"
            ) from None

    def versions(self, *paths: str) -> list[Version]:
        """Every version of the files below some paths of the contest, oldest first; of merges what they changed."""
        found: list[Version] = []
        commit = ""
        for line in self._log(f"{_MARK}%H", *paths, options=("-c", "--raw", "--no-renames", "--no-abbrev")):
            if line.startswith(_MARK):
                commit = line.removeprefix(_MARK)
            elif line.startswith(":"):
                # of a merge there is a mode and a digest of each parent; those of the result are the last ones
                fields, _, path = line.partition("\t")
                *_, blob, _status = fields.split()
                name = path.removeprefix(f"{self._prefix}/")
                if fields.split()[len(fields) - len(fields.lstrip(":"))].lstrip(":") == _GITLINK:
                    raise CleansetError(
                        f"{self._contest / name}: a submodule in commit {commit[:12]}; expected the files themselves, "
                        "since the commits of another repository show no changes here"
                    )
                found.append(Version(self._instants[commit], commit, name, None if set(blob) == {"0"} else blob))
        # sorting keeps the order of commits of one instant: parents first
        return sorted(found, key=lambda each: each.at)

    def signatures(self, folder: str, signers: Path) -> list[tuple[str, str | None]]:
        """Each commit of a folder and who signed it; None without a good signature by a key in `signers`."""
        keys = ("-c", f"gpg.ssh.allowedSignersFile={signers.resolve()}")
        lines = (line.split(" ", 2) for line in self._log("%H %G? %GS", folder, before=keys))
        return [(commit, signer or None if state == "G" else None) for commit, state, signer in lines]

    def _log(self, form: str, *paths: str, options: Sequence[str] = (), before: Sequence[str] = ()) -> list[str]:
        if not self._head:
            return []
        wanted = [f"{self._prefix}/{path}".strip("/") for path in paths]
        return self._git(
            *before, "log", "--full-history", "--topo-order", "--reverse", "--ignore-submodules=none", *options,
            f"--format={form}", "--", *(each for each in wanted if each),
        ).splitlines()  # fmt: skip

    def texts(self, versions: Sequence[Version]) -> dict[str, bytes]:
        """The contents of versions by their blobs, read by one process."""
        blobs = sorted({each.blob for each in versions if each.blob is not None})
        if not blobs:
            return {}
        output = self._git("cat-file", "--batch", given="\n".join(blobs)).encode(errors="surrogateescape")
        found, place = {}, 0
        while place < len(output):
            end = output.index(b"\n", place)
            blob, *_, size = output[place:end].decode().split()
            if size == "missing":
                raise CleansetError(f"{self._contest}: git lacks {blob[:12]}; expected a whole clone, without a filter")
            found[blob] = output[end + 1 : end + 1 + int(size)]
            place = end + 2 + int(size)
        return found

    def files(self, folder: str, commit: str = "HEAD") -> dict[str, str]:
        """The blobs of the files of a folder in a commit, by their paths from the contest's folder."""
        path = f"{self._prefix}/{folder}".strip("/")
        lines = self._git("ls-tree", "-r", "-z", "--full-tree", commit, f"{path}/").split("\0")[:-1]
        pairs = (line.partition("\t") for line in lines)
        return {name.removeprefix(f"{self._prefix}/"): fields.split()[2] for fields, _, name in pairs}


def _git_folder(link: Path) -> Path:
    """The folder of a repository: a `.git`, or what this names where it is a file, as of a linked working tree."""
    if link.is_dir():
        return link
    return link.parent / link.read_text().removeprefix("gitdir:").strip()


def blob_of(path: Path, like: str) -> str | None:
    """The digest of a file as git stores its bytes, of the same kind as `like`; None without a file."""
    if not path.is_file():
        return None
    data = path.read_bytes()
    kind = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return kind(b"blob %d\0" % len(data) + data).hexdigest()
