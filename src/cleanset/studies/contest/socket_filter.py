"""A filter of system calls that lets a process open sockets of the isolated families alone."""

import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager

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
