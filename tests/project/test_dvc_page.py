"""docs/dvc.md: its commands, on two versions of the sample's set in a repository and its remote."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.checkouts import Checkout, files
from tests.documents import block, shell

pytestmark = pytest.mark.exhaustive

ADDRESS = "https://…/cleanset.git"


@pytest.fixture(scope="module")
def versions(reviewed: tuple[Checkout, str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone with the tags v1 and v2, before and after an image was rejected, whose data are pushed."""
    checkout = reviewed[0].clone_with_cache(tmp_path_factory.mktemp("versions") / "cleanset")
    checkout.run("dvc", "push", "--quiet")
    return checkout


def test_get_import_and_update(
    versions: Checkout, reviewed: tuple[Checkout, str, list[str]], repository: Path, tmp_path: Path
) -> None:
    """An update changes one file of the project, and the set becomes that of the other version."""
    lines = block(repository, "git init --quiet paper").replace(ADDRESS, versions.folder.as_uri())
    done = shell(versions, lines, tmp_path, DVC_SITE_CACHE_DIR=str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    assert "standard.dvc" in done.stdout
    assert "1 file changed" in done.stdout
    exported = reviewed[0].folder / "data" / "export" / "standard"
    assert files(tmp_path / "paper" / "standard") == files(exported)
    images = len((exported / "manifest.csv").read_text().splitlines()) - 1
    assert f"standard: {images} of {images} images are good\n" in done.stdout
    before = subprocess.run(
        ["git", "show", "HEAD:standard.dvc"], cwd=tmp_path / "paper", capture_output=True, text=True, check=True
    ).stdout
    now = (tmp_path / "paper" / "standard.dvc").read_text()
    assert ("rev: v1" in before, "rev: v2" in now) == (True, True)
    assert len((tmp_path / "paper" / "look" / "manifest.csv").read_text().splitlines()) - 1 == images + 1


def test_differences_of_metrics_and_plots(
    versions: Checkout, reviewed: tuple[Checkout, str, list[str]], repository: Path
) -> None:
    """Two revisions: the class that lost an image, and the same numbers as a page and as JSON."""
    done = shell(versions, "mkdir -p build\n" + block(repository, "dvc metrics diff v1 v2"))
    assert done.returncode == 0, done.stderr
    changed = [line for line in done.stdout.splitlines() if "metrics/classes/" in line]
    assert {line.split()[0] for line in changed} == {f"metrics/classes/{reviewed[1]}.json"}
    assert (versions.folder / "build" / "plots" / "index.html").is_file()
    of_both = (versions.folder / "build" / "plots.json").read_text()
    assert {"v1", "v2"} <= set(json.dumps(json.loads(of_both)).split('"'))
