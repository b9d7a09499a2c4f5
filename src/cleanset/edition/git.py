"""Run git without the caller's environment variables that would lead it to another repository.

The repository may be a stranger's, down to its .git/config: what starts a program there is switched off.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from cleanset.errors import CleansetError

_SETTINGS = ("GIT_ASKPASS", "GIT_CONFIG", "GIT_EXEC", "GIT_PROXY", "GIT_SSH", "GIT_SSL", "GIT_TERMINAL", "GIT_TRACE")
"""Prefixes of the environment variables that configure git for every repository."""

_SWITCHED_OFF = (
    # a bare repository among the files of another one, whose config would count
    "-c", "safe.bareRepository=explicit",
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false",
)  # fmt: skip
_OFFLINE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""A partial clone would otherwise fetch missing files, by any program that its config names."""

_OF_ANOTHER_USER = re.compile(r"dubious ownership in repository at '(.+)'")


class GitError(Exception):
    """git failed; the message is its standard error."""


def trust_command(error: GitError) -> str | None:
    """The command that lets git read a repository of another user, which it refused; None for any other error."""
    owned = _OF_ANOTHER_USER.search(str(error))
    return None if owned is None else f"git config --global --add safe.directory {shlex.quote(owned[1])}"


def run_git(folder: Path, *arguments: str, connects: bool = False) -> bytes:
    """Run git in a folder, and return its output. `connects`: to another repository, too.

    Raises GitError if git fails, and CleansetError if it cannot be started.
    """
    # GIT_DIR and the like, which git sets for its hooks, would lead to the repository of the hook
    kept = (name for name in os.environ if name.startswith(_SETTINGS) or name[:4] != "GIT_")
    # in English, because messages are read
    environment = {name: os.environ[name] for name in kept} | {"LC_ALL": "C"} | ({} if connects else _OFFLINE)
    if sys.stdin is None or not sys.stdin.isatty():
        # nobody is asked if nobody can answer
        environment["GIT_TERMINAL_PROMPT"] = "0"
    try:
        done = subprocess.run(
            ["git", *_SWITCHED_OFF, *arguments],
            cwd=folder, input=b"", capture_output=True, check=False, env=environment,
        )  # fmt: skip
    except OSError as error:
        raise CleansetError(f"git: {error.strerror}; expected the program git: install it") from None
    if done.returncode:
        raise GitError(done.stderr.decode(errors="replace"))
    return done.stdout
