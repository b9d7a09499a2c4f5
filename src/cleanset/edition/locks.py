"""Restore the files of DVC that a kill left broken: an empty or cut dvc.lock, a cut list of processes."""

import fcntl
import re
from pathlib import Path

from cleanset.edition.dvc_files import is_whole, lock_files
from cleanset.edition.git import GitError, run_git
from cleanset.errors import CleansetError
from cleanset.plumbing.files import check_no_links, read_bytes, write_text
from cleanset.plumbing.json_files import parse_json

_CONFLICT = re.compile(r"(?m)^(<{7}|>{7}|[|]{7})( |$)")


def repair_locks(edition: Path) -> list[str]:
    """Restore files that DVC cannot read any more; return a line for each file that was restored or removed.

    A dvc.lock comes from git's HEAD or from the copy that is kept here whenever the file is whole, whichever is newer.
    `dvc repro` takes the missing entries from its run cache. A cut dvc.lock that is the beginning of neither is kept
    next to it. Raises CleansetError while a DVC process is at work, if no whole copy exists, for a dvc.lock that
    is damaged in another way, and for a merge conflict, whose two sides are for the user to choose from.
    """
    tmp = edition / ".dvc" / "tmp"
    check_no_links(edition, tmp / "whole")
    check_idle(edition)
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
            "the results of earlier runs from its cache"
        )
    newest, origin = versions[0]
    is_known = any(other.startswith(text) for other in others)
    if not (is_known or _is_cut(text)):
        raise CleansetError(
            f"{lock}: damaged, and not the beginning of the copy from {origin}: it may be newer, and is left as is; "
            "correct it, or put the other one in its place: dvc repro then takes later results from its cache"
        )
    kept = ""
    if not is_known:
        write_text(lock.with_name(f"{lock.name}.damaged"), text)
        kept = f"; the damaged file, perhaps newer, is {lock.name}.damaged"
    write_text(lock, newest)
    return [f"{lock}: empty or cut off, restored from {origin}{kept}"]


def _is_cut(text: str) -> bool:
    """Whether a dvc.lock is the beginning of a whole one: all is in order but for the stage at its end."""
    return is_whole("".join(stage_texts(text)[:-1]))


def stage_texts(lock: str) -> list[str]:
    """The text of a dvc.lock in parts: what precedes the stages, and each stage."""
    return re.split(r"(?m)^(?=  \S)", lock)


def _whole_versions(lock: Path, copy: Path) -> list[tuple[str, str]]:
    """Those of the copy and git's dvc.lock that are whole, each with its origin, the newer first."""
    found = []
    if copy.is_file():
        found.append((copy.stat().st_mtime, _text(copy), str(copy)))
    # git keeps no modification times: the copy's is compared with the time of the commit
    text = _git(lock, "show", f"HEAD:./{lock.name}")
    time = _git(lock, *f"log -1 --format=%ct -- {lock.name}".split())
    # empty outside of a repository, and for a file that no commit has
    if text and time:
        found.append((float(time), text, "git"))
    return [(text, origin) for _, text, origin in sorted(found, reverse=True) if is_whole(text)]


def _git(lock: Path, *arguments: str) -> str:
    """The output of git in the folder of `lock`; empty outside of a repository, and without git."""
    try:
        return run_git(lock.parent, *arguments).decode(errors="replace")
    except (GitError, CleansetError):
        return ""


def check_idle(project: Path) -> None:
    """Raise CleansetError if a DVC process is at work in a project."""
    if found := dvc_at_work(project):
        raise CleansetError(f"{project / '.dvc'}: DVC is running ({found}): wait until it ends")


def dvc_at_work(project: Path) -> str:
    """The process of DVC that is at work in a project, or the lock that one holds; empty for none."""
    tmp = project / ".dvc" / "tmp"
    for pid in _processes(tmp / "rwlock") or ():
        if _is_dvc(pid):
            return f"process {pid}"
    # a process that has just started is not in that list yet, but holds one of these
    held = (name for name in ("lock", "rwlock.lock") if (tmp / name).is_file() and _is_locked(tmp / name))
    return next((f"{name} is held" for name in held), "")


def _is_dvc(pid: int) -> bool:
    """Whether a process runs DVC; another program may have got the number of one that was killed."""
    import psutil  # comes with DVC; not in a plain installation

    try:
        # the name may come first (dvc), second (python dvc) or third (python -m dvc)
        return any("dvc" in Path(part).name for part in psutil.Process(pid).cmdline()[:3])
    except psutil.Error:
        return False


def _is_locked(path: Path) -> bool:
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
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
