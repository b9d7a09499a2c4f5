"""A drawn archive in place of ImageNet's, and the set that is made from it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from cleanset.sets.published import image_set
from cleanset.sets.published import source_images as digests
from cleanset.sets.published.image_set import select_images
from cleanset.sets.published.lists import PublishedChoice
from tests.sets.published.drawn_archive import draw_archive


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
    folder = tmp_path_factory.mktemp("drawn")
    archive = draw_archive(folder / "ILSVRC2012_img_val.tar", select_images(PublishedChoice()).candidates["image_id"])
    table = folder / "digests.csv"
    digests.run(archive, table)
    written = image_set.run(PublishedChoice(), archive, folder / "scooter", table)
    return Drawn(archive, table, folder / "scooter", written)
