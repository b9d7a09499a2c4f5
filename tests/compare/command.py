"""The command line as a person runs it."""

import os
import subprocess
from pathlib import Path


def cleanset(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own, on a terminal of 80 columns."""
    return subprocess.run(
        ["cleanset", *arguments], cwd=cwd, capture_output=True, text=True, check=False,
        env=os.environ | {"COLUMNS": "80"},
    )  # fmt: skip


def says(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    return done.returncode, done.stdout, done.stderr
