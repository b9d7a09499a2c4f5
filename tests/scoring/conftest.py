import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.scoring.servers import Plan, drive, hub

Serving = Callable[..., Plan]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with nothing in it, and none of this machine's settings of proxies and caches."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in os.environ:
        if name.startswith(("HF_", "XDG_")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    return folder


@pytest.fixture
def serving(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """Start a server that plays the hub, or Drive, until the test ends; this process's environment leads to it."""
    with ExitStack() as servers:

        def start(plan: Plan, *, as_drive: bool = False) -> Plan:
            environment = servers.enter_context(drive(plan, tmp_path) if as_drive else hub(plan))
            for name, value in environment.items():
                monkeypatch.setenv(name, value)
            return plan

        yield start


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Fail if anything in the folder changes."""
    before = sorted(folder.rglob("*"))
    yield
    assert sorted(folder.rglob("*")) == before
