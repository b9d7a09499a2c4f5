"""Run git without the caller's environment variables that would lead it to another repository."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from cleanset.errors import CleansetError

_SETTINGS = ("GIT_ASKPASS", "GIT_CONFIG", "GIT_EXEC", "GIT_PROXY", "GIT_SSH", "GIT_SSL", "GIT_TERMINAL", "GIT_TRACE")
"""Prefixes of the environment variables that configure git for every repository."""

_OF_ANOTHER_USER = re.compile(r"dubious ownership in repository at '(.+)'")


class GitError(Exception):
    """git failed; the message is its standard error."""


def trust_command(error: GitError) -> str | None:
    """The command that lets git read a repository of another user, which it refused; None for any other error."""
    owned = _OF_ANOTHER_USER.search(str(error))
    return None if owned is None else f"git config --global --add safe.directory {shlex.quote(owned[1])}"


def run_git(folder: Path, *arguments: str) -> bytes:
    """Run git in a folder, and return its output.

    Raises GitError if git fails, and CleansetError if it cannot be started.
    """
    # GIT_DIR and the like, which git sets for its hooks, would lead to the repository of the hook
    kept = (name for name in os.environ if name.startswith(_SETTINGS) or name[:4] != "GIT_")
    # in English, because messages are read
    environment = {name: os.environ[name] for name in kept} | {"LC_ALL": "C"}
    if sys.stdin is None or not sys.stdin.isatty():
        # nobody is asked where nobody can answer
        environment["GIT_TERMINAL_PROMPT"] = "0"
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, input=b"", capture_output=True, check=False, env=environment
        )
    except OSError as error:
        raise CleansetError(f"git: {error.strerror}; expected the program git: install it") from None
    if done.returncode:
        raise GitError(done.stderr.decode(errors="replace"))
    return done.stdout
