"""Enter today's code into a dvc.lock without running a stage, after a refactoring that changes no output."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cleanset.edition.dvc_files import LockedFile, LockedStage, dvc_stages, is_whole, load_yaml
from cleanset.edition.modules import SOURCE
from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_text

if TYPE_CHECKING:
    from dvc.stage import Stage as LoadedStage

CODE_PREFIX = f"src/{SOURCE.name}/"
"""Part of the path of every dependency on code."""


def relock(project: Path) -> list[str]:
    """Rewrite dvc.lock for the stages that dvc.yaml has today and return the names of those that changed.

    Code gets the digests of the files as they are. Outputs, VERSION files, all other dependencies and the params keep
    their locked digests, so that a stage that was out of date stays so. A file that a stage has not named before gets
    the digest that the lock has of it elsewhere, a param the value in its file. Stages no longer in dvc.yaml are left
    out.

    Raises CleansetError for a stage that the lock lacks, and for a dependency whose digest it does not know.
    """
    from dvc.utils.serialize import dump_yaml

    lock = project / "dvc.lock"
    text = read_text(lock, "run cleanset doctor --quick")
    if not is_whole(text):
        raise CleansetError(f"{lock}: empty, cut off or damaged; run cleanset doctor --quick, which restores it")
    before = load_yaml(text)
    locked: dict[str, LockedStage] = before["stages"]
    known = {each["path"]: each for entry in locked.values() for each in entry.get("outs", ())}
    with dvc_stages(project / "dvc.yaml") as stages:
        found = {stage.name: _entry(stage, locked, known, lock) for stage in stages}
    ordered = {name: found[name] for name in [*locked, *sorted(found)] if name in found}
    dump_yaml(lock, {**before, "stages": ordered})
    return [name for name, entry in ordered.items() if locked[name] != entry]


def _entry(
    stage: "LoadedStage", locked: Mapping[str, LockedStage], known: Mapping[str, LockedFile], lock: Path
) -> dict[str, object]:
    """The lock's entry for a stage, its keys in DVC's order."""
    from dvc.dependency.param import ParamsDependency

    if stage.name not in locked:
        raise CleansetError(f"{lock}: no stage {stage.name}; expected one that has run: dvc repro {stage.name}")
    before = locked[stage.name]
    digests = {**known, **{each["path"]: each for each in before.get("deps", ())}}
    deps: list[LockedFile] = []
    params: dict[str, dict[str, object]] = {}
    for dep in stage.deps:
        path = str(dep.def_path)
        if isinstance(dep, ParamsDependency):
            # locked values win: a changed param has to run the stage
            values: dict[str, object] = {**dep.read_params(), **before.get("params", {}).get(path, {})}
            params[path] = {key: values[key] for key in sorted(dep.params) if key in values}
        # a VERSION that was raised says that the outputs change: the stage has to run
        elif CODE_PREFIX in path and not (path.endswith("/VERSION") and path in digests):
            # computes the digest of the file as it is; dumpd alone gives the one that was locked
            dep.save()
            written = dep.dumpd()
            found: LockedFile = {"path": path}
            for key in ("hash", "md5", "size", "nfiles"):
                if key in written:
                    found[key] = written[key]
            deps.append(found)
        elif path in digests:
            deps.append(digests[path].copy())
        else:
            raise CleansetError(
                f"{lock}: stage {stage.name}: no digest of {path}; expected an output of the pipeline, or what the "
                f"stage read before: dvc repro {stage.name}"
            )
    deps.sort(key=lambda each: str(each["path"]))
    # DVC writes the stage's own params file first
    ordered = {path: params[path] for path in sorted(params, key=lambda path: (path != "params.yaml", path))}
    entry = {"cmd": stage.cmd, "deps": deps, "params": ordered, "outs": before.get("outs")}
    return {key: value for key, value in entry.items() if value}
