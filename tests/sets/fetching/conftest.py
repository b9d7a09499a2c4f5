from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sets.conftest import make_edition
from tests.sets.fetching.publisher import Publisher, Web, serving


@pytest.fixture(scope="session")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished set of six images; not to be changed."""
    return make_edition(tmp_path_factory.mktemp("edition")).export("standard")


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publisher:
    """An empty repository and remote; the cache is a folder of the test's own."""
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    for name in ("repository", "remote"):
        (tmp_path / name).mkdir()
    return Publisher(tmp_path / "repository", tmp_path / "remote")


@pytest.fixture
def server(publisher: Publisher) -> Iterator[Web]:
    """The remote over HTTP."""
    with serving(publisher.remote) as web:
        yield web
