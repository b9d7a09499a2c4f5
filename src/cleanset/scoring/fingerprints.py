"""Fingerprints by content of code that is not this package's: a program, or a module with what it imports next to it.

Results that are kept to be continued or used again carry them among the facts of `validity.MadeFrom`, next to the
digests of weights and images. Imports are found in the source, without running it; what a program asks over a network,
and what code other than Python opens by a name of its own, cannot be known.
"""

import ast
import importlib.util
import json
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib.machinery import all_suffixes
from importlib.metadata import packages_distributions
from itertools import islice
from pathlib import Path

from cleanset.edition.versions import installed_version
from cleanset.errors import PACKAGE
from cleanset.plumbing.files import file_state, sha256, sha256_of
from cleanset.scoring.validity import code_of, library_versions

MAX_FILES = 1_000
"""Files of a folder that are read; those of a folder of more count by their names, sizes and times."""
MAX_LISTED = 100_000
"""Files of a folder that are looked for; a folder of more counts by its name alone."""
_RECORDED = (PACKAGE, "PIL", "numpy", "robustbench", "timm", "torch")
"""Modules whose versions every record has."""
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_SUFFIXES = tuple(all_suffixes())


def program_fingerprint(command: Sequence[str], opened: Sequence[Path] = (), environments: Sequence[Path] = ()) -> str:
    """64 hexadecimal digits of the words of a command, of the program, and of the files and folders that words name.

    `opened`: further files, which it was seen to open. `environments`: the Python environments that it runs in.

    The program counts by its bytes, and by the packages of the Python environment that it is in. Relative names are
    looked for in the working folder, as the program does. `--option=FILE` and `-m MODULE` name a file, too; what a
    Python file imports from next to it also counts. Missing files count by their names.
    """
    found: list[object] = []
    for place, word in enumerate(command):
        option, _, value = word.rpartition("=")
        path = Path(value if option.startswith("-") else word)
        if place == 0 and (program := shutil.which(word)) is not None:
            path = Path(program)
            found.append(_packages_beside(path))
        is_module = place > 0 and command[place - 1] == "-m" and _MODULE.fullmatch(word) is not None
        digests = _module_digests(word, Path.cwd()) if is_module else _digests_of(path)
        found.append([word, digests])
    found.append(sorted([path.name, sha256_of(path)] for path in opened))
    found += [_packages_in(environment) for environment in environments]
    return sha256(json.dumps(found).encode())


def module_fingerprint(module: str, files: Sequence[Path] = (), others: Collection[str] = ()) -> str:
    """64 hexadecimal digits of a module's file, of what it imports from its folder, and of further `files`.

    That is all below the folder in which Python finds the module; for an installed one its own package. Other
    libraries count by their versions, and so does this package, by its VERSION files. `others`: modules that count,
    too, unless they are installed. All modules must be importable.
    """
    source: dict[str, str] = {}
    elsewhere = set[str]()
    top = module.partition(".")[0]
    code = code_of(_versioned_package(module)) if top == PACKAGE else ""
    for name in sorted({module, *others}):
        first = name.partition(".")[0]
        root = None if first == PACKAGE else _root_of(first)
        if root is None:
            continue
        if not _is_of_installed(root):
            sources = _Sources(root)
            source |= sources.reached_from([name])
            elsewhere |= sources.elsewhere
        elif first == top:
            source |= _of_package(root, top)
    found = {
        "files": [sha256_of(path) for path in files if path.is_file()],
        "code": code,
        "source": source,
        "libraries": library_versions(_distributions(elsewhere)),
    }
    return sha256(json.dumps(found, sort_keys=True).encode())


def sources_of(module: str, folder: Path) -> dict[str, str]:
    """The SHA-256 of the files of a module below a folder, and of all that it imports there, by their paths below it.

    Empty for a module of elsewhere.
    """
    return _Sources(folder.resolve()).reached_from([module])


def is_importable(module: str) -> bool:
    """Whether Python finds the package or module without dots that a module is in; nothing is run."""
    return module.partition(".")[0] in sys.builtin_module_names or _root_of(module.partition(".")[0]) is not None


def sources_sha256(module: str, folder: Path) -> str | None:
    """The SHA-256 of a module that is below a folder, with all that it imports there; None for one of elsewhere."""
    source = sources_of(module, folder)
    return sha256(json.dumps(source, sort_keys=True).encode()) if source else None


def _versioned_package(module: str) -> str:
    """The nearest package above a module of this package that has a VERSION file, as `code_of` names it."""
    parts = module.split(".")[1:]
    root = Path(__file__).parents[1]
    while parts and not root.joinpath(*parts, "VERSION").is_file():
        parts.pop()
    return "/".join(parts) or "scoring"


def _root_of(top: str) -> Path | None:
    """The folder in which a module or package without dots is found; None for a built-in one."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve().parent
    return None if spec.origin is None or not spec.has_location else Path(spec.origin).resolve().parent


def _is_of_installed(root: Path) -> bool:
    """Whether a folder is where packages are installed, or of Python itself: all else in it are other libraries."""
    places = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    return root in {Path(place).resolve() for place in places} or any(root.glob("*.dist-info"))


def _of_package(root: Path, top: str) -> dict[str, str]:
    """The SHA-256 of the code of an installed package or module, by the paths below the folder that it is in."""
    files = [path for path in root.joinpath(top).rglob("*") if path.name.endswith(_SUFFIXES) and path.suffix != ".pyc"]
    files += [path for suffix in _SUFFIXES if (path := root / f"{top}{suffix}").is_file()]
    return {path.relative_to(root).as_posix(): sha256_of(path) for path in files}


def _distributions(modules: Iterable[str]) -> list[str]:
    """The installed distributions that modules without dots belong to, sorted."""
    wanted = {each for each in modules if each not in sys.stdlib_module_names and each not in _RECORDED}
    found = {name for name in wanted if installed_version(name) is not None}
    unknown = {name for name in wanted - found if _root_of(name) is not None}
    # takes a second: it reads the files of all distributions
    owners = packages_distributions() if unknown else {}
    return sorted(found | {name for module in unknown for name in owners.get(module, ())})


def _module_digests(module: str, root: Path) -> object:
    """The digests of a module that is below a folder, and of what it imports there; None if it does not."""
    # `python -m PACKAGE` runs its __main__
    return _Sources(root).reached_from([module, f"{module}.__main__"]) or None


def _packages_beside(program: Path) -> list[str]:
    """The installed packages, with their versions, of the Python environment in whose folder of programs one is.

    The link to an interpreter, which environments may share, is not followed. Empty for another program.
    """
    environment = program.parent.parent
    if not (environment / "pyvenv.cfg").is_file() and not program.name.startswith(("python", "pypy")):
        return []
    return _packages_in(environment)


def _packages_in(environment: Path) -> list[str]:
    """The installed packages of a Python environment, with their versions."""
    records = environment.glob("lib/python*/*-packages/*.dist-info")
    return sorted(path.name for path in records)


def _digests_of(path: Path) -> object:
    """The digest of a file, with what a Python file imports next to it, or of a folder's files; None for neither."""
    try:
        if path.is_file():
            is_python = path.suffix == ".py"
            beside = _Sources(path.resolve().parent).reached_from(_imported(path, "")) if is_python else {}
            return [sha256_of(path), beside]
        if path.is_dir():
            return _of_folder(path)
    except OSError:
        # a name that is too long for one, or a file that the program alone may read
        return None
    return None


def _of_folder(folder: Path) -> object:
    """The digests of the files below a folder, by name; hidden ones and compiled code are left out.

    Sizes and times in place of digests for more than MAX_FILES, None for more than MAX_LISTED.
    """
    paths = dict(islice(_files_below(folder), MAX_LISTED + 1))
    if len(paths) > MAX_LISTED:
        return None
    if len(paths) > MAX_FILES:
        return sorted((name, *file_state(path.stat())) for name, path in paths.items())
    return sorted((name, sha256_of(path)) for name, path in paths.items())


def _files_below(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files below a folder, by their paths below it, but hidden ones and compiled code."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for name in names:
            path = Path(place, name)
            if not name.startswith(".") and path.is_file():
                yield path.relative_to(folder).as_posix(), path


class _Sources:
    """The modules below a folder, reached by imports from one another.

    `elsewhere`: the modules without dots that were imported and are elsewhere.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.elsewhere: set[str] = set()

    def reached_from(self, modules: Iterable[str]) -> dict[str, str]:
        """The SHA-256 of the files of modules and of all that they import here, by their paths below the folder."""
        found: dict[str, str] = {}
        waiting = list(modules)
        seen: set[str] = set()
        while waiting:
            module = waiting.pop()
            if module in seen:
                continue
            seen.add(module)
            top = module.partition(".")[0]
            if not self._is_here(top):
                self.elsewhere.add(top)
                continue
            for path, package in self._files(module):
                name = path.relative_to(self._root).as_posix()
                if name not in found:
                    found[name] = sha256_of(path)
                    waiting += _imported(path, package)
        return found

    def _is_here(self, top: str) -> bool:
        # a folder without __init__.py is a package, too
        return top != PACKAGE and (bool(self._files(top)) or self._root.joinpath(top).is_dir())

    def _files(self, module: str) -> list[tuple[Path, str]]:
        """The file of a module and those of the packages above it, each with the package that it is in."""
        parts = module.split(".")
        found = []
        for count in range(1, len(parts) + 1):
            place = self._root.joinpath(*parts[:count])
            inside = ".".join(parts[:count])
            above = ".".join(parts[: count - 1])
            # as Python does, a package before a module of the same name
            candidates = [(place / f"__init__{suffix}", inside) for suffix in _SUFFIXES]
            candidates += [(place.with_name(f"{place.name}{suffix}"), above) for suffix in _SUFFIXES]
            found += [each for each in candidates if each[0].is_file()][:1]
        return found


def _imported(path: Path, package: str) -> list[str]:
    """The modules that a source file of a package may import, and their members, which may be modules, too."""
    if path.suffix != ".py":
        return []
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        # of another version of Python, which alone can run it
        return []
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = package.split(".") if package else []
            if node.level > len(names):
                continue
            above = names[: len(names) - node.level + 1] if node.level else []
            base = [*above, *(node.module.split(".") if node.module else [])]
            found |= {".".join([*base, *member]) for member in ([], *([alias.name] for alias in node.names))}
    return sorted(found - {""})
