"""Refuses torch and servers in tests of `make test-fast`, and in every Python process that they start.

Python imports a module of this name when it starts; `--fast` puts this folder on the path of the processes.
"""

import socket
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any


class NoTorch(MetaPathFinder):
    """Refuses to import torch, by an error that no code takes for a missing library."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == "torch":
            raise AssertionError("--fast: this test imports torch; expected tests without it: mark it slow")


class NoServer(socket.socket):
    """Refuses to listen at a port; processes may still talk to each other by files."""

    def listen(self, *backlog: Any) -> None:
        if self.family != socket.AF_UNIX:
            raise AssertionError("--fast: this test starts a server; expected tests without one: mark it server")
        super().listen(*backlog)


sys.meta_path.insert(0, NoTorch())
socket.socket = NoServer  # type: ignore[misc]
