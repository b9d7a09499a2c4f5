"""Signed commits of judges and the board, checked by git with the keys in `allowed_signers` of the contest.

The file is that of OpenSSH (ssh-keygen, ALLOWED SIGNERS): a line for each key, which begins with the id of a judge or
the name of a member of the board.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.files import read_text
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.history import git
from cleanset.studies.contest.reading import REMEDY

ALLOWED_SIGNERS = "allowed_signers"
_MARK = "commit "


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit, and who signed it; None without a signature that is good by one of the keys."""

    name: str
    signer: str | None


def check_signatures(contest: Path, files: ContestFiles) -> list[str]:
    """A line on the signatures of each judge and the board; none without `allowed_signers`.

    Raises CleansetError for a commit of answers that its judge has not signed, or of the board's files that none of
    its members has, where that judge or any member has a key; and for a key of nobody.
    """
    path = contest / ALLOWED_SIGNERS
    if not path.exists():
        return []
    people = {line.split()[0] for line in read_text(path, REMEDY).splitlines() if line.strip() and line[0] != "#"}
    for name in sorted(people - files.roster - files.rules.board.keys()):
        raise CleansetError(f"{path}: {name}; expected the id of a judge in the roster, or a member of the board")
    folders: Mapping[str, set[str]] = {
        **{f"answers/{judge}": {judge} & people for judge in sorted(files.roster)},
        "board": people & files.rules.board.keys(),
    }
    lines = []
    for folder, expected in folders.items():
        commits = _commits(contest, path, folder)
        for each in commits:
            if expected and each.signer not in expected:
                raise CleansetError(
                    f"{contest / folder}: commit {each.name[:12]} is {_by(each)}; expected a signature of "
                    f"{', '.join(sorted(expected))}, by a key in {ALLOWED_SIGNERS}"
                )
        if commits:
            lines.append(_line(folder, commits))
    return lines


def _commits(contest: Path, signers: Path, folder: str) -> list[_Commit]:
    log = git(
        contest, "-c", f"gpg.ssh.allowedSignersFile={signers.resolve()}", "log", "--full-history",
        f"--format={_MARK}%H %G? %GS", "--", folder,
    )  # fmt: skip
    found = []
    for line in (log or "").splitlines():
        name, state, *signer = line.removeprefix(_MARK).split(" ", 2)
        found.append(_Commit(name, signer[0] if state == "G" and signer and signer[0] else None))
    return found


def _by(commit: _Commit) -> str:
    return "not signed by a known key" if commit.signer is None else f"signed by {commit.signer}"


def _line(folder: str, commits: Sequence[_Commit]) -> str:
    signers = sorted({each.signer for each in commits if each.signer is not None})
    signed = sum(each.signer is not None for each in commits)
    return f"{folder}: {signed} of {len(commits)} commits signed{', by ' + ', '.join(signers) if signers else ''}"
