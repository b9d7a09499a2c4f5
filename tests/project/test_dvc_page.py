"""docs/dvc.md: its commands, on two versions of the sample's set in a repository and its remote."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.checkouts import Checkout, files
from tests.documents import block, shell

pytestmark = pytest.mark.long

ADDRESS = "https://…/cleanset.git"


@pytest.fixture(scope="module")
def versions(published: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone of what is published, tagged v1, and the same without the reviews of umbrellas, tagged v2."""
    checkout = published.clone(tmp_path_factory.mktemp("versions") / "cleanset")
    checkout.run("dvc", "pull", "--quiet")
    checkout.run("git", "tag", "v1")
    for path in (checkout.folder / "reviews").glob("*/n04507155.yaml"):
        path.unlink()
    checkout.run("dvc", "repro", "--quiet")
    checkout.commit("Drop the reviews of a class")
    checkout.run("git", "tag", "v2")
    checkout.run("dvc", "push", "--quiet")
    return checkout


def test_get_import_and_update(versions: Checkout, repository: Path, tmp_path: Path) -> None:
    """An update changes one file of the project, and the set becomes that of the other version."""
    lines = block(repository, "git init --quiet paper").replace(ADDRESS, versions.folder.as_uri())
    done = shell(versions, lines, tmp_path, DVC_SITE_CACHE_DIR=str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    assert "standard.dvc" in done.stdout
    assert "1 file changed" in done.stdout
    exported = versions.folder / "data" / "export" / "standard"
    assert files(tmp_path / "paper" / "standard") == files(exported)
    images = len((exported / "manifest.csv").read_text().splitlines()) - 1
    assert f"standard: {images} of {images} images are good\n" in done.stdout
    before = subprocess.run(
        ["git", "show", "HEAD:standard.dvc"], cwd=tmp_path / "paper", capture_output=True, text=True, check=True
    ).stdout
    now = (tmp_path / "paper" / "standard.dvc").read_text()
    assert ("rev: v1" in before, "rev: v2" in now) == (True, True)
    assert len((tmp_path / "paper" / "look" / "manifest.csv").read_text().splitlines()) - 1 == images + 3


def test_differences_of_metrics_and_plots(versions: Checkout, repository: Path) -> None:
    """Of two revisions: the class that lost its images, and the same numbers as a page and as JSON."""
    done = shell(versions, "mkdir -p build\n" + block(repository, "dvc metrics diff v1 v2"))
    assert done.returncode == 0, done.stderr
    changed = [line for line in done.stdout.splitlines() if "metrics/classes/" in line]
    assert {line.split()[0] for line in changed} == {"metrics/classes/n04507155.json"}
    assert (versions.folder / "build" / "plots" / "index.html").is_file()
    of_both = (versions.folder / "build" / "plots.json").read_text()
    assert {"v1", "v2"} <= set(json.dumps(json.loads(of_both)).split('"'))
