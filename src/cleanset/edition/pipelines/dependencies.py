"""The code that the stages of a dvc.yaml name in their deps: derived from the commands that they run.

A stage that runs a model or reads archives names a VERSION file, which people raise when its bytes change: a
refactoring must not cost a GPU hour, and the rebuild of the sample from nothing shows a VERSION that was forgotten.
Every other stage names the modules that its command reaches, and runs again, in seconds, after any edit of one.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from cleanset.edition.pipelines.modules import PACKAGE, Definition, reached, used_by
from cleanset.edition.yaml_edit import LayoutError, edited_text
from cleanset.errors import CleansetError
from cleanset.files import read_text, write_text
from cleanset.parsing import parse_yaml

PIXELS = "decides pixels, and the stages that make them have a VERSION"
PLUMBING = {
    "cleanset.cli": "calls the stage",
    "cleanset.review.commands": "calls the stage",
    "cleanset.studies.attacks.commands": "calls the stage",
    "cleanset.studies.contest.commands": "calls the stage",
    "cleanset.studies.realness.commands": "calls the stage",
    "cleanset.studies.robustness.commands": "calls the stage",
    "cleanset.studies.training.commands": "calls the stage",
    "cleanset.edition.paths": "options of commands",
    "cleanset.edition": "reads params.yaml, whose keys stages name, and knows where files lie",
    "cleanset.dataset.archives": "finds images; what is read is checked by SHA-256",
    "cleanset.dataset.ilsvrc": "the numbering of the classes, which never changes",
    "cleanset.sets.folder": "reads finished sets, which are checked by SHA-256",
    "cleanset.images": PIXELS,
    "cleanset.scoring.differentiable": PIXELS,
    "cleanset.studies.robustness.changed_images": PIXELS,
    "cleanset.studies.robustness.corruptions.changes": PIXELS,
    "cleanset.studies.robustness.exact": PIXELS,
    "cleanset.studies.robustness.kernels": PIXELS,
    "cleanset.studies.robustness.perturbations.changes": PIXELS,
    "cleanset.studies.robustness.published_images": PIXELS,
    "cleanset.studies.robustness.scenarios.changes": PIXELS,
    "cleanset.studies.robustness.scenarios.scenes": PIXELS,
    "cleanset.validation": "the base class of params",
    "cleanset.errors": "messages",
    "cleanset.progress": "messages",
    "cleanset.files": "reads and writes files",
    "cleanset.parsing": "reads files; another reading is an error",
    "cleanset.tables": "reads and writes tables by their schemas",
    "cleanset.vocabulary": "names, which the tables hold",
}
"""The modules and packages at which the walk stops, and why no stage has to run again when one changes."""
VERSION = "VERSION"


def update_dependencies(projects: Iterable[Path], app: typer.Typer, *, write: bool) -> list[Path]:
    """The dvc.yaml files of DVC projects whose code deps are out of date; with `write` they are brought up to date."""
    changed = []
    for path in (project / "dvc.yaml" for project in projects):
        before = read_text(path, "expected the dvc.yaml of an edition or a study")
        after = with_code(before, app, str(path))
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


def with_code(text: str, app: typer.Typer, where: str) -> str:
    """The text of a dvc.yaml with the code deps that its commands ask for; all else keeps its bytes.

    Raises CleansetError for a command that `app` does not have, and a layout that cannot be edited.
    """
    content: Any = parse_yaml(text, where)
    commands = dict(_commands(app))
    prefix = f"{'../../' if '../../${root}' in text else ''}${{root}}/src/"
    for name, entry in content["stages"].items():
        deps = entry.get("deps")
        # deps of a stage with a VERSION are written by hand
        if deps and not _is_versioned(deps):
            code = _code_of(name, entry["cmd"], commands, where)
            others = [dep for dep in deps if not str(dep).startswith(prefix)]
            entry["deps"] = [*others, *(f"{prefix}{module}" for module in code)]
    try:
        return edited_text(text, content, where)
    except LayoutError:
        raise CleansetError(
            f"{where}: the deps on code cannot be written; expected a list with a line for each"
        ) from None


def _is_versioned(deps: Iterable[object]) -> bool:
    return any(str(dep).endswith(f"/{VERSION}") for dep in deps)


def _commands(app: typer.Typer, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Definition]]:
    """The function behind each command, by the words that call it."""
    for command in app.registered_commands:
        callback = command.callback
        if callback is not None:
            name = command.name or callback.__name__.replace("_", "-")
            yield (*prefix, name), Definition(inspect.unwrap(callback).__module__, callback.__name__)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _commands(group.typer_instance, (*prefix, *([group.name] if group.name else [])))


def _code_of(stage: str, command: str, commands: Mapping[tuple[str, ...], Definition], where: str) -> list[str]:
    """The files below src/ that a stage depends on, sorted."""
    # the words that name a command end at its first option, or at ${item.…}
    words = tuple(re.split(r" -|\$", command)[0].split())
    if words[:1] != (PACKAGE,) or words[1:] not in commands:
        raise CleansetError(f"{where}: stage {stage} runs {command!r}; expected a command that cleanset --help lists")
    root = commands[words[1:]]
    return [f"{module.replace('.', '/')}.py" for module in reached(used_by(root), PLUMBING)]
