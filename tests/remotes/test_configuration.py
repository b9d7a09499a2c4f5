"""What is committed: a placeholder for reading, safe settings; nothing asks for it by itself."""

import re
import socket
import threading
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.checkouts import Checkout
from tests.documents import block, shell
from tests.remotes.conftest import Cloning
from tests.remotes.exports import give_archives
from tests.remotes.servers import Remote

PLACEHOLDER = "https://cleanset.example.org/dvc"
SETTINGS = {"url": PLACEHOLDER, "verify": "true", "jobs": "32"}


def settings(config: Path) -> dict[str, str]:
    """The settings of the remote that commands use by default."""
    parser = ConfigParser()
    parser.read_string(re.sub(r"(?m)^\s+", "", config.read_text()))
    return dict(parser[f"'remote \"{parser['core']['remote']}\"'"])


@pytest.mark.parametrize("edition", [".", "imagenet", "imagenet-published"])
def test_the_committed_remote(edition: str, repository: Path) -> None:
    assert settings(repository / edition / ".dvc" / "config") == SETTINGS


@pytest.mark.parametrize("place", ["checkout/editions/mine", "elsewhere/mine"])
def test_a_new_edition_has_it_too(place: str, pristine: Checkout, tmp_path: Path) -> None:
    """Inside the checkout, and outside of any git repository; the cache is shared only inside."""
    checkout = pristine.clone(tmp_path / "checkout")
    folder = tmp_path / place
    checkout.run("cleanset", "edition", str(folder))
    config = (folder / ".dvc" / "config").read_text()
    assert settings(folder / ".dvc" / "config") == SETTINGS
    assert ("analytics = false" in config, "check_update = false" in config) == (True, True)
    assert ("dir = ../../../.dvc/cache" in config) == ("[cache]" in config) == place.startswith("checkout")
    assert ("no_scm = true" in config) == place.startswith("elsewhere")


@pytest.mark.exhaustive
def test_a_maintainer_changes_it_by_one_line(repository: Path, pristine: Checkout, tmp_path: Path) -> None:
    checkout = pristine.clone(tmp_path / "cleanset")
    (checkout.folder / ".venv").mkdir()
    (checkout.folder / ".venv" / ".ready").touch()
    done = shell(checkout, block(repository, "make remote URL=https://your.server/dvc"))
    assert done.returncode == 0, done.stderr
    for edition in (".", "imagenet", "imagenet-published"):
        found = settings(checkout.folder / edition / ".dvc" / "config")
        assert found == SETTINGS | {"url": "https://your.server/dvc"}


@pytest.mark.long
def test_nothing_published_yet(clone: Cloning) -> None:
    """A pull from the placeholder fails and names what it lacks. (No name is looked up: a proxy is in the way.)"""
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": ""}
    done = clone(Remote(PLACEHOLDER, nowhere)).run("dvc", "pull", "export@standard", check=False)
    assert done.returncode == 1
    assert "Checkout failed for following targets:\ndata/export/standard\n" in done.stderr


@pytest.mark.exhaustive
def test_nothing_asks_for_it_unless_told_to(clone: Cloning, built: Checkout) -> None:
    """In a fresh clone dvc repro, status and metrics make no connection to the remote; dvc pull does."""
    connections = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                connections.append(connection.getpeername())
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        checkout = clone(Remote(f"http://127.0.0.1:{listening.getsockname()[1]}/dvc", {"NO_PROXY": "127.0.0.1"}))
        give_archives(built, checkout)
        for command in ("repro preprocess", "status", "data status", "metrics show", "checkout preprocess"):
            checkout.run("dvc", *command.split())
        assert connections == []
        checkout.run("dvc", "pull", "data/short_classes.csv", check=False)
        assert connections != []
        listening.shutdown(socket.SHUT_RDWR)
