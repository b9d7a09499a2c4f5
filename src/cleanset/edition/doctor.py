"""`cleanset doctor`: repair files of DVC that a kill left broken (`locks`), and find files that a disk has changed.

A kill while DVC writes leaves an empty or cut dvc.lock, or a cut `.dvc/tmp/rwlock`. DVC hashes a file once and then
trusts its size, time and inode; it never notices that a disk has changed it.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import quote

import yaml

from cleanset.edition.code_link import relink_code
from cleanset.edition.dvc_files import MD5_FORM, Stage, cache_folder, lock_files, md5_of_list, object_path, stages_in
from cleanset.edition.locks import repair_locks
from cleanset.edition.repository import add_attributes, mend_scm
from cleanset.edition.stage_inputs import projects_in, unlock_misread
from cleanset.errors import CleansetError, one_line, reason
from cleanset.plumbing.file_locks import is_locked
from cleanset.plumbing.files import WORKSPACE_LOCK, md5_of, read_text
from cleanset.plumbing.progress import found_in_threads
from cleanset.plumbing.validation import shown


@dataclass(frozen=True, slots=True)
class Out:
    """A file or folder that a stage writes, as dvc.lock names it."""

    stage: str
    """DVC's address of the stage."""

    path: Path
    md5: str
    """The digest of the file, or that of DVC's list of a folder's files, with the ending .dir."""

    is_cached: bool
    """Whether it is in DVC's cache: without `cache: false` in dvc.yaml."""

    @property
    def is_folder(self) -> bool:
        """Whether `md5` names DVC's list of a folder's files."""
        return self.md5.endswith(".dir")


@dataclass(frozen=True, slots=True)
class Rotten:
    """A file different from dvc.lock, and the commands that bring the right ones back."""

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


@dataclass(frozen=True, slots=True)
class _File:
    """One file of an out."""

    out: Out
    md5: str
    """The digest that both copies should have."""

    in_cache: Path
    in_workspace: Path


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of an examination; paths begin with the edition's folder as given."""

    repaired: list[str]
    """A line for each file restored or removed."""

    hashed: int | None = None
    """Number of files hashed; None in the quick form."""

    rotten: list[Rotten] = field(default_factory=list)
    """Files different from dvc.lock: cached ones first, each by path."""

    unchecked: list[Unchecked] = field(default_factory=list)
    """Folders that differ, in a file that only DVC's missing list would name."""

    leftovers: list[Path] = field(default_factory=list)
    """Temporary files of killed runs."""


def examine(edition: Path, *, quick: bool) -> Findings:
    """Repair files that DVC cannot read; then, unless `quick`, hash every out and cached object that dvc.lock names."""
    if not (edition / ".dvc").is_dir():
        raise CleansetError(f"{edition}: no DVC project; expected the folder of an edition: run it there")
    repaired = [*relink_code(edition), *repair_locks(edition), *mend_scm(edition), *add_attributes(edition)]
    repaired += _remove_broken_links(edition, cache_folder(edition))
    # before stages are unlocked, whose outs would not be checked then
    hashed, rotten, unchecked = (None, [], []) if quick else rotten_files(edition, cache_folder(edition))
    repaired += [line for project in projects_in(edition) for line in unlock_misread(project)]
    found = [] if quick else leftovers(edition)
    return Findings(repaired, hashed, rotten=rotten, unchecked=unchecked, leftovers=found)


def _remove_broken_links(edition: Path, cache: Path) -> Iterator[str]:
    """Remove links to files that DVC's cache lacks, at which DVC fails; yield a line for each.

    DVC removes a damaged file from its cache when it happens to read it, and leaves the links to it.
    """
    paths = {path for out in outs_of(edition) for path in (out.path, *out.path.rglob("*"))}
    for path in sorted(paths):
        if path.is_symlink() and not path.exists() and path.resolve().is_relative_to(cache.resolve()):
            path.unlink()
            yield f"{path}: a link to a file that DVC's cache lacks, removed: run dvc pull or dvc repro"


def leftovers(edition: Path) -> list[Path]:
    """Temporary files and folders that killed runs left. The next run of the same stage replaces them."""
    found = [path for path in edition.rglob("*.partial") if not path.relative_to(edition).parts[0].startswith(".")]
    outermost = [path for path in found if not any(parent in found for parent in path.parents)]
    return sorted(path for path in outermost if not _is_in_use(path))


def _is_in_use(path: Path) -> bool:
    """Whether a process holds a lock of a temporary folder, of the file `lock` in it, or of where a file is written."""
    folder = path if path.is_dir() else path.parent
    return any(is_locked(each) for each in (folder, folder / WORKSPACE_LOCK) if each.exists())


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
        lines.append(f"files hashed: {findings.hashed}, different from dvc.lock: {len(findings.rotten)}")
    return "\n".join(map(one_line, lines))


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
            repair = f"rm -f {_word(path, edition)} && dvc commit -f {quote(file.out.stage)}"
        found.append(Rotten(path, wrong[path], file.md5, repair))
    for path, file in sorted({file.in_workspace: file for file in files if file.in_workspace in wrong}.items()):
        out = _word(file.out.path, edition)
        is_restorable = file.out.is_cached and file.in_cache.is_file()
        remedy = f"dvc checkout {out}" if is_restorable else f"dvc repro -f -s {quote(file.out.stage)}"
        found.append(Rotten(path, wrong[path], file.md5, f"rm -r {out} && {remedy}"))
    hashed, changed, unchecked = _check_unlisted(
        edition, [out for path, out in lists.items() if not path.is_file()], cache
    )
    return hashed + sum(path.is_file() for path in [*lists, *md5s]), found + changed, unchecked


def _check_unlisted(edition: Path, outs: Iterable[Out], cache: Path) -> tuple[int, list[Rotten], list[Unchecked]]:
    """Check folders whose lists are not in the cache, each as a whole; the result is as of `rotten_files`.

    DVC caches no list for `cache: false`, so this is the only check of the metrics in a clone. For another folder that
    differs, DVC's list, once fetched, names the file.
    """
    hashed = 0
    rotten: list[Rotten] = []
    unchecked: list[Unchecked] = []
    for out in sorted(outs, key=lambda out: out.path):
        paths = {path: path.relative_to(out.path).as_posix() for path in out.path.rglob("*") if path.is_file()}
        if not out.path.is_dir():
            continue
        found = md5_of_list(paths)
        here = _word(out.path, edition)
        anew = f"rm -r {here} && dvc repro -f -s {quote(out.stage)}"
        if found == out.md5 or not out.is_cached:
            hashed += len(paths)
        if found != out.md5 and out.is_cached:
            remedy = f"run dvc fetch {here} and then this command again, or recompute the output: {anew}"
            unchecked.append(Unchecked(out.path, cache / object_path(out.md5), remedy))
        elif found != out.md5:
            rotten.append(Rotten(out.path, found, out.md5, anew))
    return hashed, rotten, unchecked


def _files(out: Out, cache: Path, unreadable: Collection[Path]) -> Iterator[_File]:
    """The file of an out, or those of a folder whose list is in the cache and good."""
    path = cache / object_path(out.md5)
    if not out.is_folder:
        yield _File(out, out.md5, in_cache=path, in_workspace=out.path)
    elif path.is_file() and path not in unreadable:
        for entry in json.loads(path.read_bytes()):
            digest = str(entry["md5"])
            if not MD5_FORM.fullmatch(digest):
                raise CleansetError(f"{path}: md5 {shown(digest)}; expected a list of DVC's: remove the file")
            in_workspace = _inside(out.path, out.path / entry["relpath"], path)
            yield _File(out, digest, in_cache=cache / object_path(digest), in_workspace=in_workspace)


def _from_elsewhere(edition: Path, path: Path, out: Out) -> str:
    here = _word(out.path, edition)
    # with the out in place, which it takes for good, dvc pull would fetch nothing
    return f"rm -rf {here} {_word(path, edition)} && (dvc pull {here} || dvc repro -f -s {quote(out.stage)})"


def _word(path: Path, edition: Path) -> str:
    """A path of an edition as a word of a command line."""
    return quote(os.path.relpath(path, edition))


def outs_of(edition: Path) -> Iterator[Out]:
    """The outs of every dvc.lock of an edition."""
    for lock in lock_files(edition):
        uncached = set(_uncached(lock.with_name("dvc.yaml")))
        for stage, content in _stages(lock).items():
            # DVC's address of a stage in another dvc.yaml than that of the current folder
            name = stage if lock.parent == edition else f"{(lock.parent / 'dvc.yaml').relative_to(edition)}:{stage}"
            for entry in content["outs"]:
                path = _inside(edition, lock.parent / entry["path"], lock)
                yield Out(name, path, entry["md5"], is_cached=entry["path"] not in uncached)


def _inside(edition: Path, path: Path, named_in: Path) -> Path:
    """The path without `..`. Raises CleansetError for one outside of the edition, which might be any file or device."""
    found = Path(os.path.normpath(path))
    if Path(os.path.relpath(found, edition)).parts[:1] == (os.pardir,):
        raise CleansetError(f"{named_in}: {shown(str(path))}; expected a path in the edition: restore the file")
    return found


def _uncached(pipeline: Path) -> Iterator[str]:
    """The outs with `cache: false` in a dvc.yaml."""
    for stage in _stages(pipeline).values() if pipeline.is_file() else ():
        for entry in (entry for kind in ("outs", "metrics", "plots") for entry in stage.get(kind, [])):
            if isinstance(entry, dict):
                yield from (path for path, options in entry.items() if options.get("cache") is False)


def _stages(path: Path) -> dict[str, Stage]:
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
    found = found_in_threads(md5_of, [group[0] for group in groups], "doctor")
    pairs = [(path, digest) for group, digest in zip(groups, found, strict=True) for path in group]
    return {path: digest for path, digest in pairs if digest != md5s[path]}
