"""Small real inputs that many tests share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from checkouts import Checkout, copy_checkout

CHROMIUM_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
REPOSITORY = Path(__file__).resolve().parents[1]


def real_folder() -> Path | None:
    """The folder of real photographs: CLEANSET_REAL, else `shared/real` beside the checkout; None without."""
    named = os.environ.get("CLEANSET_REAL")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "real"
    if named and not (folder / "contents.json").is_file():
        raise pytest.UsageError(f"CLEANSET_REAL: no contents.json in {folder}; expected the folder of real photographs")
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real() -> Path:
    """The folder of real photographs; where there is none, skips, saying so; fails if CLEANSET_NO_SKIP is set."""
    folder = real_folder()
    if folder is not None:
        return folder
    reason = "no real photographs: set CLEANSET_REAL to their folder"
    if os.environ.get("CLEANSET_NO_SKIP"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; without one skips, saying so; fails if CLEANSET_NO_SKIP is set."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    reason = "no Chromium: install the package chromium"
    if path is None and os.environ.get("CLEANSET_NO_SKIP"):
        pytest.fail(reason)
    if path is None:
        pytest.skip(reason)
    with sync_playwright() as playwright:  # a process can have only one
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--real-precision", default="float32", help="precision of the run over real photographs")


@pytest.fixture(scope="session")
def pristine(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy in which nothing has run."""
    return copy_checkout(repository, tmp_path_factory.mktemp("pristine") / "cleanset")


@pytest.fixture(scope="session")
def built(pristine: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone in which `dvc repro` has run and whose data lies on a remote; not to be changed."""
    folder = tmp_path_factory.mktemp("built")
    checkout = pristine.clone(folder / "cleanset")
    checkout.run("dvc", "repro")
    return checkout


@pytest.fixture(scope="session")
def published(built: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone of `built` whose committed remote is a folder, pushed to."""
    checkout = built.clone(tmp_path_factory.mktemp("published") / "cleanset")
    checkout.run("dvc", "remote", "modify", "origin", "url", str(checkout.folder.parent / "remote"))
    checkout.commit("Change the remote")
    checkout.run("dvc", "cache", "dir", "--local", str(built.folder / ".dvc" / "cache"))
    checkout.run("dvc", "checkout", "--quiet")
    checkout.run("dvc", "push", "--quiet")
    return checkout
