"""A drawn archive in place of ImageNet's, and the set that is made from it."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from cleanset.review.store import Votes
from cleanset.sets.published import image_set
from cleanset.sets.published import source_images as digests
from cleanset.sets.published.image_set import select_images
from cleanset.sets.published.lists import PublishedChoice, published_verdicts
from tests.sets.published.drawn_archive import draw_archive

FEW_CLASSES = 60
LISTS = Path(__file__).resolve().parents[3] / "imagenet" / "published"


@dataclass(frozen=True)
class Drawn:
    """The archive, its table of digests, and the folder of the set."""

    archive: Path
    digests: Path
    out: Path
    written: image_set.WrittenSet


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """With the candidates of norm_robust alone; not to be changed."""
    return draw(tmp_path_factory.mktemp("drawn"))


def draw(folder: Path) -> Drawn:
    archive = draw_archive(folder / "ILSVRC2012_img_val.tar", select_images(PublishedChoice()).candidates["image_id"])
    table = folder / "digests.csv"
    digests.run(archive, table)
    written = image_set.run(PublishedChoice(), archive, folder / "scooter", table)
    return Drawn(archive, table, folder / "scooter", written)


published_votes = cache(published_verdicts)
"""The published verdicts, which take half a second to read."""


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every set of this folder's tests be made of verdicts that are read once."""
    monkeypatch.setattr(image_set, "published_verdicts", published_votes)


@cache
def few_candidates(model: str) -> pd.DataFrame:
    """Rows of the published files, whose ranks are written there."""
    listed = pd.read_csv(LISTS / "top5.csv").assign(tier="top5")
    beyond = pd.read_csv(LISTS / "beyond.csv")
    beyond = beyond.assign(tier="reserve", rank=beyond.groupby(["model", "class_index"]).cumcount() + 6)
    rows = pd.concat([listed, beyond]).sort_values(["class_index", "rank"])
    return rows[(rows["model"] == model) & (rows["class_index"] < FEW_CLASSES)].drop(columns="model")


@cache
def few_verdicts() -> Votes:
    return {key: votes for key, votes in published_votes().items() if key[0] < FEW_CLASSES}


def take_few(patch: pytest.MonkeyPatch) -> None:
    """Make the published set one of the first classes: enough for what does not depend on the published numbers."""
    patch.setattr(image_set, "published_candidates", few_candidates)
    patch.setattr(image_set, "published_verdicts", few_verdicts)


@pytest.fixture(scope="session")
def drawn_few(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    with pytest.MonkeyPatch.context() as patch:
        take_few(patch)
        return draw(tmp_path_factory.mktemp("few"))


@pytest.fixture
def few(drawn_few: Drawn, monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The same of a few classes, as every set that is made in this test; not to be changed."""
    take_few(monkeypatch)
    return drawn_few
