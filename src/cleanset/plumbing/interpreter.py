"""Starting Python with `-P`: neither this program nor one that it starts imports modules of the current folder.

The current folder may be a stranger's. Without `-P`, `python -m dvc` imports a module `yaml` that is there, and so do
the workers of multiprocessing, which begin as `python -c …`; they inherit the option.
"""

import os
import sys


def python_command(*arguments: str) -> list[str]:
    """The command line that starts this Python with `-P` and these arguments.

    Not with `-I`: the package itself may be found by PYTHONPATH.
    """
    return [sys.executable, "-P", *arguments]


def code_command(code: str, *arguments: str) -> list[str]:
    """The command line of a process that runs some code, which may import libraries: see `safe_imports`."""
    return python_command("-c", f"import cleanset.plumbing.safe_imports\n{code}", *arguments)


def begin_anew() -> None:
    """Replace this process by the same program with `-P`, and in UTF-8 mode where the locale has another encoding.

    Returns if it has both. A set's file names are UTF-8.
    """
    environment = dict(os.environ)
    if sys.getfilesystemencoding() != "utf-8" and "PYTHONUTF8" not in environment:
        terminal = {"PYTHONIOENCODING": f"{sys.stdout.encoding}:backslashreplace"} if sys.stdout else {}
        environment = {**terminal, **environment, "PYTHONUTF8": "1"}
    elif sys.flags.safe_path:
        return
    os.execve(sys.executable, python_command(*sys.orig_argv[1:]), environment)
