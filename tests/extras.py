"""What the extras of pyproject.toml bring, and the hiding of every other library, as in an environment with them alone.

Imported by programs that hide libraries, so that it needs none but packaging.
"""

import re
import shutil
import tomllib
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from types import ModuleType

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required_by_extra(repository: Path) -> dict[str, list[str]]:
    """The names of the required distributions, by extra; "" is the core."""
    table = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    required = {"": table["dependencies"]} | table["optional-dependencies"]
    return {extra: [re.split(r"[^\w-]", each)[0] for each in each_of] for extra, each_of in required.items()}


def distributions_brought_by(names: Iterable[str]) -> set[str]:
    """The canonical names of distributions, and of all that they require; one that is not installed brings none."""
    brought: set[tuple[str, str]] = set()
    left = [(name, "") for name in names]
    while left:
        name, extra = left.pop()
        if (canonicalize_name(name), extra) in brought:
            continue
        brought.add((canonicalize_name(name), extra))
        try:
            needed_by_it = requires(name) or []
        except PackageNotFoundError:
            continue
        for needed in map(Requirement, needed_by_it):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                left += [(needed.name, each) for each in ("", *needed.extras)]
    return {name for name, _ in brought}


def other_modules(names: Iterable[str]) -> set[str]:
    """The import names of what is installed here, and what these distributions do not bring."""
    brought = distributions_brought_by(names)
    return {
        module
        for module, found_in in packages_distributions().items()
        if module not in {"cleanset", "tests"} and not brought & {canonicalize_name(each) for each in found_in}
    }


class Hiding(PathFinder):
    """Finds all modules but the hidden ones."""

    hidden: frozenset[str] = frozenset()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if fullname.partition(".")[0] in cls.hidden else super().find_spec(fullname, path, target)


SITE = """
import sys
from importlib.machinery import PathFinder
from extras import Hiding

Hiding.hidden = frozenset({hidden})
sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding

def refuse(event, arguments):
    if event == "socket.getaddrinfo" or event == "socket.connect" and not isinstance(arguments[1], (str, bytes)):
        raise OSError(f"no network: {{arguments}}")

if not {network}:
    sys.addaudithook(refuse)
"""
"""The module that Python imports when it starts."""


def environment_with(repository: Path, folder: Path, *extras: str, network: bool) -> dict[str, str]:
    """Variables with which each Python finds only the libraries of the core and the extras, and a network or none."""
    required = required_by_extra(repository)
    hidden = other_modules(name for extra in ("", *extras) for name in required[extra])
    assert {"robustbench", "segmentation_models_pytorch"} <= hidden
    folder.mkdir()
    shutil.copy(__file__, folder / "extras.py")
    (folder / "sitecustomize.py").write_text(SITE.format(hidden=sorted(hidden), network=network))
    return {"PYTHONPATH": f"{folder}:{repository / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"}
