"""Workers of pytest-xdist, forked by a process that has collected the tests.

Each worker would import every test, and in a fresh clone compile it: 9 to 17 seconds of processor time instead of two.
They share one of multiprocessing's fork servers, which takes four seconds to import torch and the other preloads.

As a program, with the options of a test run, the number of a listening socket and the folder of the client, this is the
process that collects and forks; it ends with its standard input.
"""

import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from multiprocessing import forkserver
from pathlib import Path
from types import ModuleType

import pytest

from tests.forked_commands import Request, enter, leave, serve, start_server

CLIENT_NAME = "python"


def forked_worker(arguments: Sequence[str]) -> Path:
    """The program to start a worker with, instead of Python; the arguments are those of the test run."""
    folder = Path(tempfile.mkdtemp(prefix="workers-"))
    start_server(folder, {CLIENT_NAME: sys.executable}, os.environ, "-m", __name__, *arguments)
    return folder / CLIENT_NAME


def work(request: Request) -> None:
    """Do what `python -c` does with the program of execnet, which reads from standard input what to do."""
    enter(request)
    # it already runs, and is not a child of this process, which could not ask for its state
    forkserver.ensure_running = forkserver._forkserver.ensure_running = lambda: None  # type: ignore[method-assign]
    sys.argv = ["-c"]
    # as Python's own, these close no descriptor when they are replaced
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, closefd=False) for n, mode in enumerate("rww"))
    main = sys.modules["__main__"] = ModuleType("__main__")  # processes that are spawned import no main program
    exec(request.arguments[-1], vars(main))


if __name__ == "__main__":
    *options, number, place = sys.argv[1:]
    with redirect_stdout(StringIO()):  # each worker reports errors itself
        pytest.main([*options, "--collect-only", "--numprocesses=0", "--dist=no"])
    forkserver.ensure_running()
    if command := serve(socket.socket(fileno=int(number)), place, lambda _: True):
        work(command)
        leave(0)
