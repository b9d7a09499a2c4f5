"""The tools that a researcher has load an export as it lies there: torchvision, datasets, mlcroissant."""

import hashlib
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlcroissant
import numpy as np
import pytest
from PIL import Image, ImageOps
from torchvision.datasets import ImageFolder

from tests.exports.conftest import FILES
from tests.exports.test_verify import rows

WNIDS = ["n01440764", "n02119789", "n02123045"]


def pixels(image: Any) -> str:
    return hashlib.sha256(np.asarray(image.convert("RGB")).tobytes()).hexdigest()


def test_torchvision(export_folder: Path) -> None:
    folder = ImageFolder(str(export_folder))
    assert folder.classes == WNIDS
    assert [(Path(path).relative_to(export_folder).as_posix(), label) for path, label in folder.samples] == list(
        zip(FILES, [0, 0, 1, 1, 1, 2], strict=True)
    )
    assert [pixels(image) for image, _ in folder] == [row["pixels_sha256"] for row in rows(export_folder)]


PROGRAM = """
import hashlib, json
import numpy as np
from datasets import load_dataset

def shown(loaded):
    (split, table), = loaded.items()
    def row(each):
        sha256 = hashlib.sha256(np.asarray(each.pop("image").convert("RGB")).tobytes()).hexdigest()
        return {**each, "seen": sha256}
    names = getattr(table.features.get("label"), "names", None)
    return [split, names, [row(each) for each in table]]

print(json.dumps([
    shown(load_dataset("imagefolder", data_dir=".", data_files={"validation": "**"})),
    shown(load_dataset("../standard")),
    shown(load_dataset("imagefolder", data_dir=".")),
]))
"""


@pytest.fixture(scope="module")
def loaded(export_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """By `datasets`, without any network, in a process of its own: split, label names and rows of each way."""
    environment = os.environ | {
        "HF_DATASETS_OFFLINE": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path_factory.mktemp("hf")),
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=export_folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("way", [0, 1])
def test_datasets_with_all_columns(loaded: list[Any], export_folder: Path, way: int) -> None:
    """As image folder with all of its files, and as what the data card says it is."""
    split, _, table = loaded[way]
    assert split == "validation"
    expected = [row["pixels_sha256"] for row in rows(export_folder)]
    with Image.open(export_folder / FILES[4]) as turned:  # alone of all these tools, it applies an EXIF orientation
        expected[4] = pixels(ImageOps.exif_transpose(turned))
    assert [each["seen"] for each in table] == expected
    for found, row in zip(table, rows(export_folder), strict=True):
        assert set(found) == set(row) - {"file"} | {"seen"}
        assert [found[name] for name in ("image_id", "wnid", "tier", "pixels_sha256")] == [
            row[name] for name in ("image_id", "wnid", "tier", "pixels_sha256")
        ]
        assert [found["class_index"], found["rank"]] == [int(row["class_index"]), int(row["rank"])]
        assert found["left"] == (int(row["left"]) if row["left"] else None)


def test_datasets_with_the_classes_alone(loaded: list[Any]) -> None:
    """Without data_files it splits by the names of the files, in which it finds "val", and takes no metadata."""
    split, names, table = loaded[2]
    assert (split, names) == ("validation", WNIDS)
    assert sorted(each["label"] for each in table) == [0, 0, 1, 1, 1, 2]


def test_croissant_is_valid(export_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        metadata = mlcroissant.Dataset(jsonld=export_folder / "croissant.json").metadata
    assert metadata.ctx.issues.errors == set()
    # it has neither on purpose: the same inputs give the same bytes
    recommended = {"datePublished", "version"}
    assert {text.split("schema.org/")[1].split('"')[0] for text in metadata.ctx.issues.warnings} == recommended
    assert metadata.name == "cleanset-standard"
    assert metadata.license == ["https://www.image-net.org/download.php"]
    assert "Russakovsky" in str(metadata.cite_as)
    assert "research and education" in json.loads((export_folder / "croissant.json").read_text())["conditionsOfAccess"]


def test_croissant_gives_every_record_with_its_image(export_folder: Path) -> None:
    records = list(mlcroissant.Dataset(jsonld=export_folder / "croissant.json").records("images"))
    assert len(records) == 6
    for record, row in zip(records, rows(export_folder), strict=True):
        found = {name.removeprefix("images/"): value for name, value in record.items()}
        assert pixels(found["image"]) == row["pixels_sha256"]
        assert found["file_name"].decode() == Path(row["file"]).name
        assert found["class_index"] == int(row["class_index"])
        assert found["left"] == (int(row["left"]) if row["left"] else None)
        for name in ("confidence", "source_confidence"):
            assert found[name] == pytest.approx(float(row[name]))
        assert found["real_classes"].decode() == row["real_classes"]
        assert {f"{name}" for name in found} == set(row) - {"file"} | {"image", "file_name"}


def test_croissant_refuses_another_manifest(copy: Path) -> None:
    (copy / "manifest.csv").write_text((copy / "manifest.csv").read_text().replace("top5", "reserve"))
    with pytest.raises(mlcroissant.GenerationError) as raised:
        list(mlcroissant.Dataset(jsonld=copy / "croissant.json").records("images"))
    assert "is not identical with the reference" in str(raised.value.__cause__)
