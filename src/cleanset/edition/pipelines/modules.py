"""The modules of this package that decide what a function does, read from their source without importing them.

The walk goes from definition to definition, not from module to module: a stage that calls one function of a module
reaches what that function uses, and not all that its neighbors import.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = "cleanset"
SOURCE = Path(__file__).resolve().parents[2]


class Definition(NamedTuple):
    """A name that a module defines at its top level; all of the module where `name` is empty."""

    module: str
    name: str = ""


def reached(roots: Iterable[Definition], plumbing: Collection[str] = ()) -> list[str]:
    """The modules with a definition that the roots use, directly or not: dotted names, sorted.

    Imports within functions count; annotations of functions and imports for type checkers do not. A class counts as a
    whole. `plumbing` names modules and packages at which the walk stops: neither they nor what only they use is in
    the result.
    """
    found: set[Definition] = set()
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
    """The source file of a module or package, whether there is one or not."""
    path = SOURCE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@dataclass(frozen=True, slots=True, eq=False)
class _Module:
    """The top level of a module: the statements that define each name, those that define none, and its imports."""

    statements: Mapping[str, list[ast.stmt]]
    others: list[ast.stmt]
    imports: Mapping[str, Definition]


@cache
def used_by(definition: Definition) -> tuple[Definition, ...]:
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
    imports: dict[str, Definition] = {}
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


def _imported(statement: ast.Import | ast.ImportFrom) -> dict[str, Definition]:
    """The modules or definitions that an import binds, by name."""
    if isinstance(statement, ast.Import):
        named = {alias.asname or alias.name: alias.name for alias in statement.names}
        return {bound: Definition(name) for bound, name in named.items() if name.partition(".")[0] == PACKAGE}
    if not statement.module or statement.module.partition(".")[0] != PACKAGE:
        return {}
    found = {}
    for alias in statement.names:
        module = f"{statement.module}.{alias.name}"
        is_module = path_of(module).is_file()
        found[alias.asname or alias.name] = (
            Definition(module) if is_module else Definition(statement.module, alias.name)
        )
    return found


def _used(statement: ast.stmt, name: str, module: _Module) -> Iterator[Definition]:
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
                yield Definition(target.module, node.attr)
    for node in _evaluated(statement):
        if isinstance(node, ast.Name) and node not in of_modules:
            if node.id in imports:
                yield imports[node.id]
            elif node.id in module.statements:
                yield Definition(name, node.id)


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
