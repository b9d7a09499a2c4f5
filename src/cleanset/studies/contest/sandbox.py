"""A sandbox for a defence's command, made by gVisor where it is installed, else by bubblewrap.

The command sees nothing but the files that its entry names, one image, and programs and libraries of this machine, all
for reading; what it may write is lost, and of a limited size. Everything that it starts ends with it, and it has no
network. Where systemd makes scopes, its memory and the number of its processes are limited, too.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_SYSTEM = (
    "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/local/lib", "/bin", "/lib", "/lib32",
    "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache", "/nix/store",
)  # fmt: skip
"""Programs and libraries of a system; other folders of /usr may hold anything."""
MAX_WRITTEN_BYTES = 2**30
"""What a command may write into each of the places that it may write."""
WRITABLE = ("/tmp", "/home", "/dev/shm")
NOBODY = 65534
"""The user and group that a command is, whoever starts it: root, too, as in most containers."""
MAX_MEMORY = "8G"
"""The memory of a command and all that it starts, where systemd makes a scope for it."""
MAX_PROCESSES = 500
"""Its processes and threads, and those of the sandbox, there."""
TRIAL_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """A command to be confined."""

    command: Sequence[str]
    folder: Path
    """Its files, which it sees as /defence."""

    images: Path
    """A folder of images, which it sees as /images: its last argument."""

    variables: Mapping[str, str]
    """Its environment, beside HOME and TMPDIR."""

    max_file_bytes: int
    """The size of a file that it may write."""

    @property
    def arguments(self) -> list[str]:
        """The command as it is started inside."""
        return [*self.command, "/images"]

    @property
    def environment(self) -> dict[str, str]:
        """All variables that it has."""
        return {**self.variables, "HOME": "/home", "TMPDIR": "/tmp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a confined command is started."""

    command: Sequence[str]
    passed: Sequence[int] = ()
    """File descriptors that it is given."""

    max_file_bytes: int | None = None
    """The limit of the size of a file that the process has to be given; None: it sets one of its own."""


class Sandbox(Protocol):
    """A program that confines commands."""

    program: str

    def open(self, confined: Confined, scratch: Path) -> AbstractContextManager[Start]:
        """The start of a command, which holds within the block; `scratch`: an empty folder for the sandbox's files."""


def can_start(sandbox: Sandbox) -> bool:
    """Whether a sandbox is installed and this machine lets it confine a command."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as scratch:
        nothing = Path(empty)
        variables = {"PATH": os.defpath}
        confined = Confined(command=["true"], folder=nothing, images=nothing, variables=variables, max_file_bytes=1)
        with sandbox.open(confined, Path(scratch)) as start:
            return _succeeds(start.command, start.passed)


def scope() -> list[str]:
    """The first words of a command whose memory and processes systemd limits; none where it makes no scope."""
    of_user = [] if os.getuid() == 0 else ["--user"]
    limits = (f"MemoryMax={MAX_MEMORY}", "MemorySwapMax=0", f"TasksMax={MAX_PROCESSES}")
    found = [
        "systemd-run",
        *of_user,
        "--scope",
        "--quiet",
        "--collect",
        *(f"--property={each}" for each in limits),
        "--",
    ]
    return found if _succeeds([*found, "true"], ()) else []


def _succeeds(command: Sequence[str], passed: Sequence[int]) -> bool:
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, pass_fds=passed, timeout=TRIAL_SECONDS
        )
        return done.returncode == 0
    return False


@dataclass(frozen=True, slots=True)
class Shown:
    """A file or folder that a command sees, for reading: its place outside, and the one inside."""

    outside: Path
    inside: str


def system_links() -> Iterator[Shown]:
    """The links among the places of programs and libraries, with what they point to."""
    for name in _SYSTEM:
        if Path(name).is_symlink():
            yield Shown(Path(name).readlink(), name)


def shown_places(confined: Confined) -> Iterator[Shown]:
    """All other places that a command sees."""
    for name in _SYSTEM:
        if Path(name).exists() and not Path(name).is_symlink():
            yield Shown(Path(name), name)
    for place in sorted(_interpreters(confined.command[0], confined.folder.resolve())):
        yield Shown(Path(place), place)
    yield Shown(confined.folder.resolve(), "/defence")
    yield Shown(confined.images.resolve(), "/images")


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
