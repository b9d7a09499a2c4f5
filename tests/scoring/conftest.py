import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.scoring.servers import Plan, drive, hub

Serving = Callable[..., None]


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

        def start(plan: Plan, *, as_drive: bool = False) -> None:
            environment = servers.enter_context(drive(plan, tmp_path) if as_drive else hub(plan))
            for name, value in environment.items():
                monkeypatch.setenv(name, value)

        yield start


def settle(network: nn.Module, seed: int) -> nn.Module:
    """Weights and statistics unlike those of a fresh network, so that nothing left out goes unseen."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if value.is_floating_point() and "normalize" not in name:
                noise = torch.rand(value.shape, generator=generator)
                value.copy_(noise + 0.5 if name.endswith("running_var") else (noise - 0.5) / 8)
    return network.eval()


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Fail if anything in the folder changes."""
    before = sorted(folder.rglob("*"))
    yield
    assert sorted(folder.rglob("*")) == before
