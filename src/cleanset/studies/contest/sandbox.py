"""A sandbox for a defence's command, made by bubblewrap.

The command sees nothing but the files that its entry names, one image, and programs and libraries of this machine, all
for reading; what it may write is lost, and of a limited size. It is the first process of a process namespace, so that
everything that it starts ends with it, has a network namespace without a network, makes no user namespace of its own,
and opens no socket but of the families that such a namespace isolates.
"""

import os
import platform
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

_SYSTEM = (
    "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/local/lib", "/bin", "/lib", "/lib32",
    "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache", "/nix/store",
)  # fmt: skip
"""Programs and libraries of a system; other folders of /usr may hold anything."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
MAX_WRITTEN_BYTES = 2**30
"""What a command may write into /tmp, into /home and into /dev/shm, each."""
NOBODY = "65534"
"""The user and group that a command is, whoever starts it: root, too, as in most containers."""
_BUBBLEWRAP = (
    "bwrap", "--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--as-pid-1",
    "--cap-drop", "ALL", "--uid", NOBODY, "--gid", NOBODY, "--proc", "/proc", "--dev", "/dev",
)  # fmt: skip
_WRITABLE = ("/tmp", "/home", "/dev/shm")
_OF_THE_MACHINE = (
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/driver",
    "/proc/mtrr", "/proc/pressure", "/proc/scsi",
)  # fmt: skip
"""Settings of the whole machine, which root could write in any namespace."""


def can_confine() -> bool:
    """Whether bubblewrap is installed and this machine lets it confine a command."""
    with tempfile.TemporaryDirectory() as empty, socket_filter() as seccomp, suppress(OSError):
        command = confined(["true"], Path(empty), Path(empty), seccomp)
        done = subprocess.run(command, capture_output=True, check=False, pass_fds=(seccomp,))
        return done.returncode == 0
    return False


def confined(command: Sequence[str], folder: Path, images: Path, seccomp: int) -> list[str]:
    """A command that sees nothing but its folder, its images' folder, and the system's programs and libraries.

    HOME and TMPDIR have to be /home and /tmp. `seccomp`: a file descriptor of `socket_filter`, which it is given.
    """
    writable = chain.from_iterable(("--size", str(MAX_WRITTEN_BYTES), "--tmpfs", each) for each in _WRITABLE)
    places = chain.from_iterable(_places(command[0], folder, images))
    # at last: the root and /dev are file systems in memory without a limit
    whole = ("--remount-ro", "/dev", "--remount-ro", "/", "--seccomp", str(seccomp), "--chdir", "/defence")
    return [*_BUBBLEWRAP, *writable, *places, *whole, "--", *command, "/images"]


_ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""By machine: the kernel's number of the architecture, and that of the system call socket."""
_IO_URING_SETUP = 425
_X32 = 0x40000000
"""Calls of x86-64's second interface have numbers from here on."""
_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
_UNKNOWN_FAMILY, _NO_CALL = 0x50000 | 97, 0x50000 | 38
"""The call fails, as where the kernel has no such family (EAFNOSUPPORT) or call (ENOSYS)."""


@contextmanager
def socket_filter() -> Iterator[int]:
    """A file descriptor of a seccomp filter that lets a process open sockets of the isolated families alone.

    AF_VSOCK, for one, reaches the machine that hosts a virtual one, from any network namespace. io_uring is off, since
    it opens sockets without that call. On an unknown machine nothing is filtered.
    """
    descriptor = os.memfd_create("socket filter")
    try:
        os.write(descriptor, b"".join(_instructions()))
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _instructions() -> Iterator[bytes]:
    """The filter in classic BPF: code, jump if true, jump if false, operand."""
    known = _ARCHITECTURES.get(platform.machine())
    if known is None:
        yield _instruction(_RETURN, 0, 0, _ALLOW)
        return
    architecture, socket = known
    # offsets in struct seccomp_data: nr 0, arch 4, args[0] 16
    yield _instruction(_LOAD, 0, 0, 4)
    yield _instruction(_EQUAL, 1, 0, architecture)
    yield _instruction(_RETURN, 0, 0, _KILL)
    yield _instruction(_LOAD, 0, 0, 0)
    yield _instruction(_AT_LEAST, 7, 0, _X32)
    yield _instruction(_EQUAL, 6, 0, _IO_URING_SETUP)
    yield _instruction(_EQUAL, 0, 6, socket)
    yield _instruction(_LOAD, 0, 0, 16)
    for left, family in zip((4, 3, 2), _FAMILIES, strict=True):
        yield _instruction(_EQUAL, left, 0, family)
    yield _instruction(_RETURN, 0, 0, _UNKNOWN_FAMILY)
    yield _instruction(_RETURN, 0, 0, _NO_CALL)
    yield _instruction(_RETURN, 0, 0, _ALLOW)


def _instruction(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, operand)


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
    for name in _OF_THE_MACHINE:
        if Path(name).exists():
            yield "--ro-bind", name, name
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
