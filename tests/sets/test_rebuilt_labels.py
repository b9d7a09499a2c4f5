"""Every library of docs/use.md gives the images of a rebuilt set the labels that it gives those of the original.

The set has images of 3 of the 1,000 classes, so that numbering the folders that there are would shift its labels.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlcroissant
import pandas as pd
import pytest
import webdataset
from torchvision.datasets import ImageFolder

import cleanset
from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.sets import archive, rebuild, verify
from tests.sets.conftest import trial
from tests.sets.test_verify import rows
from tests.ten_images import TAR

pytestmark = pytest.mark.slow

UNKNOWN = "**Images that no reviewer is known to have judged: 4.**\n\n"


@pytest.fixture(scope="module")
def rebuilt(edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from a manifest without any other file; not to be changed."""
    folder = tmp_path_factory.mktemp("rebuilt")
    shutil.copy(edition.export("standard") / "manifest.csv", folder / "manifest.csv")
    result = rebuild.run(folder / "manifest.csv", edition.folder / "data" / "raw" / TAR, folder / "standard")
    assert result.problems == []
    return folder / "standard"


def by_image(images: Any) -> dict[str, Any]:
    """The label of each image, by its id."""
    found: dict[str, Any] = {}
    for name, label in images:
        image_id = re.search(r"ILSVRC2012_val_\d{8}", name)
        assert image_id is not None
        assert image_id[0] not in found
        found[image_id[0]] = label
    return found


def of_image_folder(folder: Path) -> Any:
    loaded = ImageFolder(str(folder))
    return [by_image(loaded.samples), loaded.classes]


def of_class_indices(folder: Path) -> Any:
    """As docs/use.md turns the numbers of ImageFolder into class indices."""
    folders, images = ImageFolder(str(folder)), cleanset.load("standard", folder)
    indices = [images.class_to_idx[wnid] for wnid in folders.classes]
    return by_image((path, indices[number]) for path, number in folders.samples)


def of_load(folder: Path) -> Any:
    images = cleanset.load("standard", folder)
    return [by_image((record["image_id"], label) for _, label, record in images), images.classes, images.class_names]


def of_table(folder: Path) -> Any:
    table = cleanset.table("standard", folder)
    return by_image(zip(table["image_id"], table["class_index"], strict=True))


def of_metadata(folder: Path) -> Any:
    table = pd.read_csv(folder / "metadata.csv")
    return by_image(zip(table["file_name"], table["label"], strict=True))


def of_croissant(folder: Path) -> Any:
    records = mlcroissant.Dataset(jsonld=folder / "croissant.json").records("images")
    return by_image((each["images/image_id"].decode(), each["images/class_index"]) for each in records)


def of_shards(folder: Path) -> Any:
    shards = folder.parent / f"{folder.name}-shards"
    archive.pack(folder, shards, 1000)
    read = webdataset.WebDataset(str(shards / "standard-000000.tar"), shardshuffle=False).decode("pil")
    return by_image((each["__key__"], each["cls"]) for each in read)


@pytest.mark.parametrize(
    "labels", [of_image_folder, of_class_indices, of_load, of_table, of_metadata, of_croissant, of_shards]
)
def test_as_of_the_original(labels: Callable[[Path], Any], rebuilt: Path, copy: Path) -> None:
    found = labels(rebuilt)
    assert found == labels(copy)
    if isinstance(found, dict):
        assert found == {row["image_id"]: int(row["class_index"]) for row in rows(copy)}


PROGRAM = """
import json, os, sys
from datasets import load_dataset

def shown(loaded):
    (split, table), = loaded.items()
    table = table.cast_column("image", table.features["image"].__class__(decode=False))
    return [split, getattr(table.features["label"], "names", None), [[os.path.basename(each["image"]["path"] or ""),
            each.get("image_id"), each["label"]] for each in table]]

for folder in sys.argv[1:]:
    os.chdir(folder)
    ways = (load_dataset(os.getcwd()), load_dataset("imagefolder", data_dir="."),
            load_dataset("imagefolder", data_dir=".", data_files={"validation": "**"}))
    print(json.dumps([shown(each) for each in ways]))
"""


@pytest.mark.long
def test_by_datasets(rebuilt: Path, copy: Path, tmp_path: Path) -> None:
    """From the folder with its card, and in both ways without it."""
    offline = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(rebuilt), str(copy)],
        env=os.environ | offline, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found, expected = map(json.loads, done.stdout.splitlines())
    assert found == expected
    indices = {row["image_id"]: int(row["class_index"]) for row in rows(copy)}
    with_card, by_folders, with_metadata = found
    assert with_card[:2] == ["validation", list(imagenet().labels)]
    assert {image_id: label for _, image_id, label in with_card[2]} == indices
    assert with_metadata[1] is None
    assert {image_id: label for _, image_id, label in with_metadata[2]} == indices
    # of the folders alone it numbers those that there are, as ImageFolder does
    assert by_folders[1] == [imagenet().keys[index] for index in sorted(set(indices.values()))]


def test_the_card(rebuilt: Path, export_folder: Path) -> None:
    text = (rebuilt / "README.md").read_text()
    _, matter, body = text.split("---\n", 2)
    assert matter == (export_folder / "README.md").read_text().split("---\n", 2)[1]
    assert body.startswith(
        f"\n# cleanset-standard\n\n{UNKNOWN}6 images of 3 classes: made again by `cleanset rebuild` from"
    )
    assert "Images that people have reviewed: 2." in body
    assert re.findall(r"^## (.+)", body, re.MULTILINE) == ["Loading", "Uses", "Licences and terms", "Citation"]
    found = verify.run(rebuilt, decode=True)
    assert (found.problems, found.good, found.card) == ([], 6, True)


def test_what_is_next_to_the_manifest_changes_only_the_release(
    edition: Edition, export_folder: Path, rebuilt: Path, tmp_path: Path
) -> None:
    """Also where the manifest is that of a rebuilt set."""
    raw = edition.folder / "data" / "raw" / TAR
    for manifest, out in ((export_folder, tmp_path / "of-original"), (rebuilt, tmp_path / "of-rebuilt")):
        assert rebuild.run(manifest, raw, out).problems == []
    text = (tmp_path / "of-original" / "README.md").read_text()
    plain = (rebuilt / "README.md").read_text()
    text = text.replace("3 classes, version 1.2.3 of 2026-01-31: made", "3 classes: made")
    # with a release, it says from which archive; without one, how many images have no reviewer
    assert text.replace(f"**{trial(tmp_path / 'of-original')}**\n\n", UNKNOWN) == plain
    for name in ("README.md", "croissant.json", "checksums.sha256", "metadata.csv"):
        assert (tmp_path / "of-rebuilt" / name).read_bytes() == (rebuilt / name).read_bytes()
