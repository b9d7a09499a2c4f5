"""The modules that a definition reaches by its imports and calls, found in the source without importing it.

The walk goes from definition to definition, not from module to module: a stage that calls one function of a module
reaches only the definitions which that function uses.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cleanset.errors import PACKAGE

SOURCE = Path(__file__).resolve().parents[1]
"""The folder of this package."""


class ReachedDefinition(NamedTuple):
    """A name that a module defines at its top level; all of the module where `name` is empty."""

    module: str
    name: str = ""


def is_within(module: str, names: Collection[str]) -> bool:
    """Whether a module is one of `names`, or in a package that is."""
    parts = module.split(".")
    return any(".".join(parts[:count]) in names for count in range(1, len(parts) + 1))


@dataclass(frozen=True, slots=True, eq=False)
class _Module:
    """The top level of a module."""

    statements: Mapping[str, list[ast.stmt]]
    """The statements that define each name."""

    others: list[ast.stmt]
    """Those that define none."""

    imports: Mapping[str, ReachedDefinition]


class SourceCode:
    """The source of a package, read and parsed once; a change of a file is seen by a new one."""

    def __init__(self, folder: Path = SOURCE) -> None:
        self._folder = folder
        self._modules: dict[str, _Module] = {}
        self._used: dict[ReachedDefinition, tuple[ReachedDefinition, ...]] = {}

    def path_of(self, module: str) -> Path:
        """The path of the source file of a module or package; it need not exist."""
        path = self._folder.joinpath(*module.split(".")[1:])
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def reached(self, roots: Iterable[ReachedDefinition], plumbing: Collection[str] = ()) -> list[str]:
        """The modules with a definition that the roots use, directly or not: dotted names, sorted.

        Imports within functions count; annotations of functions and imports for type checkers do not. A class counts
        as a whole. `plumbing` names modules and packages at which the walk stops: the result excludes them and
        everything that only they use.
        """
        found: set[ReachedDefinition] = set()
        waiting = list(roots)
        while waiting:
            definition = waiting.pop()
            if definition not in found and not is_within(definition.module, plumbing):
                found.add(definition)
                waiting += self.used_by(definition)
        return sorted({definition.module for definition in found})

    def used_by(self, definition: ReachedDefinition) -> tuple[ReachedDefinition, ...]:
        """The definitions of this package that a definition uses directly, sorted."""
        if definition not in self._used:
            self._used[definition] = self._uses_of(definition)
        return self._used[definition]

    def _uses_of(self, definition: ReachedDefinition) -> tuple[ReachedDefinition, ...]:
        module = self._module(definition.module)
        if definition.name in module.imports:  # a name that this module only hands on
            return (module.imports[definition.name],)
        statements = [*module.others]
        for name, defining in module.statements.items():
            if definition.name in ("", name):
                statements += defining
        uses = (used for statement in statements for used in self._used_in(statement, definition.module, module))
        return tuple(sorted(set(uses)))

    def _module(self, name: str) -> _Module:
        if name not in self._modules:
            self._modules[name] = self._parsed(name)
        return self._modules[name]

    def _parsed(self, module: str) -> _Module:
        statements: dict[str, list[ast.stmt]] = {}
        others: list[ast.stmt] = []
        imports: dict[str, ReachedDefinition] = {}
        for statement in _top_level(ast.parse(self.path_of(module).read_text("utf-8")).body):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                imports |= self._imported(statement)
            elif names := list(_defined(statement)):
                for name in names:
                    statements.setdefault(name, []).append(statement)
            elif not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
                others.append(statement)
        return _Module(statements=statements, others=others, imports=imports)

    def _imported(self, statement: ast.Import | ast.ImportFrom) -> dict[str, ReachedDefinition]:
        """The modules or definitions that an import binds, by name."""
        if isinstance(statement, ast.Import):
            named = {alias.asname or alias.name: alias.name for alias in statement.names}
            ours = {bound: name for bound, name in named.items() if name.partition(".")[0] == PACKAGE}
            return {bound: ReachedDefinition(name) for bound, name in ours.items()}
        if not statement.module or statement.module.partition(".")[0] != PACKAGE:
            return {}
        found = {}
        for alias in statement.names:
            module = f"{statement.module}.{alias.name}"
            is_module = self.path_of(module).is_file()
            found[alias.asname or alias.name] = (
                ReachedDefinition(module) if is_module else ReachedDefinition(statement.module, alias.name)
            )
        return found

    def _used_in(self, statement: ast.stmt, name: str, module: _Module) -> Iterator[ReachedDefinition]:
        """The definitions that a statement of the module `name` uses."""
        # an import within a function may bind a name that the module does not have
        imports = dict(module.imports)
        for node in _evaluated(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports |= self._imported(node)
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


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all within it, but for what only type checkers read."""
    if _is_for_type_checkers(node):
        return
    yield node
    for field, value in ast.iter_fields(node):
        is_annotation = field == "returns" or (field == "annotation" and isinstance(node, ast.arg))
        # an annotation decides no output: a module that only annotations name is not a dependency
        if not is_annotation:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _evaluated(child)
