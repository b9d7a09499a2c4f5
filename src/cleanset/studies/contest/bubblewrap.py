"""Commands confined by bubblewrap: namespaces of the kernel, with a filter of the sockets that they may open.

A command is the first process of a process namespace, has a network namespace without a network, and makes no user
namespace of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from cleanset.studies.contest.sandbox import (
    MAX_WRITTEN_BYTES,
    NOBODY,
    WRITABLE,
    Confined,
    Start,
    shown_places,
    system_links,
)
from cleanset.studies.contest.socket_filter import socket_filter

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_OPTIONS = (
    "--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL",
    "--uid", str(NOBODY), "--gid", str(NOBODY), "--clearenv", "--proc", "/proc", "--dev", "/dev",
)  # fmt: skip
_OF_THE_MACHINE = (
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/driver",
    "/proc/mtrr", "/proc/pressure", "/proc/scsi",
)  # fmt: skip
"""Settings of the whole machine, which root could write in any namespace."""


class Bubblewrap:
    """The program bwrap, 0.8 or newer."""

    program = "bwrap"

    @contextmanager
    def open(self, confined: Confined, scratch: Path) -> Iterator[Start]:
        """The start of a command. A machine's GPUs can be used."""
        variables = chain.from_iterable(("--setenv", key, text) for key, text in confined.environment.items())
        writable = chain.from_iterable(("--size", str(MAX_WRITTEN_BYTES), "--tmpfs", each) for each in WRITABLE)
        places = chain.from_iterable(_places(confined))
        with socket_filter() as seccomp:
            # at last: the root and /dev are file systems in memory without a limit
            whole = ("--remount-ro", "/dev", "--remount-ro", "/", "--seccomp", str(seccomp), "--chdir", "/defence")
            command = [self.program, *_OPTIONS, *variables, *writable, *places, *whole, "--", *confined.arguments]
            yield Start(command=command, passed=[seccomp], max_file_bytes=confined.max_file_bytes)


def _places(confined: Confined) -> Iterator[tuple[str, str, str]]:
    """The places that a command sees: an option, the place outside, and the place inside."""
    for link in system_links():
        yield "--symlink", str(link.outside), link.inside
    for path in (*map(Path, _DEVICES), *sorted(Path("/dev").glob("nvidia*"))):
        if path.is_char_device():
            yield "--dev-bind", str(path), str(path)
    for name in _OF_THE_MACHINE:
        if Path(name).exists():
            yield "--ro-bind", name, name
    for place in shown_places(confined):
        yield "--ro-bind", str(place.outside), place.inside
