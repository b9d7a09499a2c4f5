"""The whole pipeline on 2,000 real photographs with three trained models, against numbers measured elsewhere."""

import json
from pathlib import Path

import pandas as pd
import pytest

from cleanset.files import sha256
from tests.real.editions import ROLES, make_edition, pinned, reproduced

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def edition(real: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """An edition of the real photographs, reproduced."""
    models = {
        role: {"source": "timm", "name": f"tf_efficientnet_lite{number}"}
        | pinned(real / "weights" / f"tf_efficientnet_lite{number}.safetensors")
        for number, role in enumerate(ROLES)
    }
    folder = tmp_path_factory.mktemp("real") / "edition"
    make_edition(folder, real, models, pytestconfig.getoption("--real-precision"))
    return reproduced(folder)


def _metric(edition: Path, name: str) -> list[float]:
    numbers = json.loads((edition / "metrics" / "totals" / f"{name}.json").read_text())
    return [numbers[role] for role in ROLES]


def test_one_label_images(edition: Path) -> None:
    index = pd.read_parquet(edition / "data" / "index.parquet")
    assert len(index) == 2000
    assert index["single"].sum() == 1556


def test_right_on_one_label_images(edition: Path) -> None:
    assert _metric(edition, "correct_of_one_label") == [358, 333, 339]
    assert len(pd.read_parquet(edition / "data" / "shared.parquet")) == 193


def test_finished_sets(edition: Path) -> None:
    assert _metric(edition, "images") == [112, 111, 109]
    assert _metric(edition, "images_top5") == [91, 91, 91]
    assert _metric(edition, "images_reserve") == [17, 18, 16]
    assert _metric(edition, "images_relaxed") == [4, 2, 2]


@pytest.mark.parametrize("role", ROLES)
def test_exported_images_are_the_originals(edition: Path, role: str) -> None:
    folder = edition / "data" / "export" / role
    manifest = pd.read_csv(folder / "manifest.csv", dtype=str)
    assert manifest["source_sha256"].tolist() == manifest["file_sha256"].tolist()
    assert [sha256((folder / file).read_bytes()) for file in manifest["file"]] == manifest["file_sha256"].tolist()
