"""Folders that are made once in a test run, whichever of its processes comes first."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder of the whole run, filled by `make`. The other processes wait for it; what fails, fails in each."""
    of_process = factory.getbasetemp()
    folder = (of_process.parent if "PYTEST_XDIST_WORKER" in os.environ else of_process) / "once" / name
    folder.parent.mkdir(exist_ok=True)
    done, failed = folder.with_suffix(".done"), folder.with_suffix(".failed")
    with FileLock(folder.with_suffix(".lock")):
        if failed.exists():
            pytest.fail(failed.read_text())
        if not done.exists():
            folder.mkdir()
            try:
                make(folder)
            except BaseException as error:
                failed.write_text(f"{name}: {error}")
                raise
            done.touch()
    return folder
