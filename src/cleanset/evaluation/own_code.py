"""Code of users, named as MODULE:NAME in params, commands and functions: imported, and identified by a digest."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from cleanset.errors import CleansetError, raised
from cleanset.scoring.fingerprints import module_fingerprint


def imported_callable(
    text: str, where: str, folder: Path | None = None, *, is_installed: bool = False
) -> Callable[..., object]:
    """The callable that MODULE:NAME names; the module is looked for in `folder` first, by default the current one.

    `where`: begins messages. `is_installed`: no folder is looked into. Raises CleansetError for a module that is
    missing or cannot be imported, and for a name that is no callable.
    """
    module, _, name = text.partition(":")
    place = str((folder or Path()).resolve())
    if not is_installed and place not in sys.path:
        sys.path.insert(0, place)  # as `python -m` does
    try:
        found = getattr(importlib.import_module(module), name, None)
    except (Exception, SystemExit) as error:  # whatever its code raises
        problem = f"importing {module} raises {raised(error)}"
        if isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0]):
            problem = f"no module {module} here or installed"
            if module.endswith(".py"):
                problem += f"; expected a module's name, not its file's: {module.removesuffix('.py')}:{name}"
        raise CleansetError(f"{where}: {problem}") from None
    if not callable(found):
        problem = "has no" if found is None else f"has a value of type {type(found).__name__} as"
        raise CleansetError(f"{where}: {module} {problem} {name}; expected a callable")
    return cast(Callable[..., object], found)


def code_digests(names: list[str], where: str, folder: Path | None = None) -> dict[str, str]:
    """By MODULE:NAME a digest of its code: of the module and of all that it imports next to it; errors as above."""
    for name in names:
        imported_callable(name, where, folder)
    return {name: module_fingerprint(name.partition(":")[0]) for name in names}
