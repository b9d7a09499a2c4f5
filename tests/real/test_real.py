"""The whole pipeline on 2,000 real photographs with three trained models, against numbers measured elsewhere."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml

ROLES = ("standard", "norm_robust", "corruption_robust")


@pytest.fixture(scope="module")
def edition(real: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """An edition of the real photographs, reproduced."""
    folder = tmp_path_factory.mktemp("real") / "edition"
    subprocess.run(["cleanset", "edition", str(folder)], check=True)
    for name in ("ILSVRC2012_img_val.tar", "ILSVRC2012_devkit_t12.tar.gz"):
        (folder / "data" / "raw" / name).symlink_to(real / name)
    weights = folder / "data" / "weights"
    weights.symlink_to(real / "weights")
    params = yaml.safe_load((folder / "params.yaml").read_text())
    params["dataset"] |= {
        "expect_images": 2000,
        "classes": json.loads((real / "contents.json").read_text())["classes"],
    }
    params["models"] = {
        role: {
            "source": "timm",
            "name": f"tf_efficientnet_lite{number}",
            "weights": f"data/weights/tf_efficientnet_lite{number}.safetensors",
            "sha256": _sha256(weights / f"tf_efficientnet_lite{number}.safetensors"),
        }
        for number, role in enumerate(ROLES)
    }
    params["score"] |= {"precision": pytestconfig.getoption("--real-precision"), "batch_size": 32}
    params["review"]["unreviewed"] = "clean"
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    sums = subprocess.run(
        ["md5sum", "data/raw/ILSVRC2012_img_val.tar", "data/raw/ILSVRC2012_devkit_t12.tar.gz"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (folder / "raw.md5").write_text(sums.stdout)
    subprocess.run(["dvc", "repro", "--quiet"], cwd=folder, check=True, env=os.environ | {"NO_COLOR": "1"})
    return folder


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _metric(edition: Path, name: str) -> list[float]:
    numbers = json.loads((edition / "metrics" / "totals" / f"{name}.json").read_text())
    return [numbers[role] for role in ROLES]


def test_one_label_pictures(edition: Path) -> None:
    index = pd.read_parquet(edition / "data" / "index.parquet")
    assert len(index) == 2000
    assert index["single"].sum() == 1556


def test_right_on_one_label_pictures(edition: Path) -> None:
    assert _metric(edition, "right_of_one_label") == [358, 333, 339]
    assert len(pd.read_parquet(edition / "data" / "shared.parquet")) == 193


def test_finished_sets(edition: Path) -> None:
    assert _metric(edition, "pictures") == [112, 111, 109]
    assert _metric(edition, "pictures_top5") == [91, 91, 91]
    assert _metric(edition, "pictures_reserve") == [17, 18, 16]
    assert _metric(edition, "pictures_relaxed") == [4, 2, 2]


@pytest.mark.parametrize("role", ROLES)
def test_exported_pictures_are_the_originals(edition: Path, role: str) -> None:
    folder = edition / "data" / "export" / role
    manifest = pd.read_csv(folder / "manifest.csv", dtype=str)
    assert manifest["source_sha256"].tolist() == manifest["file_sha256"].tolist()
    assert [_sha256(folder / file) for file in manifest["file"]] == manifest["file_sha256"].tolist()
