"""Entering today's code into dvc.lock after a refactoring that changes no output, without running a stage.

`dvc commit` does the same where all data is present; this needs none of it, so that an edition whose scores lie on a
remote needs no GPU. That the outputs are really the same is shown by building the sample from nothing
(tests/project/test_guard.py).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cleanset.errors import CleansetError

if TYPE_CHECKING:
    from dvc.dependency import Dependency
    from dvc.dependency.param import ParamsDependency
    from dvc.stage import Stage

CODE = "src/cleanset/"
"""Part of the path of every dependency on code."""


def relock(project: Path) -> list[str]:
    """Rewrite dvc.lock for the stages that dvc.yaml has today and return the names of those that changed.

    Code gets the digests of the files as they are. Outputs, VERSION files, all other dependencies and the params keep
    what is locked, so that a stage that was out of date stays so. What a stage has not named before gets the digest
    that the lock has of it elsewhere, a param the value in its file. Stages no longer in dvc.yaml are left out.

    Raises CleansetError for a stage that the lock lacks, and for a dependency whose digest it does not know.
    """
    from dvc.repo import Repo
    from dvc.utils.serialize import dump_yaml

    lock = project / "dvc.lock"
    before: dict[str, Any] = yaml.safe_load(lock.read_text("utf-8"))
    known = {each["path"]: each for entry in before["stages"].values() for each in entry.get("outs", ())}
    with Repo(str(project)) as repo:
        path = str((project / "dvc.yaml").resolve())
        stages = {stage.name: stage for stage in repo.index.stages if stage.path == path}
        found = {name: _entry(stage, before["stages"], known, lock) for name, stage in stages.items()}
    ordered = {name: found[name] for name in [*before["stages"], *sorted(found)] if name in found}
    dump_yaml(lock, {**before, "stages": ordered})
    return [name for name, entry in ordered.items() if before["stages"][name] != entry]


def _entry(
    stage: "Stage",
    locked: Mapping[str, Any],
    known: Mapping[str, dict[str, Any]],
    lock: Path,
) -> dict[str, Any]:
    """The lock's entry for a stage, its keys in DVC's order."""
    from dvc.dependency.param import ParamsDependency

    if stage.name not in locked:
        raise CleansetError(f"{lock}: no stage {stage.name}; expected one that has run: dvc repro {stage.name}")
    before = locked[stage.name]
    digests = {**known, **{each["path"]: each for each in before.get("deps", ())}}
    deps, params = [], {}
    for dep in stage.deps:
        path = str(dep.def_path)
        if isinstance(dep, ParamsDependency):
            params[path] = _values(dep, before.get("params", {}).get(path, {}))
        # a VERSION that was raised says that the outputs change: the stage has to run
        elif CODE in path and not (path.endswith("/VERSION") and path in digests):
            deps.append(_digest(dep))
        elif path in digests:
            deps.append(dict(digests[path]))
        else:
            raise CleansetError(
                f"{lock}: stage {stage.name}: no digest of {path}; expected an output of the pipeline, or what the "
                f"stage read before: dvc repro {stage.name}"
            )
    deps.sort(key=lambda each: str(each["path"]))
    # DVC writes the stage's own params file first
    ordered = {path: params[path] for path in sorted(params, key=lambda path: (path != "params.yaml", path))}
    found = {"cmd": stage.cmd, "deps": deps, "params": ordered, "outs": before.get("outs")}
    return {key: value for key, value in found.items() if value}


def _values(dep: "ParamsDependency", locked: Mapping[str, Any]) -> dict[str, Any]:
    # locked values win: a changed param has to run the stage
    values = {**dep.read_params(), **locked}
    return {key: values[key] for key in sorted(dep.params) if key in values}


def _digest(dep: "Dependency") -> dict[str, Any]:
    # computes the digest of the file as it is; dumpd alone gives the one that was locked
    dep.save()
    written = dep.dumpd()
    found = {key: written[key] for key in ("hash", "md5", "size", "nfiles") if key in written}
    return {"path": str(dep.def_path), **found}
