"""The code that each stage of a dvc.yaml depends on: written into its deps, and into dvc.lock without running a stage.

A stage that runs a model or reads archives names a VERSION file, which people raise when its bytes change: a
refactoring must not cost a GPU hour, and the rebuild of the sample from nothing shows a VERSION that was forgotten.
Every other stage names the modules that its command reaches, and runs again, in seconds, after any edit of one. A stage
that draws pages names a VERSION and the folders of templates: most edits of code leave pages unchanged, few of wording.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cleanset.edition.dvc_files import LockedFile, LockedStage, checked_pipeline, dvc_stages, is_whole, load_yaml
from cleanset.edition.modules import SOURCE, ReachedDefinition, SourceCode
from cleanset.edition.stage_inputs import unlock_misread
from cleanset.edition.yaml_edit import LayoutError, edited_text
from cleanset.errors import PACKAGE, CleansetError
from cleanset.plumbing.files import read_text, write_text
from cleanset.plumbing.yaml_files import data_beside, parse_yaml

if TYPE_CHECKING:
    from dvc.stage import Stage as LoadedStage

PLUMBING: dict[str, str] = data_beside(__file__, "plumbing.yaml")
"""The modules and packages at which the walk stops, and why no stage has to run again when one changes."""
VERSION_FILE = "VERSION"
PAGE_VERSIONS = (f"/report/{VERSION_FILE}", f"/studies/{VERSION_FILE}")
"""The ends of the VERSION files of stages that draw pages; these stages name the folders of their templates, too."""


def update_dependencies(projects: Iterable[Path], app: typer.Typer, *, write: bool) -> list[Path]:
    """The dvc.yaml files of DVC projects whose code deps are out of date; with `write` they are brought up to date."""
    changed = []
    code = SourceCode()
    for path in (project / "dvc.yaml" for project in projects):
        before = read_text(path, "expected the dvc.yaml of an edition or a study")
        after = with_code(before, app, str(path), code)
        if after != before:
            if write:
                write_text(path, after)
            changed.append(path)
    return changed


def projects_of(editions: Iterable[Path]) -> list[Path]:
    """The folders with a dvc.yaml of this project: editions, each followed by its studies, sorted."""
    found = []
    for edition in editions:
        found += [edition, *sorted(path.parent for path in edition.glob("studies/*/dvc.yaml"))]
    return found


def with_code(text: str, app: typer.Typer, where: str, code: SourceCode) -> str:
    """The text of a dvc.yaml with the code deps that its commands ask for; all else keeps its bytes.

    Raises CleansetError for a command that `app` does not have, and a layout that cannot be edited.
    """
    content = checked_pipeline(parse_yaml(text, where), where)
    commands = dict(_commands(app))
    prefix = f"{'../../' if '../../${root}' in text else ''}${{root}}/src/"
    for name, entry in content["stages"].items():
        deps = entry.get("deps")
        versions = [dep for dep in deps or () if str(dep).endswith(f"/{VERSION_FILE}")]
        # other deps of a stage with a VERSION are written by hand
        if deps and (not versions or any(dep.endswith(PAGE_VERSIONS) for dep in versions)):
            modules = code.reached(_roots(name, entry["cmd"], commands, where, code), PLUMBING)
            named = _templates(modules, code) if versions else [f"{module.replace('.', '/')}.py" for module in modules]
            others = [dep for dep in deps if dep in versions or not str(dep).startswith(prefix)]
            entry["deps"] = [*others, *(f"{prefix}{each}" for each in named)]
    try:
        return edited_text(text, content, where)
    except LayoutError:
        raise CleansetError(
            f"{where}: the deps on code cannot be written; expected a list with a line for each"
        ) from None


def _templates(modules: Iterable[str], code: SourceCode) -> list[str]:
    """The folders of templates next to modules."""
    packages = {module.rpartition(".")[0] for module in modules if (code.path_of(module).parent / "templates").is_dir()}
    return [f"{package.replace('.', '/')}/templates" for package in sorted(packages)]


def _commands(app: typer.Typer, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], ReachedDefinition]]:
    """The function behind each command, by the words that call it."""
    for command in app.registered_commands:
        callback = command.callback
        if callback is not None:
            name = command.name or callback.__name__.replace("_", "-")
            yield (*prefix, name), ReachedDefinition(inspect.unwrap(callback).__module__, callback.__name__)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _commands(group.typer_instance, (*prefix, *([group.name] if group.name else [])))


def _roots(
    stage: str, command: str, commands: Mapping[tuple[str, ...], ReachedDefinition], where: str, code: SourceCode
) -> tuple[ReachedDefinition, ...]:
    """The definitions that the command of a stage begins with."""
    # the words that name a command end at its first option, or at ${item.…}
    words = tuple(re.split(r" -|\$", command)[0].split())
    # a stage of an edition is the module of its name
    run = ReachedDefinition(f"{PACKAGE}.stages.{words[-1]}", "run")
    if words in ((PACKAGE, words[-1]), (PACKAGE, "stage", words[-1])) and code.path_of(run.module).is_file():
        return (run,)
    if words[:1] == (PACKAGE,) and words[1:] in commands:
        return code.used_by(commands[words[1:]])
    raise CleansetError(f"{where}: stage {stage} runs {command!r}; expected a command that cleanset --help lists")


CODE_PREFIX = f"src/{SOURCE.name}/"
"""Part of the path of every dependency on code."""


def relock(project: Path) -> list[str]:
    """Rewrite dvc.lock for the stages that dvc.yaml has today and return the names of those that changed.

    Code gets the digests of the unchanged files. Outputs, VERSION files, all other dependencies and the params keep
    their locked digests, so that a stage that was out of date stays so. A file that a stage has not named before gets
    the digest that the lock has of it elsewhere, a param the value in its file. Stages no longer in dvc.yaml are left
    out.

    Raises CleansetError for a stage that the lock lacks, and for a dependency whose digest it does not know.
    """
    from dvc.utils.serialize import dump_yaml

    lock = project / "dvc.lock"
    if lines := unlock_misread(project):
        raise CleansetError("; ".join(lines))
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
            # computes the digest of the unchanged file; dumpd alone gives the one that was locked
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
