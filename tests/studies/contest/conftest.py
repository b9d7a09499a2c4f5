"""A small contest on the disk, which most tests of files begin with."""

from pathlib import Path

import pytest

from tests.studies.contest.on_disk import OnDisk, forget_all


@pytest.fixture(autouse=True)
def _nothing_was_seen() -> None:
    """Tests have different logs that begin with the same line."""
    forget_all()


@pytest.fixture
def made(tmp_path: Path) -> OnDisk:
    return OnDisk(tmp_path)
