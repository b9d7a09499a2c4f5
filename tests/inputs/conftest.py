from pathlib import Path

import pytest

from inputs.made import Made


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """An empty folder for an edition."""
    return Made(tmp_path)
