"""A process that sees the disk of an earlier moment, by bubblewrap.

What was written since into the home, working and temporary folders is not there; all else is unchanged.
"""

import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

MOST_LOOKED_AT = 50_000
"""Files and folders that are looked at below each folder, from the top."""
MOST_IN_A_FOLDER = 2_000
"""In folders with more files, nothing is hidden: each file that stays needs its own mount."""


def beginning(moment: float, kept: Collection[Path]) -> list[str] | None:
    """The first words of a command that runs as of `moment`, seconds since 1970; None if bubblewrap cannot.

    `kept`: folders that stay unchanged, whatever is in them. File systems stamp files with a time that may be some
    milliseconds old: what was written just after the moment, and never again, may stay.
    """
    kept = {*kept, Path(sys.prefix), Path(sys.base_prefix)}
    changed = set[Path]()
    for folder in _looked_into():
        changed |= _changed_since(folder, moment, kept)
    options = ["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--die-with-parent"]
    if Path("/dev/shm").is_dir():
        options += ["--tmpfs", "/dev/shm"]
    for folder in sorted({path.parent for path in changed}):
        options += _without(changed, folder)
    options += ["--chdir", str(Path.cwd()), "--"]
    # the superuser of a container may mount in a namespace of users alone
    commands = (["bwrap", *namespace, *options] for namespace in ([], ["--unshare-user"]))
    return next(filter(_runs, commands), None)


def _runs(command: Sequence[str]) -> bool:
    with suppress(OSError):
        return subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return False


def _looked_into() -> set[Path]:
    """The working folder, which may be in another, and the temporary and home folders."""
    folders = {Path.cwd(), Path(tempfile.gettempdir()).resolve(), Path("/var/tmp")}
    with suppress(RuntimeError):  # a user without a home
        folders.add(Path.home().resolve())
    return {each for each in folders if each.is_dir()}


def _changed_since(folder: Path, moment: float, kept: Collection[Path]) -> set[Path]:
    """The files below a folder that were written at or after a moment."""
    found = set[Path]()
    waiting = deque([folder])
    left = MOST_LOOKED_AT
    while waiting and left > 0:
        one = waiting.popleft()
        if one in kept:
            continue
        with suppress(OSError), os.scandir(one) as entries:
            for entry in entries:
                left -= 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                elif _is_written_since(entry, moment):
                    found.add(Path(entry.path))
    return found


def _is_written_since(entry: os.DirEntry[str], moment: float) -> bool:
    with suppress(OSError):
        return entry.stat(follow_symlinks=False).st_ctime >= moment
    return False  # another program has removed it


def _without(changed: Collection[Path], folder: Path) -> list[str]:
    """Options of bubblewrap: a folder in memory, with what of the one on the disk has not changed."""
    with suppress(OSError):  # other programs remove theirs
        entries = sorted(folder.iterdir())
        return _mounts(changed, folder, entries) if len(entries) <= MOST_IN_A_FOLDER else []
    return []


def _mounts(changed: Collection[Path], folder: Path, entries: Sequence[Path]) -> list[str]:
    options = ["--tmpfs", str(folder)]
    for path in entries:
        if path in changed:
            continue
        options += ["--symlink", str(path.readlink())] if path.is_symlink() else ["--bind-try", str(path)]
        options.append(str(path))
    return options
