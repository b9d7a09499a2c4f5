"""git in a folder that a stranger packed, with its .git/config: none of the programs that it names is run."""

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cleanset.edition.git import GitError, run_git
from cleanset.edition.locks import repair_locks
from cleanset.edition.repository import add_attributes, owner_problem
from cleanset.errors import CleansetError

IDENTITY = {
    f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "A"), ("EMAIL", "a@b"))
}


def plain_git(folder: Path, *arguments: str, given: bytes | None = None) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | IDENTITY, input=given, capture_output=True, check=True
    ).stdout.decode()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that notes that it was run."""
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path / 'has_run'}\nexit 1\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a committed dvc.lock, which is cut off, so that `repair_locks` looks for one in git."""
    folder = tmp_path / "edition"
    folder.mkdir()
    (folder / "dvc.lock").write_text("schema: '2.0'\nstages: {}\n")
    plain_git(folder, "init", "--quiet")
    plain_git(folder, "add", "--all")
    plain_git(folder, "commit", "--quiet", "--message", "A lock")
    (folder / "dvc.lock").write_text("")
    return folder


def signed(folder: Path, program: Path) -> None:
    """HEAD has a signature, and the log shows it."""
    commit = plain_git(folder, "cat-file", "commit", "HEAD")
    head, _, message = commit.partition("\n\n")
    text = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n{message}"
    new = plain_git(folder, "hash-object", "-t", "commit", "-w", "--stdin", given=text.encode()).strip()
    plain_git(folder, "update-ref", "HEAD", new)
    plain_git(folder, "config", "log.showSignature", "true")
    plain_git(folder, "config", "gpg.program", str(program))


def lazy(folder: Path, program: Path) -> None:
    """A partial clone lacks the committed dvc.lock, and fetches it by a program."""
    blob = plain_git(folder, "rev-parse", "HEAD:dvc.lock").strip()
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in (
        ("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"), ("remote.origin.url", f"ext::{program}"), ("protocol.ext.allow", "always"),
    ):  # fmt: skip
        plain_git(folder, "config", key, value)


def embedded(folder: Path, program: Path) -> None:
    """The edition is a bare repository among the files of a clone."""
    (folder / ".git" / "config").write_text(f"[core]\n    bare = true\n    fsmonitor = {program}\n")
    for path in list((folder / ".git").iterdir()):
        path.rename(folder / path.name)
    (folder / ".git").rmdir()


@pytest.mark.parametrize("prepare", [signed, lazy, embedded])
def test_no_program_of_a_repository_is_run(
    prepare: Callable[[Path, Path], None], folder: Path, program: Path, tmp_path: Path
) -> None:
    prepare(folder, program)
    owner_problem(folder)
    add_attributes(folder)
    with suppress(CleansetError):  # no whole dvc.lock is found
        repair_locks(folder)
    assert not (tmp_path / "has_run").exists()


@pytest.mark.parametrize(("prepare", "command"), [(signed, "log -1"), (lazy, "show HEAD:./dvc.lock")])
def test_git_alone_runs_it(
    prepare: Callable[[Path, Path], None], command: str, folder: Path, program: Path, tmp_path: Path
) -> None:
    prepare(folder, program)
    subprocess.run(["git", *command.split()], cwd=folder, capture_output=True, check=False)
    assert (tmp_path / "has_run").exists()


def test_a_bare_repository_among_files_is_refused(folder: Path, program: Path) -> None:
    embedded(folder, program)
    with pytest.raises(GitError, match="cannot use bare repository"):
        run_git(folder, "status")
