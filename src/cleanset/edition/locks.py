"""Repair of what a kill leaves broken while DVC writes: an empty or cut dvc.lock, a cut `.dvc/tmp/rwlock`."""

import fcntl
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import yaml

from cleanset.errors import CleansetError
from cleanset.files import read_bytes, write_text
from cleanset.parsing import parse_json

MAX_DEPTH = 50
"""Nesting in files of DVC, which have under ten levels; PyYAML crashes the process at some 100,000."""

_CONFLICT = re.compile(r"(?m)^(<{7}|>{7}|[|]{7})( |$)")
_MD5 = re.compile(r"[0-9a-f]{32}(\.dir)?")


def repair_locks(edition: Path) -> list[str]:
    """Put back what DVC cannot read any more; return a line for each file that was put back or removed.

    A dvc.lock comes from git's HEAD or from the copy that is kept here whenever the file is whole, whichever is newer.
    What that lacks, `dvc repro` takes from its run cache. Raises CleansetError while a DVC process is at work, if there
    is nothing to put back, and for a merge conflict, whose two sides are for the user to choose from.
    """
    tmp = edition / ".dvc" / "tmp"
    check_idle(tmp)
    done = []
    rwlock = tmp / "rwlock"
    if rwlock.is_file() and _processes(rwlock) is None:
        rwlock.unlink()
        done.append(f"{rwlock}: empty or cut off, removed")
    for lock in lock_files(edition):
        done += _repair(lock, tmp / "whole" / lock.relative_to(edition))
    return done


def _repair(lock: Path, copy: Path) -> list[str]:
    text = _text(lock)
    conflict = _CONFLICT.search(text)
    if conflict:
        line = text.count("\n", 0, conflict.start()) + 1
        raise CleansetError(
            f"{lock}, line {line}: a merge conflict of git; expected a resolved file: keep one side "
            f"(git checkout --ours {lock.name}, or --theirs), then run dvc repro"
        )
    versions = _whole_versions(lock, copy)
    others = [version for version, _ in versions]
    # cut between two stages it can still be read
    if is_whole(text) and (text in others or not any(other.startswith(text) for other in others)):
        if not (copy.is_file() and _text(copy) == text):
            write_text(copy, text)
        return []
    if not versions:
        raise CleansetError(
            f"{lock}: empty or cut off, and neither git nor {copy} has a whole one: remove it; dvc repro then takes "
            "from its cache what it has run before"
        )
    text, origin = versions[0]
    write_text(lock, text)
    return [f"{lock}: empty or cut off, put back from {origin}"]


def _whole_versions(lock: Path, copy: Path) -> list[tuple[str, str]]:
    """Those of the copy and git's dvc.lock that are whole, each with its origin, the newer first."""
    found = []
    if copy.is_file():
        found.append((copy.stat().st_mtime, _text(copy), str(copy)))
    # git keeps no modification times: the copy's is compared with the time of the commit
    text, time = _git(lock, "show", f"HEAD:./{lock.name}"), _git(lock, "log", "-1", "--format=%ct", "--", lock.name)
    # empty outside of a repository, and for a file that no commit has
    if text and time:
        found.append((float(time), text, "git"))
    return [(text, origin) for _, text, origin in sorted(found, reverse=True) if is_whole(text)]


def _git(lock: Path, *arguments: str) -> str:
    """The output of git in the folder of `lock`; empty outside of a repository."""
    try:
        done = subprocess.run(["git", *arguments], cwd=lock.parent, capture_output=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else ""


def is_whole(text: str) -> bool:
    """Whether a dvc.lock is complete: it ends with a line, and every file in it has its path, MD5 and size."""
    try:
        stages = load_yaml(text)["stages"].values() if text.endswith("\n") else None
        return stages is not None and all(_is_complete(entry) for stage in stages for entry in entries(stage))
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError):
        return False


def load_yaml(text: str) -> Any:
    """The content of a file that DVC writes or reads. Raises YAMLError, or ValueError for deep nesting."""
    # the events first: it is building nested values that crashes
    depth, loader = 0, yaml.CSafeLoader(text)
    while loader.check_event():
        event = loader.get_event()
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"lists or tables more than {MAX_DEPTH} deep")
    return yaml.load(text, Loader=yaml.CSafeLoader)


def entries(stage: Any) -> list[Any]:
    """The deps and outs of a stage in a dvc.lock."""
    return [*stage.get("deps", []), *stage["outs"]]


def _is_complete(entry: Any) -> bool:
    is_folder = str(entry["md5"]).endswith(".dir")
    needed = {"path", "hash", "size"} | ({"nfiles"} if is_folder else set())
    return _MD5.fullmatch(str(entry["md5"])) is not None and needed <= set(entry)


def lock_files(edition: Path) -> list[Path]:
    """Every dvc.lock of the edition's DVC project; those of projects inside it are not."""
    return sorted(_lock_files(edition))


def _lock_files(folder: Path) -> Iterator[Path]:
    if (folder / "dvc.lock").is_file():
        yield folder / "dvc.lock"
    for child in folder.iterdir():
        is_plain = child.is_dir() and not child.is_symlink() and not child.name.startswith(".") and child.name != "data"
        if is_plain and not (child / ".dvc").is_dir():
            yield from _lock_files(child)


def check_idle(tmp: Path) -> None:
    """Raise CleansetError if a DVC process is at work in the project whose `.dvc/tmp` this is."""
    for pid in _processes(tmp / "rwlock") or ():
        if _is_dvc(pid):
            raise CleansetError(f"{tmp.parent}: DVC is at work (process {pid}): wait until it has ended")
    for name in ("lock", "rwlock.lock"):
        if (tmp / name).is_file() and _is_locked(tmp / name):
            raise CleansetError(f"{tmp.parent}: DVC is at work ({name} is held): wait until it has ended")


def _is_dvc(pid: int) -> bool:
    """Whether a process runs DVC; another program may have got the number of one that was killed."""
    try:
        # the name may come first (dvc), second (python dvc) or third (python -m dvc)
        return any("dvc" in Path(part).name for part in psutil.Process(pid).cmdline()[:3])
    except psutil.Error:
        return False


def _is_locked(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _processes(rwlock: Path) -> list[int] | None:
    """The processes that a `.dvc/tmp/rwlock` names; None if there is no such file, or DVC cannot read it."""
    try:
        content = parse_json(read_bytes(rwlock), str(rwlock), "DVC's list of processes")
        readers = [info for infos in content.get("read", {}).values() for info in infos]
        return [int(info["pid"]) for info in [*readers, *content.get("write", {}).values()]]
    except (FileNotFoundError, CleansetError, AttributeError, KeyError, TypeError, ValueError):
        return None


def _text(path: Path) -> str:
    """The text of a file; bytes that are not UTF-8, which a damaged one may have, are replaced."""
    return read_bytes(path).decode("utf-8", errors="replace")
