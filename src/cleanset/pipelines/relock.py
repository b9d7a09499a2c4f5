"""Entering today's code into dvc.lock after a refactoring that changes no output, without running a stage.

`dvc commit` does the same where all data is present; this needs none of it, so that an edition whose scores lie on a
remote needs no GPU. That the outputs are really the same is shown by building the sample from nothing
(tests/project/test_guard.py).
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cleanset.errors import CleansetError

if TYPE_CHECKING:
    from dvc.dependency import Dependency
    from dvc.stage import Stage

CODE = "src/cleanset/"
"""Part of the path of every dependency on code."""


def relock(project: Path, also: Collection[str] = ()) -> list[str]:
    """Rewrite dvc.lock for the stages that dvc.yaml has today and return the names of those that changed.

    Code, and other dependencies named in `also`, get the digests of the files as they are; outputs and all else keep
    theirs. Stages that are no longer in dvc.yaml are left out.

    Raises CleansetError for a stage that the lock lacks, and for a dependency whose digest it does not know.
    """
    from dvc.repo import Repo
    from dvc.utils.serialize import dump_yaml

    lock = project / "dvc.lock"
    before: dict[str, Any] = yaml.safe_load(lock.read_text("utf-8"))
    known = dict(_digests(before["stages"]))
    with Repo(str(project)) as repo:
        stages = {
            stage.name: stage for stage in repo.index.stages if stage.path == str((project / "dvc.yaml").resolve())
        }
        found = {name: _entry(stages[name], before["stages"], known, lock, also) for name in stages}
    ordered = {name: found[name] for name in [*before["stages"], *sorted(found)] if name in found}
    dump_yaml(lock, {**before, "stages": ordered})
    return [name for name, entry in ordered.items() if before["stages"][name] != entry]


def _digests(stages: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every file that a lock has a digest of, outputs last as they are the newer ones."""
    for kind in ("deps", "outs"):
        for entry in stages.values():
            yield from ((each["path"], each) for each in entry.get(kind, ()))


def _entry(
    stage: "Stage",
    locked: Mapping[str, Any],
    known: Mapping[str, dict[str, Any]],
    lock: Path,
    also: Collection[str],
) -> dict[str, Any]:
    """The lock's entry for a stage, its keys in DVC's order."""
    if stage.name not in locked:
        raise CleansetError(f"{lock}: no stage {stage.name}; expected one that has run: dvc repro {stage.name}")
    before = locked[stage.name]
    names = [dep for dep in stage.deps if not dep.def_path.endswith("params.yaml")]
    deps = [_dependency(dep, known, also, f"{lock}: stage {stage.name}") for dep in names]
    entry: dict[str, Any] = {"cmd": stage.cmd}
    if deps:
        entry["deps"] = sorted(deps, key=lambda each: str(each["path"]))
    return entry | {key: value for key, value in before.items() if key not in ("cmd", "deps")}


def _dependency(
    dep: "Dependency", known: Mapping[str, dict[str, Any]], also: Collection[str], where: str
) -> dict[str, Any]:
    path = str(dep.def_path)
    if CODE not in path and path not in also:
        if path not in known:
            raise CleansetError(f"{where}: no digest of {path}; expected an output, or what the stage read before")
        return dict(known[path])
    dep.save()
    kept = {key: value for key, value in dep.dumpd().items() if value is not None}
    return {"path": path, "hash": "md5", **{key: kept[key] for key in ("md5", "size", "nfiles") if key in kept}}
