"""The files that a program opens while it answers an image, as far as Python processes open them.

Every Python process that the program is, or starts, notes them itself, by an audit hook (PEP 578) that
`static/sitecustomize.py` adds. Not seen are files that other programs open, or a library in code of its own, such as
safetensors', and what `python -I`, `-E` or `-S` opens.
"""

import importlib.util
import os
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

_HOOK = Path(__file__).with_name("static")
_OF_SYSTEM = tuple(map(Path, ("/proc", "/sys", "/dev", "/etc")))


@dataclass(frozen=True, slots=True)
class OpenedFiles:
    """What a program was seen to open."""

    files: Sequence[Path] = ()
    """Read and not written, sorted; without those of Python, of installed packages and of the system."""

    environments: Sequence[Path] = ()
    """The environments of its Python processes, sorted: the folders that have installed packages."""


def opened_files(command: Sequence[str], image: bytes) -> OpenedFiles:
    """Run a command once, on a folder with one PNG, and return what it opens; what it answers does not count."""
    with TemporaryDirectory() as folder:
        images = Path(folder, "images")
        images.mkdir()
        (images / "00000.png").write_bytes(image)
        log = Path(folder, "opened")
        log.touch()
        path = os.pathsep.join(filter(None, (str(_HOOK), os.environ.get("PYTHONPATH"))))
        environment = os.environ | {"PYTHONPATH": path, "CLEANSET_OPENED_FILES": str(log)}
        with suppress(OSError):  # one that does not start says so where it is asked
            subprocess.run(
                [*command, str(images)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        noted: dict[str, set[Path]] = {"r": set(), "w": set(), "s": set(), "p": set()}
        for line in log.read_text("utf-8", "surrogateescape").splitlines():
            noted.get(line[:1], set()).add(Path(line[2:]))
    others = [*noted["s"], *_OF_SYSTEM, Path(folder), _HOOK]
    return OpenedFiles(sorted(_sources(noted["r"] - noted["w"], others)), sorted(noted["p"]))


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
