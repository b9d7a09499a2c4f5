"""The whole pipeline on real photographs with three trained models, against numbers measured elsewhere.

`make real` takes all 2,000 photographs, in float64; otherwise the first 200 are taken.
"""

import json
from pathlib import Path

import pandas as pd
import pytest

from cleanset.files import sha256
from tests.real.editions import ROLES, make_edition, pinned, reproduced

pytestmark = pytest.mark.long

EXPECTED: dict[int, dict[str, object]] = {
    200: {
        "one_label": 152, "correct_of_one_label": [40, 35, 43], "correct_of_all_models": 24,
        "images": [44, 39, 42], "images_top5": [20, 20, 20], "images_reserve": [16, 10, 16],
        "images_relaxed": [8, 9, 6],
    },
    2000: {
        "one_label": 1556, "correct_of_one_label": [358, 333, 339], "correct_of_all_models": 193,
        "images": [112, 111, 109], "images_top5": [91, 91, 91], "images_reserve": [17, 18, 16],
        "images_relaxed": [4, 2, 2],
    },
}  # fmt: skip
"""By the number of photographs; of metrics the three models' values."""
METRICS = ("correct_of_one_label", "images", "images_top5", "images_reserve", "images_relaxed")


@pytest.fixture(scope="module")
def edition(real: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """An edition of the real photographs, reproduced."""
    models = {
        role: {"source": "timm", "name": f"tf_efficientnet_lite{number}"}
        | pinned(real / "weights" / f"tf_efficientnet_lite{number}.safetensors")
        for number, role in enumerate(ROLES)
    }
    folder = tmp_path_factory.mktemp("real") / "edition"
    precision = pytestconfig.getoption("--real-precision")
    make_edition(folder, real, models, precision, images=2000 if precision == "float64" else 200)
    return reproduced(folder)


def test_the_numbers(edition: Path) -> None:
    """Of the labels, of the three models' predictions, and of their finished sets."""
    index = pd.read_parquet(edition / "data" / "index.parquet")
    found: dict[str, object] = {
        name: [json.loads((edition / "metrics" / "totals" / f"{name}.json").read_text())[role] for role in ROLES]
        for name in METRICS
    }
    found["one_label"] = index["single"].sum()
    found["correct_of_all_models"] = len(pd.read_parquet(edition / "data" / "shared.parquet"))
    assert found == EXPECTED[len(index)]


@pytest.mark.parametrize("role", ROLES)
def test_exported_images_are_the_originals(edition: Path, role: str) -> None:
    folder = edition / "data" / "export" / role
    manifest = pd.read_csv(folder / "manifest.csv", dtype=str)
    assert manifest["source_sha256"].tolist() == manifest["file_sha256"].tolist()
    assert [sha256((folder / file).read_bytes()) for file in manifest["file"]] == manifest["file_sha256"].tolist()
