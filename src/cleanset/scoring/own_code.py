"""Code of users, named as MODULE:NAME in params, commands and functions: imported, and identified by a digest."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import cast

from cleanset.errors import CleansetError, raised
from cleanset.scoring.fingerprints import module_fingerprint, sources_of

SOURCES = "__cleanset_sources__"
"""An attribute of a module of users: its folder, and the digests of its files there when it was imported."""


def imported_callable(
    text: str, where: str, folder: Path | None = None, *, is_installed: bool = False
) -> Callable[..., object]:
    """The callable that MODULE:NAME names; the module is looked for in `folder` first, by default the current one.

    `where`: begins messages. `is_installed`: no folder is looked into. Raises CleansetError for a module that is
    missing or cannot be imported, and for a name that is not a callable.
    """
    module, _, name = text.partition(":")
    place = (folder or Path()).resolve()
    if not is_installed:
        _look_first_into(place, module)
    try:
        loaded = importlib.import_module(module)
        if not is_installed and SOURCES not in vars(loaded):
            setattr(loaded, SOURCES, (place, sources_of(module, place)))
        found = getattr(loaded, name, None)
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


def _look_first_into(folder: Path, module: str) -> None:
    """Have a module imported from a folder, if it is there, also after a module of this name in another folder."""
    if sys.path[0] != str(folder):
        sys.path[:] = [str(folder), *(each for each in sys.path if each != str(folder))]  # as `python -m` does
    loaded = sys.modules.get(module)
    if loaded is not None and _imported_from(loaded)[0] not in (None, folder) and sources_of(module, folder):
        _forget(loaded)


def forget_changed_modules() -> None:
    """Have the modules of users that were changed after their import imported again, in a notebook that continues.

    Otherwise answers of the old code would get the digest of the new code.
    """
    for name, loaded in list(sys.modules.items()):
        folder, sources = _imported_from(loaded)
        if folder is not None and sources != sources_of(name, folder):
            _forget(loaded)


def _imported_from(loaded: ModuleType) -> tuple[Path | None, dict[str, str]]:
    found: tuple[Path | None, dict[str, str]] = getattr(loaded, "__dict__", {}).get(SOURCES, (None, {}))
    return found


def _forget(loaded: ModuleType) -> None:
    """Forget a module, and all that it imported from its folder."""
    folder, sources = _imported_from(loaded)
    files = {str(folder / name) for name in sources} if folder else set()
    for name, each in list(sys.modules.items()):
        if getattr(each, "__file__", None) in files:
            del sys.modules[name]
    importlib.invalidate_caches()


def code_digests(names: list[str], where: str, folder: Path | None = None) -> dict[str, str]:
    """By MODULE:NAME a digest of its code: the module and everything that it imports from next to it; errors as
    above."""
    for name in names:
        imported_callable(name, where, folder)
    return {name: module_fingerprint(name.partition(":")[0]) for name in names}
