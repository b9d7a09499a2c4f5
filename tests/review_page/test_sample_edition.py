"""The sample edition reviewed at the page from nothing, and built: the committed sets, byte for byte."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.checkouts import Checkout

from .conftest import Open
from .reviewing import Reviewing, reviews, serve


def truth(repository: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The committed verdicts by reviewer, class and image id."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for path in sorted((repository / "reviews").glob("*/*.yaml")):
        entries = yaml.safe_load(path.read_text())[path.stem]
        found.setdefault(path.parent.name, {})[path.stem] = {
            image_id: {key: value for key, value in entry.items() if key != "sha256"}
            for image_id, entry in entries.items()
        }
    return found


def decided(repository: Path, reviewer: str) -> dict[str, dict[str, dict[str, Any]]]:
    """What a reviewer saved, without how the image was seen: the committed verdicts do not say that."""
    return {
        wnid: {
            image_id: {key: value for key, value in entry.items() if key != "seen"}
            for image_id, entry in entries.items()
        }
        for wnid, entries in reviews(repository, reviewer).items()
    }


def follow(at: Reviewing, meant: dict[str, dict[str, Any]]) -> int:
    """Answer what the page asks as long as the answer is known; the number of answers."""
    answers, left = 0, set[str]()
    while at.focus and at.wnid not in left:
        entry = meant.get(at.wnid, {}).get(at.focus)
        if entry is None:
            left.add(at.wnid)
            at.press("s")
        else:
            at.enter(entry)
            answers += 1
    return answers


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def unreviewed(built: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone in which everything is built but nothing is reviewed."""
    clone = built.clone_with_data(tmp_path_factory.mktemp("unreviewed") / "cleanset")
    for path in (clone.folder / "reviews").glob("*/*.yaml"):
        path.unlink()
    for folder in (clone.folder / "reviews").iterdir():
        folder.rmdir()
    return clone


@pytest.mark.long
def test_the_committed_sets(repository: Path, built: Checkout, unreviewed: Checkout, visit: Open) -> None:
    meant = truth(repository)
    asked = {}
    for reviewer in ("ada", "ben", "board"):
        server = serve(unreviewed.folder, reviewer, source=unreviewed.folder / "src")
        at = visit(server)
        asked[reviewer] = follow(at, meant[reviewer])
        saved = reviews(unreviewed.folder, reviewer)
        for wnid, entries in meant[reviewer].items():
            for image_id, entry in entries.items():
                if image_id not in saved.get(wnid, {}):
                    at.open(wnid, image_id)
                    at.enter(entry)
        at.page.close()
        server.kill()
        assert decided(unreviewed.folder, reviewer) == meant[reviewer]
    assert asked == {"ada": 139, "ben": 0, "board": 1}
    unreviewed.run("dvc", "repro")
    for kept in ("data/selection", "data/rejected", "data/export", "metrics"):
        assert files(unreviewed.folder / kept) == files(built.folder / kept)
