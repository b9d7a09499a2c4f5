"""The code that each stage of a dvc.yaml depends on, written into its deps.

A stage that runs a model or reads archives names a VERSION file, which people raise when its bytes change: a
refactoring must not cost a GPU hour, and the rebuild of the sample from nothing shows a VERSION that was forgotten.
Every other stage names the modules that its command reaches, and runs again, in seconds, after any edit of one.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import typer

from cleanset.edition.dvc_files import checked_pipeline
from cleanset.edition.modules import ReachedDefinition, SourceCode
from cleanset.edition.yaml_edit import LayoutError, edited_text
from cleanset.errors import PACKAGE, CleansetError
from cleanset.plumbing.files import read_text, write_text
from cleanset.plumbing.yaml_files import data_beside, parse_yaml

PLUMBING: dict[str, str] = data_beside(__file__, "plumbing.yaml")
"""The modules and packages at which the walk stops, and why no stage has to run again when one changes."""
VERSION_FILE = "VERSION"


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
        # deps of a stage with a VERSION are written by hand
        if deps and not any(str(dep).endswith(f"/{VERSION_FILE}") for dep in deps):
            modules = code.reached(_roots(name, entry["cmd"], commands, where, code), PLUMBING)
            others = [dep for dep in deps if not str(dep).startswith(prefix)]
            entry["deps"] = [*others, *(f"{prefix}{module.replace('.', '/')}.py" for module in modules)]
    try:
        return edited_text(text, content, where)
    except LayoutError:
        raise CleansetError(
            f"{where}: the deps on code cannot be written; expected a list with a line for each"
        ) from None


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
