"""The files that a program opens while it answers an image, or a module while it is loaded.

As far as Python processes open them: each that the program is, or starts, notes them itself, by an audit hook (PEP 578)
that `static/sitecustomize.py` adds. Not seen are files that other programs open, or a library in code of its own, such
as safetensors' of a program, and what `python -I`, `-E` or `-S` opens.
"""

import importlib.util
import os
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from cleanset.plumbing.interpreter import python_command

_HOOK = Path(__file__).with_name("static")
_PACKAGE = Path(__file__).resolve().parents[1]
_OF_SYSTEM = tuple(map(Path, ("/proc", "/sys", "/dev", "/etc")))


@dataclass(frozen=True, slots=True)
class OpenedFiles:
    """What a program was seen to open."""

    files: Sequence[Path] = ()
    """Read and not written, sorted; without those of Python, of installed packages and of the system."""

    environments: Sequence[Path] = ()
    """The environments of its Python processes, sorted: the folders that have installed packages."""

    code: int | None = None
    """Its exit code; None if it did not start."""


def opened_files(command: Sequence[str], image: bytes) -> OpenedFiles:
    """Run a command once, on a folder with one PNG, and return what it opens; what it answers does not count."""
    with TemporaryDirectory() as folder:
        images = Path(folder, "images")
        images.mkdir()
        (images / "00000.png").write_bytes(image)
        return _opened([*command, str(images)], Path(folder))


def opened_on_loading(model: str, folder: Path) -> list[str] | None:
    """The files below a folder that MODULE:CALLABLE opens there, its imports among them, by their paths below it.

    It is called in a process of its own, where files that safetensors opens are seen, too; None if it raises.
    """
    root = folder.resolve()
    with TemporaryDirectory() as temporary:
        opened = _opened(python_command("-m", "cleanset.scoring.loading", model), Path(temporary), root)
    paths = [path for path in opened.files if path.is_relative_to(root) and not path.is_relative_to(_PACKAGE)]
    return [path.relative_to(root).as_posix() for path in paths] if opened.code == 0 else None


def _opened(command: Sequence[str], temporary: Path, folder: Path | None = None) -> OpenedFiles:
    """Run a command in a working folder; `temporary`: an empty folder, whose files do not count."""
    log = temporary / "opened"
    log.touch()
    path = os.pathsep.join(filter(None, (str(_HOOK), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": path, "CLEANSET_OPENED_FILES": str(log)}
    code = None
    with suppress(OSError):  # one that does not start reports it where it is asked
        code = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode
    noted: dict[str, set[Path]] = {"r": set(), "w": set(), "s": set(), "p": set()}
    for line in log.read_text("utf-8", "surrogateescape").splitlines():
        noted.get(line[:1], set()).add(Path(line[2:]))
    others = [*noted["s"], *_OF_SYSTEM, temporary, _HOOK]
    return OpenedFiles(sorted(_sources(noted["r"] - noted["w"], others)), sorted(noted["p"]), code)


def _sources(paths: Iterable[Path], others: Sequence[Path]) -> set[Path]:
    """The files among paths, compiled modules as their sources; without those below `others`, and installed ones."""
    found = set()
    for path in paths:
        is_compiled = path.suffix == ".pyc" and path.parent.name == "__pycache__"
        source = Path(importlib.util.source_from_cache(str(path))) if is_compiled else path
        is_installed = any(each in ("site-packages", "dist-packages") for each in source.parts)
        if not is_installed and source.is_file() and not any(source.is_relative_to(each) for each in others):
            found.add(source)
    return found
