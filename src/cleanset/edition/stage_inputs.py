"""What a stage reads while DVC runs it: noted before it begins, compared at its end and by what runs later.

DVC hashes the dependencies of a stage after it has ended. If one changed meanwhile, it would lock the new digest with
results of the old content: up to date for ever. A change during the stage fails it. A change between its end and DVC's
hashing shows in dvc.lock, which then has other digests than were noted; the next stage finds it, or a command that
looks after the edition. That stage and `cleanset doctor` take the entry out of dvc.lock and of DVC's run cache, so that
`dvc repro` runs the stage again.
"""

import itertools
import json
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cleanset.edition.dvc_files import LockedStage, load_yaml, md5_of_list, stages_in
from cleanset.edition.locks import stage_texts
from cleanset.errors import PACKAGE, CleansetError
from cleanset.plumbing.files import (
    FileState,
    check_no_links,
    file_state,
    is_there,
    md5_of,
    read_bytes,
    read_text,
    write_text,
)
from cleanset.plumbing.validation import first_names

HASHED_BYTES = 2**26
"""Size up to which a dependency is hashed; a larger one is known by size, times and inode of its files."""

HASHED_FILES = 2_000
"""Number of files up to which an output is hashed."""

AGAIN = "run dvc repro again"
REPAIR = "run cleanset doctor, then dvc repro"

_REFERENCE = re.compile(r"\$\{([^}]+)\}")


@dataclass(frozen=True, slots=True)
class DeclaredFiles:
    """The files and params that dvc.yaml names for a stage, paths relative to its folder."""

    deps: Sequence[str]
    params: Mapping[str, Sequence[str]]
    """Keys, with dots between their parts, by the path of their file."""

    outs: Sequence[str]


def declared_files(folder: Path) -> dict[str, DeclaredFiles]:
    """The files of every stage of the dvc.yaml in a folder, by DVC's name of the stage.

    Raises CleansetError for a file that cannot be read, and KeyError for a reference to a value that is missing.
    """
    pipeline = load_yaml(read_text(folder / "dvc.yaml", "expected a pipeline of DVC"))
    values: dict[str, Any] = {}
    for source in ("params.yaml", *pipeline.get("vars", ())):
        path, _, keys = source.partition(":")
        content = _content(folder / path)
        values |= {key: content[key] for key in keys.split(",")} if keys else content
    found = {}
    for name, stage in pipeline["stages"].items():
        matrix = {key: list(_resolved(each, values)) for key, each in stage.get("matrix", {}).items()}
        for chosen in itertools.product(*matrix.values()):
            of_stage = {**values, "item": dict(zip(matrix, chosen, strict=True))}
            full_name = f"{name}@{'-'.join(map(str, chosen))}" if chosen else name
            found[full_name] = _declared(stage, of_stage)
    return found


def _content(path: Path) -> dict[str, Any]:
    """The content of a params file; empty without one."""
    return load_yaml(read_text(path, "save it as UTF-8")) or {} if is_there(path) else {}


def _resolved(value: Any, values: Mapping[str, Any]) -> Any:
    """A value of dvc.yaml with its references replaced; one that is a reference alone may become any value."""
    if not isinstance(value, str):
        return value
    if whole := _REFERENCE.fullmatch(value):
        return _value(values, whole[1])
    return _REFERENCE.sub(lambda match: str(_value(values, match[1])), value)


def _value(values: Mapping[str, Any], key: str) -> Any:
    found: Any = values
    for part in key.strip().split("."):
        found = found[part]
    return found


def _declared(stage: Mapping[str, Any], values: Mapping[str, Any]) -> DeclaredFiles:
    def paths(*kinds: str) -> list[str]:
        entries = (entry for kind in kinds for entry in stage.get(kind, ()))
        names = (name for entry in entries for name in (entry if isinstance(entry, dict) else [entry]))
        return [posixpath.normpath(_resolved(name, values)) for name in names]

    params = dict[str, list[str]]()
    for entry in stage.get("params", ()):
        for path, keys in (entry if isinstance(entry, dict) else {"params.yaml": [entry]}).items():
            params.setdefault(path, []).extend(_resolved(key, values) for key in keys)
    return DeclaredFiles(deps=paths("deps"), params=params, outs=paths("outs", "metrics", "plots"))


class _Reader:
    """Reads the current dependencies of stages in a folder, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._params: dict[str, dict[str, Any]] = {}
        self._states: dict[str, dict[str, FileState]] = {}
        self._digests: dict[str, str | None] = {}

    def params(self, named: Mapping[str, Iterable[str]]) -> dict[str, dict[str, Any]]:
        """The values of params by the path of their file and by key; those that are missing are left out."""
        found = dict[str, dict[str, Any]]()
        for path, keys in named.items():
            if path not in self._params:
                self._params[path] = _content(self._folder / path)
            values = found.setdefault(path, {})
            for key in keys:
                with suppress(KeyError, TypeError):
                    values[key] = _plain(_value(self._params[path], key))
        return found

    def states(self, path: str) -> dict[str, FileState]:
        """The states of a file, or of the files in a folder that DVC does not ignore, by their names below it."""
        if path not in self._states:
            self._states[path] = dict(_file_states(self._folder, path))
        return self._states[path]

    def digest(self, path: str) -> str | None:
        """The MD5 of a file or folder as DVC writes it; None for one that is missing or large."""
        if path not in self._digests:
            states = self.states(path)
            target = self._folder / path
            is_hashed = target.exists() and sum(state[0] for state in states.values()) <= HASHED_BYTES
            found = None
            if is_hashed and target.is_dir():
                found = md5_of_list({target / name: name for name in states})
            elif is_hashed:
                found = md5_of(target)
            self._digests[path] = found
        return self._digests[path]

    def output(self, path: str) -> str | None:
        """The MD5 of an output, as in `digest`; for a folder of many files, their size and number.

        To hash all files of a large set takes longer than to make it again.
        """
        states = self.states(path)
        if len(states) <= HASHED_FILES:
            return self.digest(path)
        return _size_text(sum(size for size, *_ in states.values()), len(states))


def _size_text(size: int, count: int) -> str:
    return f"{size} bytes in {count} files"


def _is_output(locked: Any, noted: str | None) -> bool:
    """Whether an output of dvc.lock is what was noted by `_Reader.output`."""
    return noted in (None, locked["md5"], _size_text(locked.get("size", 0), locked.get("nfiles", 0)))


def _file_states(folder: Path, path: str) -> Iterator[tuple[str, FileState]]:
    target = f"{folder}/{path}"  # texts, since a folder may have as many files as a set
    if not Path(target).is_dir():
        if Path(target).exists():
            yield "", file_state(Path(target).stat())
        return
    ignored = _ignored_by_dvc(folder)
    for parent, folders, names in os.walk(target, followlinks=True):
        here = os.path.relpath(parent, folder)
        above = "" if parent == target else f"{os.path.relpath(parent, target)}/"
        folders[:] = [name for name in folders if not ignored(f"{here}/{name}/")]
        for name in names:
            if not ignored(f"{here}/{name}"):
                yield f"{above}{name}", file_state(os.stat(f"{parent}/{name}"))  # noqa: PTH116 - as above


def _ignored_by_dvc(folder: Path) -> Callable[[str], bool]:
    """Whether the .dvcignore of a DVC project, which says nothing of files outside, leaves out a path from there."""
    from pathspec import GitIgnoreSpec  # DVC's own, and no part of a plain installation

    path = folder / ".dvcignore"
    patterns = GitIgnoreSpec.from_lines(read_text(path, "save it").splitlines() if is_there(path) else [])
    return lambda name: not name.startswith(os.pardir) and patterns.match_file(name)


def _plain(value: Any) -> Any:
    """A value as text, in which DVC's forms of a number are the same."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else str(value)


Note = Mapping[str, Any]
"""What a stage has read, in the form of a dvc.lock: deps and outs by path, params by file and key."""


@contextmanager
def noted_inputs() -> Iterator[None]:
    """Note what a stage reads while the block runs, if DVC runs this command as one.

    Raises CleansetError for an earlier stage that has read something else than is there now, and at the end for inputs
    that have changed. Not of a pipeline in another form than this project writes.
    """
    # a command that the stage starts is not itself a stage
    name = os.environ.pop("DVC_STAGE", "").rpartition(":")[2]
    folder = Path()
    files = _files_of_stage(folder, name) if name else None
    if files is None:
        yield
        return
    before = _Reader(folder)
    _check_earlier_stages(folder, files, before)
    params = before.params(files.params)
    noted = {path: (before.states(path), before.digest(path)) for path in files.deps}
    try:
        yield
    except SystemExit as end:
        if end.code:
            raise
    after = _Reader(folder)
    changed = _differing_params(params, after.params(files.params))
    changed += [path for path, (states, digest) in noted.items() if _has_changed(path, states, digest, after)]
    if changed:
        raise CleansetError(
            f"{name}: {first_names(changed, 3)} changed while the stage ran; expected the same inputs to its end, so "
            f"its results are not kept: {AGAIN}"
        )
    digests = {path: digest for path, (_, digest) in noted.items()}
    _keep_note(
        folder, name, {"deps": digests, "params": params, "outs": {out: after.output(out) for out in files.outs}}
    )


def _has_changed(path: str, states: Mapping[str, FileState], digest: str | None, after: _Reader) -> bool:
    """Whether a dependency has other content, or was written meanwhile: it may have been another one, and back again.

    Only the content of code counts, which a process reads when it begins: a checkout of git may write it.
    """
    now = after.states(path)
    if states == now:
        return False
    if digest is None or digest != after.digest(path):
        return True
    return f"src/{PACKAGE}/" not in path and _as_written(states) != _as_written(now)


def _as_written(states: Mapping[str, FileState]) -> dict[str, tuple[int, int, int]]:
    """States without the time of status, which another link to a file changes, too."""
    return {name: (size, modified, inode) for name, (size, modified, _, inode) in states.items()}


def _files_of_stage(folder: Path, name: str) -> DeclaredFiles | None:
    try:
        return declared_files(folder).get(name)
    except (LookupError, TypeError, AttributeError, ValueError, yaml.YAMLError):
        return None


def _differing_params(one: Mapping[str, Mapping[str, Any]], other: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The params with other values, each with its file."""
    return [
        f"{key} in {path}"
        for path, values in one.items()
        for key, value in values.items()
        if key not in other.get(path, {}) or other[path][key] != value
    ]


def _notes_folder(project: Path) -> Path:
    return project / ".dvc" / "tmp" / "cleanset-read"


def _keep_note(folder: Path, name: str, note: Note) -> None:
    path = _notes_folder(folder) / f"{name.replace('/', '_')}.json"
    if (folder / ".dvc").is_dir():
        check_no_links(folder, path.parent)
        write_text(path, json.dumps({"stage": name, **note}))


def _stages_in_lock(project: Path) -> dict[str, Any]:
    """The stages in the dvc.lock of a project; none if it is missing or broken, which doctor repairs."""
    with suppress(OSError, CleansetError, ValueError, yaml.YAMLError):
        return stages_in(read_text(project / "dvc.lock", "run cleanset doctor"))
    return {}


def _locked_stages(project: Path) -> dict[str, LockedStage]:
    """The stages in the dvc.lock of a project, with the paths of `declared_files`."""
    found = _stages_in_lock(project)
    for entry in found.values():
        for each in (*entry.get("deps", ()), *entry.get("outs", ())):
            each["path"] = posixpath.normpath(each["path"])
    return found


def _read_notes(project: Path) -> Iterator[tuple[Path, str, Note]]:
    for path in sorted(_notes_folder(project).glob("*.json")):
        # a file that is damaged says nothing
        with suppress(OSError, ValueError, KeyError, TypeError, CleansetError):
            note = json.loads(read_bytes(path))
            yield path, str(note["stage"]), {kind: dict(note[kind]) for kind in ("deps", "params", "outs")}


class ComparedNote(NamedTuple):
    """A note whose results dvc.lock has."""

    path: Path
    stage: str
    misread: list[str]
    """The inputs that are locked with another digest or value than the stage has read."""

    damaged: list[str]
    """Those of them that earlier stages wrote with the locked digest, and still have what was read."""

    @property
    def text(self) -> str:
        """What has happened, in words."""
        if self.damaged:
            return f"{self.stage} has read {first_names(self.damaged, 3)}, damaged where DVC sees no change"
        return f"{self.stage} ran before a change of {first_names(self.misread, 3)}, which DVC has locked with it"


def _compared_notes(project: Path) -> Iterator[ComparedNote]:
    locked = _locked_stages(project)
    written = {out["path"]: out["md5"] for entry in locked.values() for out in entry.get("outs", ())}
    now = _Reader(project)
    for path, name, note in _read_notes(project):
        entry = locked.get(name)
        if entry is not None and all(_is_output(out, note["outs"].get(out["path"])) for out in entry.get("outs", ())):
            params = {of: _plain(values) for of, values in entry.get("params", {}).items()}
            deps = entry.get("deps", ())
            others = _other_digests(deps, note["deps"])
            damaged = [
                dep["path"]
                for dep in deps
                if dep["path"] in others
                and written.get(dep["path"]) == dep["md5"]
                and now.digest(dep["path"]) == note["deps"][dep["path"]]
            ]
            yield ComparedNote(path=path, stage=name, misread=others + _common_params(note, params), damaged=damaged)


def _other_digests(locked: Iterable[Any], noted: Mapping[str, str | None]) -> list[str]:
    """The paths whose noted digest is known, and another one than the locked one."""
    return [each["path"] for each in locked if noted.get(each["path"]) not in (None, each["md5"])]


def _common_params(note: Note, locked: Mapping[str, Mapping[str, Any]]) -> list[str]:
    both = {
        path: {key: value for key, value in values.items() if key in locked.get(path, {})}
        for path, values in note["params"].items()
    }
    return _differing_params(both, locked)


def misread_stages(project: Path, out: str = "") -> list[ComparedNote]:
    """The stages whose results dvc.lock has with other inputs than they have read; `out`: those that it comes from."""
    found = [note for note in _compared_notes(project) if note.misread]
    if not (found and out):
        return found
    stages = _earlier_stages([out], _locked_stages(project))
    return [note for note in found if note.stage in stages]


def misread_inputs(project: Path, remedy: str = REPAIR) -> list[str]:
    """A line for each of `misread_stages`."""
    return [_line(project, note, remedy) for note in misread_stages(project)]


def _line(project: Path, note: ComparedNote, remedy: str) -> str:
    return f"{project / 'dvc.lock'}: {note.text}: {REPAIR if note.damaged else remedy}"


def projects_in(edition: Path) -> list[Path]:
    """The folders with a dvc.lock: the edition's, and those of its studies."""
    return [
        path.parent for path in (edition / "dvc.lock", *sorted(edition.glob("studies/*/dvc.lock"))) if path.exists()
    ]


def unlock_misread(project: Path, remedy: str = AGAIN) -> list[str]:
    """Take the stages of `misread_stages` out of dvc.lock and of DVC's run cache, so that they run again.

    Returns their lines. What has been compared is not compared again.
    """
    compared = list(_compared_notes(project))
    misread = [note for note in compared if note.misread]
    for note in misread:
        _unlock(project, note.stage)
    for note in compared:
        note.path.unlink(missing_ok=True)
    return [_line(project, note, remedy) for note in misread]


def _unlock(project: Path, name: str) -> None:
    """Remove a stage from dvc.lock, and what DVC keeps of this run."""
    from cleanset.edition.dvc_files import cache_folder

    entry = _stages_in_lock(project)[name]
    digest = str(entry["outs"][0]["md5"]).encode()
    for path in cache_folder(project).glob("runs/*/*/*"):
        if digest in (data := read_bytes(path)) and load_yaml(data.decode()) == entry:
            path.unlink()
            # in an empty folder DVC would look for a run
            with suppress(OSError):
                path.parent.rmdir()
    lock = project / "dvc.lock"
    parts = stage_texts(read_text(lock, "run cleanset doctor"))
    kept = [part for part in parts if not part.startswith(f"  {name}:\n")]
    if len(kept) > 1:
        write_text(lock, "".join(kept))
    else:
        lock.unlink()


def _check_earlier_stages(folder: Path, files: DeclaredFiles, now: _Reader) -> None:
    """Raise CleansetError for an earlier stage whose inputs, as locked, are not those that are there now."""
    others = {_project_of(folder / dep) for dep in files.deps if dep.startswith(os.pardir)}
    lines = [line for project in [folder, *sorted(filter(None, others))] for line in unlock_misread(project)]
    locked = _locked_stages(folder)
    lines += [
        f"{name}: {first_names(differing, 3)} changed since it ran; expected the same inputs: {AGAIN}"
        for name in _earlier_stages(files.deps, locked)
        if (differing := _changed_since(name, locked, now))
    ]
    if lines:
        raise CleansetError("; ".join(lines))


def changed_inputs(project: Path, name: str) -> list[str]:
    """What a stage was given from outside of its pipeline, without code, and has changed since it was locked.

    Empty for a stage that dvc.lock lacks.
    """
    locked = _locked_stages(project)
    return _changed_since(name, locked, _Reader(project)) if name in locked else []


def _changed_since(name: str, locked: Mapping[str, LockedStage], now: _Reader) -> list[str]:
    outs = {out["path"] for entry in locked.values() for out in entry.get("outs", ())}
    entry = locked[name]
    given = [dep for dep in entry.get("deps", ()) if dep["path"] not in outs and f"src/{PACKAGE}/" not in dep["path"]]
    params = {of: _plain(values) for of, values in entry.get("params", {}).items()}
    differing = _other_digests(given, {dep["path"]: now.digest(dep["path"]) for dep in given})
    return differing + _common_params({"params": params}, now.params(params))


def _project_of(path: Path) -> Path | None:
    """The folder of the pipeline that a path is in."""
    return next((parent for parent in path.parents if (parent / "dvc.lock").is_file()), None)


def _earlier_stages(files: Iterable[str], locked: Mapping[str, LockedStage]) -> list[str]:
    """The locked stages that files come from, directly or not."""
    outs = {out["path"]: name for name, entry in locked.items() for out in entry.get("outs", ())}
    found = set[str]()
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        for out, name in outs.items():
            if name not in found and (f"{out}/".startswith(f"{file}/") or f"{file}/".startswith(f"{out}/")):
                found.add(name)
                waiting += [each["path"] for each in locked[name].get("deps", ())]
    return sorted(found)
