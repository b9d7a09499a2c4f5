"""The sample edition reviewed at the page from nothing, and built: the committed sets, byte for byte."""

from pathlib import Path
from typing import Any

import pytest

from tests.checkouts import Checkout

from .conftest import Open
from .reviewing import Reviewing, reviews, serve


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


@pytest.mark.exhaustive
def test_the_committed_sets(repository: Path, built: Checkout, unreviewed: Checkout, visit: Open) -> None:
    meant = {path.name: reviews(repository, path.name) for path in (repository / "reviews").iterdir() if path.is_dir()}
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
        # the committed verdicts do not say how the image was seen
        assert reviews(unreviewed.folder, reviewer, without=("sha256", "seen")) == meant[reviewer]
    assert asked == {"ada": 139, "ben": 0, "board": 1}
    unreviewed.run("dvc", "repro")
    for kept in ("data/selection", "data/rejected", "data/export", "metrics"):
        assert files(unreviewed.folder / kept) == files(built.folder / kept)
