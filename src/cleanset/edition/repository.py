"""An edition and git: its repository, its .gitattributes, and DVC's setting for it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cleanset.edition.git import GitError, run_git, trust_command
from cleanset.errors import CleansetError, reason
from cleanset.plumbing.files import is_there, read_text, write_text, write_together

ATTRIBUTES = "* -text\ndvc.lock -merge\n"
"""The .gitattributes of an edition: git changes no line ends, as everything is known by its bytes; and of two branches'
dvc.lock it takes one whole, since a mixture of both makes DVC take the results of one for those of the other."""
_NO_SCM = re.compile(r"(?mi)^[ \t]*no_scm[ \t]*=[ \t]*true[ \t]*\n")
_CORE = re.compile(r"(?m)^\[core\][ \t]*\n")


def git_root(folder: Path) -> Path | None:
    """The git repository around a folder, which need not exist yet; None outside of one. Found as DVC finds it."""
    folder = folder.resolve()
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


def owner_problem(folder: Path) -> str | None:
    """A line that names the remedy, if git refuses the repository around an existing folder as another user's."""
    try:
        run_git(folder, "rev-parse", "--git-dir")
    except GitError as error:
        if (command := trust_command(error)) is not None:
            return (
                f"{folder}: in a git repository of another user, which git does not read, so that nothing can be "
                f"committed; expected a folder of your own, or your trust: {command}"
            )
    except CleansetError:  # no git
        pass
    return None


def begin_repository(folder: Path) -> None:
    """Make an existing folder a git repository. Raises CleansetError if git cannot."""
    try:
        run_git(folder, "init", "--quiet")
    except GitError as error:
        raise CleansetError(f"git init: {reason(error)}; expected a new repository: take --no-git") from None


def config_of(text: str, *, in_git: bool) -> str:
    """The text of a .dvc/config that states, as DVC requires, whether the project is in a git repository."""
    if in_git:
        return _NO_SCM.sub("", text)
    return text if _NO_SCM.search(text) else _CORE.sub("[core]\n    no_scm = true\n", text, count=1)


def scm_problem(edition: Path) -> str | None:
    """A line that names the remedy, if DVC's setting for a git repository is wrong."""
    path = next((path for path, _ in _wrong_configs(edition)), None)
    if path is None:
        return None
    if (root := git_root(edition)) is not None:
        return f"{path}: tells DVC that there is no git repository, but {root} is one; run cleanset doctor"
    return f"{path}: DVC expects a git repository around {edition}; run git init, or cleanset doctor to go without"


def mend_scm(edition: Path) -> list[str]:
    """Set in DVC's files whether the edition is in a git repository; returns a line for each changed file."""
    changed = dict(_wrong_configs(edition))
    write_together(changed)
    found = "in" if git_root(edition) else "outside of"
    return [f"{path}: DVC now works {found} a git repository" for path in changed]


def _wrong_configs(edition: Path) -> Iterator[tuple[Path, str]]:
    """The .dvc/config of the edition and of its projects that are not what they should be, each with the right text."""
    in_git = git_root(edition) is not None
    for path in (edition / ".dvc" / "config", *sorted(edition.glob("studies/*/.dvc/config"))):
        if is_there(path):
            text = read_text(path, "save it as UTF-8")
            if (right := config_of(text, in_git=in_git)) != text:
                yield path, right


def add_attributes(edition: Path) -> list[str]:
    """Add ATTRIBUTES to the .gitattributes of an edition in a git repository that has others.

    Returns a line that reports it.
    """
    try:
        found = os.fsdecode(run_git(edition, "check-attr", "merge", "text", "--", "dvc.lock")).splitlines()
    except (GitError, CleansetError):
        # no repository, or no git: nobody merges here
        return []
    if all(line.endswith(": unset") for line in found):
        return []
    path = edition / ".gitattributes"
    before = read_text(path, "save it as UTF-8") if is_there(path) else ""
    # last, since a later line overrules an earlier one
    gap = "" if not before or before.endswith("\n") else "\n"
    write_text(path, f"{before}{gap}{ATTRIBUTES}")
    return [f"{path}: git now takes one of two branches' dvc.lock whole, and changes no line ends: commit it"]
