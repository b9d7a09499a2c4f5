import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.checkouts import Checkout
from tests.documents import blocks
from tests.remotes.servers import Remote, nginx

Cloning = Callable[..., Checkout]


def web_server(repository: Path, folder: Path) -> Callable[[int], str]:
    """docs/publish.md's configuration of nginx, with a folder in place of its own, on a port of loopback."""
    (text,) = blocks(repository, "nginx", "docs/publish.md")
    assert text.count("443 ssl") == text.count("/srv/cleanset") == 1
    return lambda port: text.replace("443 ssl", f"127.0.0.1:{port} ssl").replace("/srv/cleanset", str(folder))


@pytest.fixture(scope="session")
def pushed(published: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of a remote in its folder `dvc`."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(published.folder.parent / "remote", folder / "dvc")
    return folder


@pytest.fixture(scope="session")
def web(repository: Path, pushed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """`pushed`, served by nginx over HTTPS."""
    with nginx(web_server(repository, pushed), tmp_path_factory.mktemp("web") / "nginx") as remote:
        yield Remote(f"{remote.url}/dvc", remote.variables)


def lead(checkout: Checkout, url: str, cache: Path | None = None) -> None:
    """What `dvc remote modify --local origin url` and `dvc cache dir --local` do."""
    text = f"['remote \"origin\"']\n    url = {url}\n" + (f"[cache]\n    dir = {cache}\n" if cache else "")
    (checkout.folder / ".dvc" / "config.local").write_text(text)


@pytest.fixture
def clone(built: Checkout, tmp_path: Path) -> Cloning:
    """Make a fresh clone, with all of the committed configuration, that is led to a remote for itself."""

    def make(remote: Remote, name: str = "clone", **variables: str) -> Checkout:
        checkout = built.clone(tmp_path / name / "cleanset", **remote.variables | variables)
        lead(checkout, remote.url)
        return checkout

    return make
