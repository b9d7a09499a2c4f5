"""A sandbox for a defence's command, made by bubblewrap.

The command sees nothing but the files that its entry names, one image, and programs and libraries of this machine, all
for reading. It is the first process of a process namespace, so that everything that it starts ends with it, and has a
network namespace without a network.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

_SYSTEM = (
    "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/local/lib", "/bin", "/lib", "/lib32",
    "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache", "/nix/store",
)  # fmt: skip
"""Programs and libraries of a system; other folders of /usr may hold anything."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_BUBBLEWRAP = (
    "bwrap", "--unshare-all", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--proc", "/proc",
    "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/home",
)  # fmt: skip


def can_confine() -> bool:
    """Whether bubblewrap is installed and this machine lets it confine a command."""
    with tempfile.TemporaryDirectory() as empty, suppress(OSError):
        command = confined(["true"], Path(empty), Path(empty))
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


def confined(command: Sequence[str], folder: Path, images: Path) -> list[str]:
    """A command that sees nothing but its folder, its images' folder, and the system's programs and libraries.

    HOME and TMPDIR have to be /home and /tmp.
    """
    places = chain.from_iterable(_places(command[0], folder, images))
    return [*_BUBBLEWRAP, *places, "--chdir", "/defence", "--", *command, "/images"]


def _places(program: str, folder: Path, images: Path) -> Iterator[tuple[str, str, str]]:
    """The places that a command sees: bubblewrap's option, the place outside, and the place inside."""
    for name in _SYSTEM:
        if Path(name).is_symlink():
            yield "--symlink", str(Path(name).readlink()), name
        elif Path(name).exists():
            yield "--ro-bind", name, name
    for path in (*map(Path, _DEVICES), *sorted(Path("/dev").glob("nvidia*"))):
        if path.is_char_device():
            yield "--dev-bind", str(path), str(path)
    for place in sorted(_interpreters(program, folder.resolve())):
        yield "--ro-bind", place, place
    yield "--ro-bind", str(folder.resolve()), "/defence"
    yield "--ro-bind", str(images.resolve()), "/images"


def _interpreters(program: str, folder: Path) -> set[str]:
    """Programs and libraries of a program and of Python, where they are not the system's; none has `folder` in it."""
    found: set[str] = set()
    for name in (program, "python3", "python"):
        path = shutil.which(name)
        for each in () if path is None else (Path(path).absolute(), Path(os.path.realpath(path))):
            prefix = each.parent.parent
            # of a folder such as ~/bin nothing is shown: its parent is no installation but somebody's home
            if each.parent.name == "bin" and (prefix / "lib").is_dir() and not folder.is_relative_to(prefix):
                found |= {
                    str(prefix / part) for part in ("bin", "lib", "lib64", "pyvenv.cfg") if (prefix / part).exists()
                }
    return found - set(_SYSTEM)
