"""The whole pipeline on real photographs with three trained models, against numbers measured elsewhere.

`make real` takes all 2,000 photographs, in float64; otherwise a few are taken.
"""

import json
import tarfile
from pathlib import Path

import pandas as pd
import pytest

from cleanset.dataset.labels import read_original_labels
from cleanset.plumbing.files import sha256
from tests.real.editions import DEVKIT, EVERY, ROLES, TAR, make_edition, pinned, reproduced

pytestmark = pytest.mark.long

EXPECTED: dict[int, dict[str, object]] = {
    35: {
        "one_label": 24, "correct_of_one_label": [16, 14, 17], "correct_of_all_models": 13,
        "images": [15, 13, 15], "images_top5": [10, 10, 10], "images_reserve": [3, 0, 2],
        "images_relaxed": [2, 3, 3],
    },
    2000: {
        "one_label": 1556, "correct_of_one_label": [358, 333, 339], "correct_of_all_models": 193,
        "images": [112, 111, 109], "images_top5": [91, 91, 91], "images_reserve": [17, 18, 16],
        "images_relaxed": [4, 2, 2],
    },
}  # fmt: skip
"""By the number of photographs; metrics have the three models' values."""
SOME_CLASSES = {235, 438, 625, 951, 978}
"""The models recognise enough of their photographs, among the first 200, for images in every tier."""
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
    make_edition(folder, real, models, precision, EVERY if precision == "float64" else of_some_classes(real))
    return reproduced(folder)


def of_some_classes(real: Path) -> list[int]:
    """The places of their photographs among the first 200."""
    labels, _ = read_original_labels(real / DEVKIT)
    with tarfile.open(real / TAR) as tar:
        names = tar.getnames()[:200]
    return [place for place, name in enumerate(names) if labels[Path(name).stem] in SOME_CLASSES]


def test_the_numbers(edition: Path) -> None:
    """Digests of the labels, of the three models' predictions, and of their finished sets."""
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
