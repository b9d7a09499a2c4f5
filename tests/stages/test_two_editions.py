"""Editions of different classes in one process: by turns and in threads, each with its own class table."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from cleanset.edition.paths import Edition
from cleanset.stages import count, crops, export, review_apply
from tests import own_edition
from tests.sets.conftest import make_edition

pytestmark = pytest.mark.slow
ROUNDS = 4


@pytest.fixture
def editions(own: Edition, tmp_path: Path) -> dict[str, Edition]:
    """An edition of three own classes, and one of ImageNet's; by the role of its model."""
    copied = Edition(Path(shutil.copytree(own.folder.parent, tmp_path / "of_own")) / own.folder.name)
    return {"images": copied, "standard": make_edition(tmp_path / "of_imagenet")}


def outputs(edition: Edition, role: str) -> dict[str, bytes]:
    """The bytes of a finished set, by path."""
    folder = edition.export(role)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_sets_are_exported_by_turns(editions: dict[str, Edition]) -> None:
    before = {role: outputs(edition, role) for role, edition in editions.items()}
    for _ in range(2):
        for role, edition in editions.items():
            export.run(edition, role)
    assert {role: outputs(edition, role) for role, edition in editions.items()} == before


@pytest.mark.long
def test_sets_are_exported_in_threads(editions: dict[str, Edition]) -> None:
    before = {role: outputs(edition, role) for role, edition in editions.items()}
    start = Barrier(len(editions))

    def run(role: str) -> list[dict[str, bytes]]:
        found = []
        for _ in range(ROUNDS):
            start.wait()
            export.run(editions[role], role)
            found.append(outputs(editions[role], role))
        return found

    with ThreadPoolExecutor(len(editions)) as pool:
        found = dict(zip(editions, pool.map(run, editions), strict=True))
    assert found == {role: ROUNDS * [each] for role, each in before.items()}


def test_reviews_and_counts_of_one_edition_know_nothing_of_the_other(editions: dict[str, Edition]) -> None:
    own = editions["images"]
    metrics = {path.name: path.read_bytes() for path in (own.metrics / "classes").iterdir()}
    export.run(editions["standard"], "standard")
    crops.run(own)
    review_apply.run(own, "images")
    count.run(own)
    assert {path.name: path.read_bytes() for path in (own.metrics / "classes").iterdir()} == metrics
    assert sorted(metrics) == sorted(f"{key}.json" for key in own_edition.KEYS)
