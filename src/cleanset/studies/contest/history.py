"""Checks of what was changed after its day: by git's history, by the signatures of commits, and by board/log.

Git's history shows submissions, answers, runs and the board's entries that were changed. Merges are followed: every
commit of every branch that was merged counts, and what counts is the content. Git cannot prove a date: whoever commits
may set the clock back before anything is published.

Signed commits of judges and the board are checked by git with the keys in `allowed_signers` of the contest. The file is
that of OpenSSH (ssh-keygen, ALLOWED SIGNERS): a line for each key, which begins with the id of a judge or the name of a
member of the board.

board/log makes dates visible that were set back: a digest of all that is dated up to a day, each line with the digest
of the line before. Whoever keeps one line can see later whether anything before its day was changed, added or removed,
and whether the lines before it are the same.

A config, an attribute or a hook may name programs, replacements may stand for other commits, and a submission may bring
a repository of its own. Git is therefore asked in an empty repository that only borrows the objects of the contest's
one, and files are compared with commits without git. A commit may carry any date, but it cannot be older than those
that it follows: it counts as of the latest date among itself and all of these.
"""

import datetime
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cleanset.edition.git import GitError, run_git
from cleanset.errors import CleansetError
from cleanset.files import read_bytes, read_text, sha256, write_text
from cleanset.parsing import parse_yaml
from cleanset.studies.contest.files import ContestFiles, Submission, last_day, repeats, until
from cleanset.studies.contest.reading import CONTEST_YAML, LOG, MANIFEST_YAML, REMEDY, SUBMISSION, mask_path
from cleanset.studies.contest.rules import ContestRules, after, day_of, parse_day, week_of_day
from cleanset.validation import Section, shown

ENTRIES = ("answers", "board", "results/runs")
COMMIT_DAYS = 1
"""Days after the date of an answer, a run or an entry of the board until which it has to be committed."""
CONTROLS_YAML = "judges/controls.yaml"
ALLOWED_SIGNERS = "allowed_signers"
_Kind = TypeVar("_Kind")
_MANIFEST = f"/{MANIFEST_YAML}"
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

    def contents(self, *paths: str, ends: tuple[str, ...] = ("",)) -> list[tuple[Version, bytes]]:
        """The versions of the files with these ends of their paths, and what is in them; empty for a removed one."""
        versions = [each for each in self.versions(*paths) if each.path.endswith(ends)]
        texts = self._texts(sorted({each.blob for each in versions if each.blob is not None}))
        return [(each, texts.get(each.blob or "", b"")) for each in versions]

    def _texts(self, blobs: Sequence[str]) -> dict[str, bytes]:
        if not blobs:
            return {}
        # read by one process
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


def check_submission_unchanged(contest: Path, history: History, submission: Submission, on: datetime.date) -> None:
    """Raise CleansetError for a submission that was committed after its day, or changed after its week.

    A folder without history is accepted. Uncommitted changes count on a day `on` after the week's end; `cleanset
    contest check` takes the last day of the files for it.
    """
    folder = contest / str(submission)
    versions = [each for each in history.versions(str(submission)) if each.blob is not None]
    if not versions:
        return
    first, week = versions[0].day, submission.week
    if first > submission.day:
        raise CleansetError(
            f"{folder}: first committed on {first}; expected a commit by its date, {submission.day}: submit it as "
            "of the day of the commit"
        )
    *_, published = (each for each in versions if each.day <= week)
    committed = history.files(str(submission))
    if committed != history.files(str(submission), published.commit):
        changed = f"changed on {versions[-1].day}" if versions[-1].day > week else "changed by a merge"
        raise CleansetError(
            f"{folder}: {changed}, after its publication on {week}; expected what was published: git checkout it from "
            f"a commit before {after(week, 1)}"
        )
    if on > week and any(blob_of(contest / name, like=blob) != blob for name, blob in committed.items()):
        raise CleansetError(f"{folder}: differs from what is committed; expected what was published: git checkout it")


def first_commits(history: History) -> dict[str, datetime.datetime]:
    """By the path of each file from the contest's folder, when it was first committed."""
    return {each.path: each.at for each in reversed(history.versions("submissions", "judges/images"))}


def check_first(contest: Path, history: History, files: ContestFiles) -> None:
    """Raise CleansetError for an image that counts as the first of two equal ones, though it was committed later."""
    manifests = history.contents("submissions", ends=(_MANIFEST,))
    for repeat in repeats(files.submissions):
        pixels = repeat.image.pixels_sha256.encode()
        later, first = (
            next((one.at for one, text in manifests if one.path == path and pixels in text), None)
            for path in (f"{repeat.submission}{_MANIFEST}", f"{repeat.first}{_MANIFEST}")
        )
        if later is not None and (first is None or later < first) and repeat.first.team != repeat.submission.team:
            raise CleansetError(
                f"{contest / str(repeat.first)}: submitted {repeat.first.manifest.submitted:%Y-%m-%dT%H:%M:%SZ}, but "
                f"{repeat.submission} has committed the same image before it; expected the time of its commit"
            )


def check_none_removed(contest: Path, history: History, on: datetime.date) -> None:
    """Raise CleansetError for a published submission that git knows and that was removed or renamed.

    Uncommitted removals count on a day `on` after the week's end, as for `check_submission_unchanged`.
    """
    versions = [each for each in history.versions("submissions") if each.path.endswith(_MANIFEST)]
    for path in sorted({each.path for each in versions}):
        folder = (contest / path).parent
        week = _week_of_submission(folder)
        mine = [each for each in versions if each.path == path]
        removed = max((each.day for each in mine if each.blob is None), default=on)
        was_published = week is not None and any(each.blob and each.day <= week for each in mine)
        if week is not None and was_published and removed > week and not folder.exists():
            raise CleansetError(
                f"{folder}: removed or renamed on {removed}, after its publication on {week}; "
                f"expected what was published: git checkout it from a commit before {after(week, 1)}"
            )


def check_rules(contest: Path, history: History, files: ContestFiles) -> None:
    """Raise CleansetError for a contest.yaml that was changed after the first stake, but for teams that were added.

    A contest whose history is made up may not have begun with another one.
    """
    path = contest / CONTEST_YAML
    read = {each: _tried(_rules, text) for each, text in history.contents(CONTEST_YAML)}
    found = [(each, rules) for each, rules in read.items() if rules is not None]
    if files.rules.history == "made_up":
        last = last_day(files) if files.defences else datetime.date.min
        for version in (each for each, rules in found if each.day <= last and rules.history != "made_up"):
            raise CleansetError(
                f"{path}: history: made_up, but committed on {version.day} without; expected what the contest began "
                "with: git checkout it"
            )
        return
    start = min((each.date for each in files.board.stakes), default=None)
    if start is None or not found:
        return
    # what was committed up to that day, else the first that was committed at all
    version, then = next((each for each in reversed(found) if each[0].day <= start), found[0])
    if version.day > after(start, COMMIT_DAYS):
        raise CleansetError(
            f"{path}: first committed on {version.day}; expected a commit by {after(start, COMMIT_DAYS)}, a day after "
            "the first stake"
        )
    has_all = set(then.teams) <= set(files.rules.teams)
    now = files.rules.model_copy(update={"teams": then.teams} if has_all else {})
    for key in ContestRules.model_fields:
        if getattr(now, key) != getattr(then, key):
            raise CleansetError(
                f"{path}: {key} was changed after {start}, the day of the first stake; expected the rules of that day, "
                f"but for further teams: git checkout it from commit {version.commit[:12]}"
            )


def _tried(read: Callable[[bytes], _Kind], content: bytes) -> _Kind | None:
    """The content of an earlier file, which nobody has checked; None if it cannot be read."""
    try:
        return read(content)
    except (CleansetError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _rules(content: bytes) -> ContestRules:
    return ContestRules.model_validate(parse_yaml(content.decode(), CONTEST_YAML))


def check_entries(contest: Path, history: History) -> None:
    """Raise CleansetError for an answer, a run or an entry of the board that was changed, removed or dated back.

    Each may change until the end of its day, and has to be committed a day later at the latest.
    """
    by_path: dict[str, list[tuple[Version, bytes]]] = {}
    for each, text in history.contents(*ENTRIES, ends=(".yaml", ".json")):
        by_path.setdefault(each.path, []).append((each, text))
    for path, mine in sorted(by_path.items()):
        read = partial(_entries, path)
        found = [(each, _tried(read, text) or {}) for each, text in mine]
        file = contest / path
        current = (_tried(read, file.read_bytes()) if file.is_file() else None) or {}
        for version, entries in found:
            for entry, date in sorted(entries.items()):
                by_day = [each for each, _ in found if each.day <= date]
                is_last_of_day = bool(by_day) and by_day[-1] is version
                # one that was committed later still never counted: it may be taken back
                is_in_time = date < version.day <= after(date, COMMIT_DAYS)
                if entry not in current and (is_in_time or is_last_of_day):
                    raise CleansetError(
                        f"{file}: what was committed on {version.day} for {date} is changed or removed "
                        f"({entry[:60]}…); expected it as it was on that day: git checkout it"
                    )
        for entry, date in sorted(current.items()):
            first = min((each.day for each, entries in found if entry in entries), default=None)
            if first is not None and first > after(date, COMMIT_DAYS):
                raise CleansetError(
                    f"{file}: an entry of {date}, first committed on {first} ({entry[:60]}…); expected a commit by "
                    f"{after(date, COMMIT_DAYS)}: date it on the day of the commit"
                )


def check_controls(contest: Path, history: History, files: ContestFiles) -> None:
    """Raise CleansetError for a control, or its mask, that was changed after the day of the first answer to it.

    Both decide whose answers count. As entries they have to be committed a day later at the latest.
    """
    first: dict[str, datetime.date] = {}
    for each in files.answers:
        for digest in each.answers.keys() & files.controls.keys():
            first[digest] = min(each.answers[digest].date, first.get(digest, datetime.date.max))
    masks = {mask_path(Path(), digest).as_posix(): digest for digest in sorted(first)}
    # without a path, git would tell of the whole repository
    versions = history.versions(*masks) if masks else []
    controls = [(each.day, _tried(_controls, text) or {}) for each, text in history.contents(CONTROLS_YAML)]
    for digest, day in sorted(first.items()):
        of_control = [(on, known.get(digest)) for on, known in controls]
        if controls and _on_its_day(of_control, day) != files.controls[digest].model_dump(mode="json"):
            raise CleansetError(_changed_control(contest / CONTROLS_YAML, digest, day))
    for name, digest in masks.items():
        of_mask = [(each.day, each.blob) for each in versions if each.path == name]
        then = _on_its_day(of_mask, first[digest])
        if of_mask and then != blob_of(contest / name, like=then or ""):
            raise CleansetError(_changed_control(contest / name, digest, first[digest]))


def _on_its_day(versions: Sequence[tuple[datetime.date, _Kind | None]], day: datetime.date) -> _Kind | None:
    """The last version of a day; without one, the first that was committed in time."""
    before = [version for on, version in versions if on <= day]
    if before and before[-1] is not None:
        return before[-1]
    in_time = (version for on, version in versions if day < on <= after(day, COMMIT_DAYS) and version is not None)
    return next(in_time, None)


def _controls(content: bytes) -> dict[str, Any]:
    found: Any = parse_yaml(content.decode(), CONTROLS_YAML)
    return dict(found["controls"])


def _changed_control(path: Path, digest: str, day: datetime.date) -> str:
    return (
        f"{path}: {digest[:12]}… was changed after {day}, when a judge first answered this control; expected it as it "
        "was on that day: git checkout it"
    )


def _entries(path: str, content: bytes) -> dict[str, datetime.date]:
    """The dated entries of a file, as JSON with sorted keys."""
    found: Any = json.loads(content) if path.endswith(".json") else parse_yaml(content.decode(), path)
    if path.startswith("answers/"):
        pairs = [([key, value], value["date"]) for key, value in found["answers"].items()]
    else:
        pairs = [(each, each["date"]) for each in (found if isinstance(found, list) else [found])]
    return {json.dumps(entry, sort_keys=True, default=str): parse_day(date) for entry, date in pairs}


def _week_of_submission(folder: Path) -> datetime.date | None:
    """The week of the day in the folder's name; None for any other name."""
    match = SUBMISSION.fullmatch(folder.name)
    try:
        return week_of_day(parse_day(match[1])) if match else None
    except ValueError:
        return None


def check_signatures(contest: Path, history: History, files: ContestFiles) -> list[str]:
    """A line on the signatures of each judge and the board; none without `allowed_signers`.

    Raises CleansetError for a commit of answers that its judge has not signed, or of the board's files that none of
    its members has, where that judge or any member has a key; for a key of nobody; and for keys that were changed.
    """
    path = contest / ALLOWED_SIGNERS
    keys = _keys(path.read_bytes()) if path.exists() else {}
    if files.board.stakes:
        _check_keys_kept(path, history, keys, min(each.date for each in files.board.stakes))
    for name in sorted(keys.keys() - files.roster - files.rules.board.keys()):
        raise CleansetError(f"{path}: {name}; expected the id of a judge in the roster, or a member of the board")
    folders: Mapping[str, set[str]] = {
        **{f"answers/{judge}": {judge} & keys.keys() for judge in sorted(files.roster)},
        "board": keys.keys() & files.rules.board.keys(),
    }
    lines = []
    for folder, expected in folders.items() if keys else ():
        commits = history.signatures(folder, path)
        for commit, signer in commits:
            if expected and signer not in expected:
                by = "not signed by a known key" if signer is None else f"signed by {signer}"
                raise CleansetError(
                    f"{contest / folder}: commit {commit[:12]} is {by}; expected a signature of "
                    f"{', '.join(sorted(expected))}, by a key in {ALLOWED_SIGNERS}"
                )
        signers = [signer for _, signer in commits if signer is not None]
        if commits:
            names = f", by {', '.join(sorted(set(signers)))}" if signers else ""
            lines.append(f"{folder}: {len(signers)} of {len(commits)} commits signed{names}")
    return lines


def _keys(content: bytes) -> dict[str, list[str]]:
    """The lines of an `allowed_signers` by the name that each begins with."""
    found: dict[str, list[str]] = {}
    for line in content.decode(errors="replace").splitlines():
        if line.strip() and line[0] != "#":
            found.setdefault(line.split()[0], []).append(line)
    return found


def _check_keys_kept(path: Path, history: History, keys: Mapping[str, list[str]], start: datetime.date) -> None:
    """Raise CleansetError where anybody's keys are other ones than at the start, or than when they came later."""
    kept: dict[str, list[str]] = {}
    for each, text in history.contents(ALLOWED_SIGNERS):
        found = _keys(text)
        kept = found if each.day <= start else found | kept
    for name, lines in sorted(kept.items()):
        if keys.get(name) != lines:
            raise CleansetError(
                f"{path}: the keys of {name} were changed after {start}, the day of the first stake; expected them as "
                "they were first committed: git checkout it"
            )


def check_history(contest: Path, files: ContestFiles, history: History, on: datetime.date | None) -> list[str]:
    """The lines of `check_signatures`. Raises CleansetError for whatever was changed after its day, up to `on`."""
    check_rules(contest, history, files)
    if files.rules.history == "made_up":
        return []
    history.require_whole()
    check_none_removed(contest, history, on or (last_day(files) if files.defences else datetime.date.max))
    check_entries(contest, history)
    check_first(contest, history, files)
    check_controls(contest, history, files)
    check_log_kept(contest, history)
    return check_signatures(contest, history, files)


_START = "0" * 64


def digest_of(files: ContestFiles, on: datetime.date) -> str:
    """The SHA-256 of everything in the files that is dated up to a day, in an order of its own."""
    known = until(files, on)
    # the rules have no date; a change of them changes every line
    entries: list[Any] = [["rules", _plain(files.rules)]]
    entries += [["defence", name, known.digests[name]] for name in known.defences]
    entries += [["submission", str(each), _plain(each.manifest)] for each in known.submissions]
    entries += [
        ["answer", str(each), sha, _plain(answer)] for each in known.answers for sha, answer in each.answers.items()
    ]
    entries += [[name, _plain(each)] for name in type(known.board).model_fields for each in getattr(known.board, name)]
    entries += [["run", _plain(each)] for each in known.runs]
    # a control has no date: it counts from its first answer on, since it decides whose answers count
    answered = {sha for each in known.answers for sha in each.answers}
    for sha in answered & known.controls.keys():
        mask = known.masks.get(sha)
        shape = None if mask is None else [*mask.shape, sha256(np.packbits(mask).tobytes())]
        entries.append(["control", sha, _plain(known.controls[sha]), shape])
    lines = sorted(json.dumps(each, sort_keys=True) for each in entries)
    return sha256("\n".join(lines).encode())


def _plain(section: Section) -> Any:
    return section.model_dump(mode="json", exclude_none=True)


def append_log(contest: Path, files: ContestFiles, on: datetime.date) -> str:
    """Add the line of a day to board/log, and return it.

    Raises CleansetError as `check_log` does, and for an older day.
    """
    lines = check_log(contest, files)
    last = lines[-1] if lines else ""
    if last and parse_day(last.split()[0]) >= on:
        raise CleansetError(f"{_path(contest)}: its last line is of {last.split()[0]}; expected a later day than that")
    line = f"{on} {digest_of(files, on)} {sha256(last.encode()) if last else _START}"
    write_text(_path(contest), "".join(f"{each}\n" for each in [*lines, line]))
    return line


def check_log(contest: Path, files: ContestFiles) -> list[str]:
    """The lines of board/log; none without it.

    Raises CleansetError for a line that does not follow from the one before, or from the files as they are now.
    """
    path = _path(contest)
    if not path.exists():
        return []
    lines = read_text(path, REMEDY).splitlines()
    before, last = _START, datetime.date.min
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        try:
            day_text, digest, chained = line.split(" ")
            day = parse_day(day_text)
        except ValueError:
            raise CleansetError(
                f"{where}: {shown(line)}; expected a day, a digest and the digest of the line before: git checkout it"
            ) from None
        if chained != before or day <= last:
            raise CleansetError(f"{where}: does not follow the line before; expected {before}: git checkout it")
        if digest_of(files, day) != digest:
            raise CleansetError(
                f"{where}: the files of {day} have another digest today, {digest_of(files, day)}; expected {digest}: "
                "something dated up to that day was changed, added or removed since"
            )
        before, last = sha256(line.encode()), day
    return lines


def check_log_kept(contest: Path, history: History) -> None:
    """Raise CleansetError for a board/log that lacks a line that was once committed."""
    path = _path(contest)
    content = read_bytes(path) if path.is_file() else b""
    for each, text in history.contents(f"board/{LOG}"):
        if not content.startswith(text):
            raise CleansetError(
                f"{path}: lacks lines that were committed on {each.day}; expected only added lines: git checkout it"
            )


def _path(contest: Path) -> Path:
    return contest / "board" / LOG
