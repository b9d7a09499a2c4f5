"""The code that each stage of a dvc.yaml depends on: derived from imports, and entered into locks.

A stage that runs a model or reads archives names a VERSION file, which people raise when its bytes change: a
refactoring must not cost a GPU hour, and the rebuild of the sample from nothing shows a VERSION that was forgotten.
Every other stage names the modules that its command reaches, and runs again, in seconds, after any edit of one. The
walk goes from definition to definition, not from module to module: a stage that calls one function of a module reaches
only the definitions which that function uses.
"""

import ast
import inspect
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from cleanset.edition.pipeline import load_yaml
from cleanset.edition.yaml_edit import LayoutError, edited_text
from cleanset.errors import PACKAGE, CleansetError, reason
from cleanset.files import read_text, write_text
from cleanset.yaml_files import data_beside, parse_yaml

if TYPE_CHECKING:
    from dvc.stage import Stage

PLUMBING: dict[str, str] = data_beside(__file__, "plumbing.yaml")
"""The modules and packages at which the walk stops, and why no stage has to run again when one changes."""
VERSION_FILE = "VERSION"
SOURCE = Path(__file__).resolve().parents[1]


CODE_PREFIX = "src/cleanset/"
"""Part of the path of every dependency on code."""


class ReachedDefinition(NamedTuple):
    """A name that a module defines at its top level; all of the module where `name` is empty."""

    module: str
    name: str = ""


def reached(roots: Iterable[ReachedDefinition], plumbing: Collection[str] = ()) -> list[str]:
    """The modules with a definition that the roots use, directly or not: dotted names, sorted.

    Imports within functions count; annotations of functions and imports for type checkers do not. A class counts as a
    whole. `plumbing` names modules and packages at which the walk stops: the result excludes them and everything that
    only they use.
    """
    found: set[ReachedDefinition] = set()
    waiting = list(roots)
    while waiting:
        definition = waiting.pop()
        if definition not in found and not is_within(definition.module, plumbing):
            found.add(definition)
            waiting += used_by(definition)
    return sorted({definition.module for definition in found})


def is_within(module: str, names: Collection[str]) -> bool:
    """Whether a module is one of `names`, or in a package that is."""
    parts = module.split(".")
    return any(".".join(parts[:count]) in names for count in range(1, len(parts) + 1))


def path_of(module: str) -> Path:
    """The path of the source file of a module or package; it need not exist."""
    path = SOURCE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@dataclass(frozen=True, slots=True, eq=False)
class _Module:
    """The top level of a module: the statements that define each name, those that define none, and its imports."""

    statements: Mapping[str, list[ast.stmt]]
    others: list[ast.stmt]
    imports: Mapping[str, ReachedDefinition]


@cache
def used_by(definition: ReachedDefinition) -> tuple[ReachedDefinition, ...]:
    """The definitions of this package that a definition uses directly, sorted."""
    module = _parsed(definition.module)
    statements = [*module.others]
    for name, defining in module.statements.items():
        if definition.name in ("", name):
            statements += defining
    if definition.name in module.imports:  # a name that this module only hands on
        return (module.imports[definition.name],)
    return tuple(sorted({used for statement in statements for used in _used(statement, definition.module, module)}))


@cache
def _parsed(module: str) -> _Module:
    statements: dict[str, list[ast.stmt]] = {}
    others: list[ast.stmt] = []
    imports: dict[str, ReachedDefinition] = {}
    for statement in _top_level(ast.parse(path_of(module).read_text("utf-8")).body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports |= _imported(statement)
        elif names := list(_defined(statement)):
            for name in names:
                statements.setdefault(name, []).append(statement)
        elif not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
            others.append(statement)
    return _Module(statements, others, imports)


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those in its conditions and attempts included."""
    for statement in body:
        if isinstance(statement, ast.If):
            if not _is_for_type_checkers(statement):
                yield from _top_level([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            handlers = [each for handler in statement.handlers for each in handler.body]
            yield from _top_level([*statement.body, *handlers, *statement.orelse, *statement.finalbody])
        else:
            yield statement


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _imported(statement: ast.Import | ast.ImportFrom) -> dict[str, ReachedDefinition]:
    """The modules or definitions that an import binds, by name."""
    if isinstance(statement, ast.Import):
        named = {alias.asname or alias.name: alias.name for alias in statement.names}
        return {bound: ReachedDefinition(name) for bound, name in named.items() if name.partition(".")[0] == PACKAGE}
    if not statement.module or statement.module.partition(".")[0] != PACKAGE:
        return {}
    found = {}
    for alias in statement.names:
        module = f"{statement.module}.{alias.name}"
        is_module = path_of(module).is_file()
        found[alias.asname or alias.name] = (
            ReachedDefinition(module) if is_module else ReachedDefinition(statement.module, alias.name)
        )
    return found


def _used(statement: ast.stmt, name: str, module: _Module) -> Iterator[ReachedDefinition]:
    """The definitions that a statement of the module `name` uses."""
    # an import within a function may bind a name that the module does not have
    imports = dict(module.imports)
    for node in _evaluated(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= _imported(node)
    of_modules: set[ast.AST] = set()
    for node in _evaluated(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            target = imports.get(node.value.id)
            if target is not None and not target.name:
                of_modules.add(node.value)
                yield ReachedDefinition(target.module, node.attr)
    for node in _evaluated(statement):
        if isinstance(node, ast.Name) and node not in of_modules:
            if node.id in imports:
                yield imports[node.id]
            elif node.id in module.statements:
                yield ReachedDefinition(name, node.id)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all within it, but for what only type checkers read."""
    if _is_for_type_checkers(node):
        return
    yield node
    for field, value in ast.iter_fields(node):
        is_annotation = field == "returns" or (field == "annotation" and isinstance(node, ast.arg))
        # an annotation decides no output: a module that only annotations name is no dependency
        if not is_annotation:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _evaluated(child)


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
        if deps and not any(str(dep).endswith(f"/{VERSION_FILE}") for dep in deps):
            code = _code_of(name, entry["cmd"], commands, where)
            others = [dep for dep in deps if not str(dep).startswith(prefix)]
            entry["deps"] = [*others, *(f"{prefix}{module}" for module in code)]
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


def _code_of(stage: str, command: str, commands: Mapping[tuple[str, ...], ReachedDefinition], where: str) -> list[str]:
    """The files below src/ that a stage depends on, sorted."""
    # the words that name a command end at its first option, or at ${item.…}
    words = tuple(re.split(r" -|\$", command)[0].split())
    # a stage of an edition is the module of its name
    run = ReachedDefinition(f"{PACKAGE}.stages.{words[-1]}", "run")
    if words in ((PACKAGE, words[-1]), (PACKAGE, "stage", words[-1])) and path_of(run.module).is_file():
        roots: tuple[ReachedDefinition, ...] = (run,)
    elif words[:1] == (PACKAGE,) and words[1:] in commands:
        roots = used_by(commands[words[1:]])
    else:
        raise CleansetError(f"{where}: stage {stage} runs {command!r}; expected a command that cleanset --help lists")
    return [f"{module.replace('.', '/')}.py" for module in reached(roots, PLUMBING)]


def relock(project: Path) -> list[str]:
    """Rewrite dvc.lock for the stages that dvc.yaml has today and return the names of those that changed.

    Code gets the digests of the files as they are. Outputs, VERSION files, all other dependencies and the params keep
    their locked digests, so that a stage that was out of date stays so. A file that a stage has not named before gets
    the digest that the lock has of it elsewhere, a param the value in its file. Stages no longer in dvc.yaml are left
    out.

    Raises CleansetError for a stage that the lock lacks, and for a dependency whose digest it does not know.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.utils.serialize import dump_yaml

    from cleanset.edition.doctor import is_whole

    lock = project / "dvc.lock"
    text = read_text(lock, "run cleanset doctor --quick")
    if not is_whole(text):
        raise CleansetError(f"{lock}: empty, cut off or damaged; run cleanset doctor --quick, which restores it")
    before: dict[str, Any] = load_yaml(text)
    known = {each["path"]: each for entry in before["stages"].values() for each in entry.get("outs", ())}
    try:
        with Repo(str(project)) as repo:
            path = str((project / "dvc.yaml").resolve())
            stages = {stage.name: stage for stage in repo.index.stages if stage.path == path}
            found = {name: _entry(stage, before["stages"], known, lock) for name, stage in stages.items()}
    except DvcException as error:  # no project of DVC, no git, a file that it cannot read
        raise CleansetError(f"{project}: DVC cannot read it ({reason(error)}); expected a checkout") from None
    ordered = {name: found[name] for name in [*before["stages"], *sorted(found)] if name in found}
    dump_yaml(lock, {**before, "stages": ordered})
    return [name for name, entry in ordered.items() if before["stages"][name] != entry]


def _entry(
    stage: "Stage", locked: Mapping[str, Any], known: Mapping[str, dict[str, Any]], lock: Path
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
            # locked values win: a changed param has to run the stage
            values = {**dep.read_params(), **before.get("params", {}).get(path, {})}
            params[path] = {key: values[key] for key in sorted(dep.params) if key in values}
        # a VERSION that was raised says that the outputs change: the stage has to run
        elif CODE_PREFIX in path and not (path.endswith("/VERSION") and path in digests):
            # computes the digest of the file as it is; dumpd alone gives the one that was locked
            dep.save()
            written = dep.dumpd()
            digest = {key: written[key] for key in ("hash", "md5", "size", "nfiles") if key in written}
            deps.append({"path": path, **digest})
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
