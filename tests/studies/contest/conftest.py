"""A small contest on the disk, which tests of files begin with."""

from pathlib import Path

import pytest

from tests.studies.contest.on_disk import OnDisk


@pytest.fixture
def made(tmp_path: Path) -> OnDisk:
    return OnDisk(tmp_path)
