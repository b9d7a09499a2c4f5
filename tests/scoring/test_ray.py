"""The Ray engine on two local workers; skips where Ray is not installed (make test-ray has it)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.scoring.engine import score_shards_on_ray, settings_for
from cleanset.scoring.models import load_model
from cleanset.scoring.shards import Shards
from cleanset.stages import score
from cleanset.tables import INDEX, SCORES, read_table, write_table
from tests.scoring.editions import make_edition, write_params

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray", reason="Ray is not installed: make test-ray")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Ray on this machine, with room for two workers."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


def on_ray(edition: Edition, images: Path | None = None) -> tuple[bytes, set[int]]:
    """The bytes of the table from shards of eight images, and the shards that were missing."""
    params = read_params(edition.folder)
    image_ids = read_table(edition.index, INDEX)["image_id"].tolist()
    shards = Shards(edition.folder / "shards", "f", image_ids, batch_size=4, min_images=8)
    missing = set(shards.missing)
    settings = replace(settings_for(params.score), batch_size=4)
    load = partial(load_model, params.model("standard"), edition.folder)
    opened = partial(score.open_images, edition, params.dataset.images)
    score_shards_on_ray(load, opened, settings, shards, lambda *_: None)
    write_table(edition.folder / "table", shards.table(), SCORES)
    return (edition.folder / "table").read_bytes(), missing


def test_the_same_bytes_as_the_local_engine(tmp_path: Path) -> None:
    edition = make_edition(tmp_path, 41)
    score.run(edition, "standard")
    local = edition.scores("standard").read_bytes(), edition.scored_with("standard").read_bytes()
    assert on_ray(edition) == (local[0], set(range(6)))
    (tmp_path / "shards" / "f" / "00003.parquet").unlink()
    assert on_ray(edition) == (local[0], {3})

    write_params(tmp_path, engine="ray")
    edition.scores("standard").unlink()
    score.run(edition, "standard")
    assert (edition.scores("standard").read_bytes(), edition.scored_with("standard").read_bytes()) == local


def test_a_broken_image_is_named(tmp_path: Path) -> None:
    edition = make_edition(tmp_path, 12)
    archive = bytearray((tmp_path / "images.tar").read_bytes())
    archive[600] ^= 255  # a byte of the first image
    (tmp_path / "images.tar").write_bytes(archive)
    with pytest.raises(CleansetError, match=r"images\.tar: ILSVRC2012_val_00000001 has SHA-256 "):
        on_ray(edition)
