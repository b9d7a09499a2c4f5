"""The command line as a person runs it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

from cleanset.cli import main
from tests.ten_images import FORK_SERVER, server_address, share_server

LIMIT_SECONDS = 120


def _in_child(arguments: tuple[str, ...], cwd: str, variables: Mapping[str, str], folder: str, server: str) -> None:
    share_server(server)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT), descriptor)
    sys.argv = ["cleanset", *arguments]
    main()


def cleanset(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own, on a terminal of 80 columns.

    The process is forked from one that has imported what the commands need, which takes a second each time.
    """
    with tempfile.TemporaryDirectory() as folder:
        variables = os.environ | {"COLUMNS": "80"}
        # the server of forks imports what it is asked to from the folder in which it starts
        with chdir(Path(__file__).parents[3]):
            given = arguments, str(cwd), dict(variables), folder, server_address()
            process = FORK_SERVER.Process(target=_in_child, args=given)
            process.start()
        process.join(LIMIT_SECONDS)
        if process.exitcode is None:
            process.kill()
            raise AssertionError(f"cleanset {' '.join(arguments)}: not done after {LIMIT_SECONDS} s")
        stdout, stderr = (Path(folder, name).read_text() for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess(["cleanset", *arguments], process.exitcode, stdout, stderr)


def says(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    return done.returncode, done.stdout, done.stderr
