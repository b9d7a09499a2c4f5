"""`cleanset doctor`: repair files that a kill left broken, and find files whose bytes have changed on the disk.

A kill while DVC writes leaves an empty or cut dvc.lock, or a cut `.dvc/tmp/rwlock`. DVC hashes a file once and then
trusts its size, time and inode; it never notices that a disk has changed it.
"""

import fcntl
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import yaml

from cleanset.edition.create import relink_code
from cleanset.edition.git import GitError, run_git
from cleanset.edition.pipeline import object_path, stages_in
from cleanset.errors import CleansetError, reason
from cleanset.files import blocks_of, md5, read_bytes, read_text, write_text
from cleanset.json_files import parse_json
from cleanset.progress import found_in_threads

_CONFLICT = re.compile(r"(?m)^(<{7}|>{7}|[|]{7})( |$)")
_MD5 = re.compile(r"[0-9a-f]{32}(\.dir)?")


def repair_locks(edition: Path) -> list[str]:
    """Restore files that DVC cannot read any more; return a line for each file that was restored or removed.

    A dvc.lock comes from git's HEAD or from the copy that is kept here whenever the file is whole, whichever is newer.
    `dvc repro` takes the missing entries from its run cache. A cut dvc.lock that is the beginning of neither is kept
    beside. Raises CleansetError while a DVC process is at work, if no whole copy exists, for a dvc.lock that
    is damaged in another way, and for a merge conflict, whose two sides are for the user to choose from.
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
        lock.with_name(f"{lock.name}.damaged").write_text(text, encoding="utf-8")
        kept = f"; the damaged file, perhaps newer, is {lock.name}.damaged"
    write_text(lock, newest)
    return [f"{lock}: empty or cut off, put back from {origin}{kept}"]


def _is_cut(text: str) -> bool:
    """Whether a dvc.lock is the beginning of a whole one: all is in order but for the stage at its end."""
    return is_whole("".join(re.split(r"(?m)^(?=  \S)", text)[:-1]))


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
    """The output of git in the folder of `lock`; empty outside of a repository, and without git."""
    try:
        return run_git(lock.parent, *arguments).decode(errors="replace")
    except (GitError, CleansetError):
        return ""


def is_whole(text: str) -> bool:
    """Whether a dvc.lock is complete: it ends with a line, and every file in it has its path, MD5 and size."""
    try:
        complete = (_is_complete(entry) for stage in stages_in(text).values() for entry in entries(stage))
        return text.endswith("\n") and all(complete)
    except (yaml.YAMLError, KeyError, TypeError, ValueError):
        return False


def entries(stage: Any) -> list[Any]:
    """The deps and outs of a stage in a dvc.lock."""
    return [*stage.get("deps", []), *stage["outs"]]


def _is_complete(entry: Any) -> bool:
    is_folder = str(entry["md5"]).endswith(".dir")
    needed = {"path", "hash", "size"} | ({"nfiles"} if is_folder else set())
    return _MD5.fullmatch(str(entry["md5"])) is not None and needed <= set(entry)


def lock_files(edition: Path) -> list[Path]:
    """Every dvc.lock of the edition's DVC project, or of a folder in it, without nested projects."""
    found = [edition / "dvc.lock"] if (edition / "dvc.lock").is_file() else []
    for child in edition.iterdir():
        is_plain = child.is_dir() and not child.is_symlink() and not child.name.startswith(".") and child.name != "data"
        if is_plain and not (child / ".dvc").is_dir():
            found += lock_files(child)
    return sorted(found)


def check_idle(tmp: Path) -> None:
    """Raise CleansetError if a DVC process is at work in the project whose `.dvc/tmp` this is."""
    for pid in _processes(tmp / "rwlock") or ():
        if _is_dvc(pid):
            raise CleansetError(f"{tmp.parent}: DVC is at work (process {pid}): wait until it has ended")
    # a process that has just started is not in that list yet, but holds one of these
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


@dataclass(frozen=True, slots=True)
class Out:
    """A file or folder that a stage writes, as dvc.lock names it; `is_cached`: not with `cache: false` in dvc.yaml."""

    stage: str
    path: Path
    md5: str
    is_cached: bool

    @property
    def is_folder(self) -> bool:
        """Whether `md5` names DVC's list of a folder's files."""
        return self.md5.endswith(".dir")


@dataclass(frozen=True, slots=True)
class Rotten:
    """A file with other bytes than dvc.lock says, and the commands that bring the right ones back."""

    path: Path
    found: str
    expected: str
    repair: str


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A folder that differs from dvc.lock in an unknown file: `listed_in`, DVC's list of its files, is not cached."""

    path: Path
    listed_in: Path
    remedy: str


class _File(NamedTuple):
    """One file of an out: its two places, and the MD5 that both should have."""

    out: Out
    md5: str
    in_cache: Path
    in_workspace: Path


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of an examination; paths begin with the edition's folder as given.

    `repaired`: a line for each file restored or removed. `hashed`: how many files were hashed; None in the quick form.
    `rotten`: files with other bytes than dvc.lock says. `unchecked`: folders that differ, in a file that only DVC's
    missing list would tell.
    `leftovers`: temporary files of killed runs.
    """

    repaired: list[str]
    hashed: int | None
    rotten: list[Rotten]
    unchecked: list[Unchecked]
    leftovers: list[Path]


def examine(edition: Path, quick: bool) -> Findings:
    """Repair files that DVC cannot read; then, unless `quick`, hash every out and cached object that dvc.lock names."""
    if not (edition / ".dvc").is_dir():
        raise CleansetError(f"{edition}: no DVC project; expected the folder of an edition: run it there")
    repaired = [*relink_code(edition), *repair_locks(edition)]
    if quick:
        return Findings(repaired, None, [], [], [])
    from dvc.config import Config

    folder = Config(dvc_dir=str(edition / ".dvc"))["cache"].get("dir")
    cache = Path(folder) if folder else edition / ".dvc" / "cache"
    return Findings(repaired, *rotten_files(edition, cache), leftovers(edition))


def leftovers(edition: Path) -> list[Path]:
    """Temporary files and folders that killed runs left. The next run of the same stage replaces them."""
    found = [path for path in edition.rglob("*.partial") if not path.relative_to(edition).parts[0].startswith(".")]
    return sorted(path for path in found if not any(parent in found for parent in path.parents))


def as_json(findings: Findings) -> str:
    """The findings for programs."""
    return json.dumps(asdict(findings), indent=2, default=str)


def as_text(findings: Findings) -> str:
    """The findings for people, a line each."""
    lines = list(findings.repaired)
    lines += [f"{bad.path}: MD5 {bad.found}, expected {bad.expected}: {bad.repair}" for bad in findings.rotten]
    lines += [
        f"{folder.path}: differs from dvc.lock; {folder.listed_in}, DVC's list of its files, is missing: "
        f"{folder.remedy}"
        for folder in findings.unchecked
    ]
    lines += [f"{path}: left over from a run that was killed; may be removed" for path in findings.leftovers]
    if findings.hashed is not None:
        lines.append(f"{findings.hashed} files hashed, {len(findings.rotten)} with other bytes than dvc.lock says")
    return "\n".join(lines)


def rotten_files(edition: Path, cache: Path) -> tuple[int, list[Rotten], list[Unchecked]]:
    """The number of files hashed, those with other bytes (cached ones first, each by path), and unchecked folders.

    `cache`: the folder of DVC's cache. A missing file is not reported: it was never made, or not pulled.
    """
    outs = list(outs_of(edition))
    lists = {cache / object_path(out.md5): out for out in outs if out.is_folder}
    wrong_lists = _wrong({path: out.md5.removesuffix(".dir") for path, out in lists.items()})
    files = [file for out in outs for file in _files(out, cache, wrong_lists)]
    md5s = {file.in_cache: file.md5 for file in files} | {file.in_workspace: file.md5 for file in files}
    wrong = _wrong(md5s)
    found = [
        Rotten(path, digest, lists[path].md5, _from_elsewhere(edition, path, lists[path]))
        for path, digest in sorted(wrong_lists.items())
    ]
    for path, file in sorted({file.in_cache: file for file in files if file.in_cache in wrong}.items()):
        repair = _from_elsewhere(edition, path, file.out)
        if file.in_workspace.is_file() and file.in_workspace not in wrong:
            repair = f"rm -f {os.path.relpath(path, edition)} && dvc commit -f {file.out.stage}"
        found.append(Rotten(path, wrong[path], file.md5, repair))
    for path, file in sorted({file.in_workspace: file for file in files if file.in_workspace in wrong}.items()):
        out = os.path.relpath(file.out.path, edition)
        is_restorable = file.out.is_cached and file.in_cache.is_file()
        remedy = f"dvc checkout {out}" if is_restorable else f"dvc repro -f -s {file.out.stage}"
        found.append(Rotten(path, wrong[path], file.md5, f"rm -r {out} && {remedy}"))
    hashed, changed, unchecked = _check_unlisted(
        edition, [out for path, out in lists.items() if not path.is_file()], cache
    )
    return hashed + sum(path.is_file() for path in [*lists, *md5s]), found + changed, unchecked


def _check_unlisted(edition: Path, outs: Iterable[Out], cache: Path) -> tuple[int, list[Rotten], list[Unchecked]]:
    """Check folders whose lists are not in the cache, each as a whole; the result is as of `rotten_files`.

    DVC caches no list for `cache: false`, so this is the only check of the metrics in a clone. Of another folder that
    differs, DVC's list, once fetched, tells which file it is.
    """
    hashed, rotten, unchecked = 0, list[Rotten](), list[Unchecked]()
    for out in sorted(outs, key=lambda out: out.path):
        paths = {path: path.relative_to(out.path).as_posix() for path in out.path.rglob("*") if path.is_file()}
        if not out.path.is_dir():
            continue
        found, here = _md5_of_list(paths), os.path.relpath(out.path, edition)
        anew = f"rm -r {here} && dvc repro -f -s {out.stage}"
        if found == out.md5 or not out.is_cached:
            hashed += len(paths)
        if found != out.md5 and out.is_cached:
            remedy = f"run dvc fetch {here} and this again, or write it anew to be sure: {anew}"
            unchecked.append(Unchecked(out.path, cache / object_path(out.md5), remedy))
        elif found != out.md5:
            rotten.append(Rotten(out.path, found, out.md5, anew))
    return hashed, rotten, unchecked


def _md5_of_list(paths: Mapping[Path, str]) -> str:
    """The MD5 that DVC gives a folder: that of its list, in this JSON, of files by their names below the folder."""
    entries = [{"md5": _md5_of_file(path), "relpath": name} for path, name in paths.items()]
    entries.sort(key=lambda entry: entry["relpath"])
    return md5([json.dumps(entries, sort_keys=True).encode()]) + ".dir"


def _files(out: Out, cache: Path, unreadable: Collection[Path]) -> Iterator[_File]:
    """The file of an out, or those of a folder whose list is in the cache and good."""
    path = cache / object_path(out.md5)
    if not out.is_folder:
        yield _File(out, out.md5, path, out.path)
    elif path.is_file() and path not in unreadable:
        for entry in json.loads(path.read_bytes()):
            yield _File(out, entry["md5"], cache / object_path(entry["md5"]), out.path / entry["relpath"])


def _from_elsewhere(edition: Path, path: Path, out: Out) -> str:
    here, cached_at = os.path.relpath(out.path, edition), os.path.relpath(path, edition)
    # with the out in place, which it takes for good, dvc pull would fetch nothing
    return f"rm -rf {here} {cached_at} && (dvc pull {here} || dvc repro -f -s {out.stage})"


def outs_of(edition: Path) -> Iterator[Out]:
    """The outs of every dvc.lock of an edition."""
    for lock in lock_files(edition):
        uncached = set(_uncached(lock.with_name("dvc.yaml")))
        for stage, content in _stages(lock).items():
            # DVC's address of a stage in another dvc.yaml than that of the current folder
            name = stage if lock.parent == edition else f"{(lock.parent / 'dvc.yaml').relative_to(edition)}:{stage}"
            for entry in content["outs"]:
                path = Path(os.path.normpath(lock.parent / entry["path"]))
                yield Out(name, path, entry["md5"], entry["path"] not in uncached)


def _uncached(pipeline: Path) -> Iterator[str]:
    """The outs with `cache: false` in a dvc.yaml."""
    for stage in _stages(pipeline).values() if pipeline.is_file() else ():
        for entry in (entry for kind in ("outs", "metrics", "plots") for entry in stage.get(kind, [])):
            if isinstance(entry, dict):
                yield from (path for path, options in entry.items() if options.get("cache") is False)


def _stages(path: Path) -> dict[str, dict[str, Any]]:
    """The stages in a dvc.yaml or dvc.lock. Raises CleansetError if DVC could not read it either."""
    try:
        return stages_in(read_text(path, "expected YAML in UTF-8"))
    except (yaml.YAMLError, ValueError) as error:
        raise CleansetError(
            f"{path}: not a file of DVC ({reason(error)}); expected YAML with stages: correct it"
        ) from None


def _wrong(md5s: Mapping[Path, str]) -> dict[Path, str]:
    """The MD5 of each existing file that differs from the one in `md5s`; links to one file are read once."""
    by_file: dict[tuple[int, int], list[Path]] = {}
    for path in md5s:
        if path.is_file():
            state = path.stat()
            by_file.setdefault((state.st_dev, state.st_ino), []).append(path)
    groups = list(by_file.values())
    found = found_in_threads(_md5_of_file, [group[0] for group in groups], "doctor")
    pairs = [(path, digest) for group, digest in zip(groups, found, strict=True) for path in group]
    return {path: digest for path, digest in pairs if digest != md5s[path]}


def _md5_of_file(path: Path) -> str:
    return md5(blocks_of(path))
