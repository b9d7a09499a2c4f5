"""Makes a Python process note the files that it opens: first on the path of a program that `opened_files` starts.

Python, of whatever version, imports a module of this name before anything else. It adds the hook, and then imports the
module of this name that would have been found without it.
"""

# ruff: noqa: PTH100, PTH120, SIM105
from __future__ import annotations

import os
import sys

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _start(log: int) -> None:
    def note(kind: str, path: object) -> None:
        if isinstance(path, (str, bytes, os.PathLike)):
            os.write(log, os.fsencode(f"{kind} {os.path.abspath(os.fsdecode(path))}\n"))

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            note("w" if isinstance(flags, int) and flags & _WRITING else "r", path)
        elif event == "import":
            note("r", arguments[1])  # the file of an extension module; None for others

    note("s", os.path.dirname(os.__file__))
    note("p", sys.prefix)
    sys.addaudithook(hook)


if "CLEANSET_OPENED_FILES" in os.environ and hasattr(sys, "addaudithook"):
    _start(os.open(os.environ["CLEANSET_OPENED_FILES"], os.O_WRONLY | os.O_APPEND))
    here = os.path.dirname(os.path.realpath(__file__))
    sys.path = [each for each in sys.path if os.path.realpath(each) != here]
    del sys.modules["sitecustomize"]
    try:
        __import__("sitecustomize")
    except ImportError:
        pass
