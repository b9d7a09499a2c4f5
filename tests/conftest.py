"""Small real inputs that many tests share."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def real_folder() -> Path | None:
    """The folder of real photographs: CLEANSET_REAL, or `shared/real` beside the checkout; None without."""
    for candidate in (os.environ.get("CLEANSET_REAL"), REPOSITORY.parent / "shared" / "real"):
        if candidate and Path(candidate, "README.md").is_file():
            return Path(candidate)
    return None


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real() -> Path:
    """The folder of real photographs; skips, saying so, where there is none."""
    folder = real_folder()
    if folder is None:
        pytest.skip("no real photographs: set CLEANSET_REAL to their folder")
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--real-precision", default="float32", help="precision of the run over real photographs")
