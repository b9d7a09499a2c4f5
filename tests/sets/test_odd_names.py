"""Your own images under odd names, as other libraries read them: every record is the one that was written."""

import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlcroissant
import numpy as np
import pandas as pd
import pytest
import webdataset
import yaml
from PIL import Image
from torchvision.datasets import ImageFolder

import cleanset
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.sets import publish, verify
from cleanset.sets.archive import pack
from tests import own_edition
from tests.edition.test_about import CARD

pytestmark = pytest.mark.slow

ODD = {
    "1": ("1", "0012"), "2": ("02", "NA"), "007": ("7", "null"), "010": ("NA", "1e5"), "1e3": ("1e3", "2024-05-01"),
    "1.5": ('x "quoted"', "true"), "NA": ("null", "a,b"), "None": ("None", '"q"'), "null": ("N/A", "مريض 1"),
    "true": ("true", "😀"), "False": ("😀 smile", "None"), "nan": ("<NA>", "nan"), "inf": ("-inf", "1.0"),
    "0x10": ("0x10", "007"), "2024-05-01": ("2024-05-01", "7"), "n a": ("n-a", "N/A"), "a b": ("'single'", "x y"),
    "a.b": ("قطة, سوداء", "y.z"), "a,b": ("a,b", "z"), "pears, ripe": ("pears, ripe", "-1"),
    "dog's": ("dogs'", "False"), "x (old)": ("pears, unripe", "#"), "قطة": ("كلب", "<NA>"),
    "کتاب فارسی": ("کتاب", "n/a"), "é": ("é", "NULL"), "日本語": ("日本語", "2024-05-02"),
    "yes": ("<b>bold</b> & co", "é"), "_under": ("{x}", "日"), "test": ("test", "a b"), "train": ("#hash", "_"),
    "sum": ("=1+1", "@x"),
}  # fmt: skip
"""By key of a class: its name, and the group of its images."""
NUMBERS = {"001": ("01", "07"), "002": ("02", "08"), "003": ("3e1", "09")}
"""The same, where every value of a column looks like a number."""

Record = tuple[int, str, str, str, str]
"""Facts on an image: label, class, name, group, and SHA-256 of its bytes or pixels."""


def made(folder: Path, classes: dict[str, tuple[str, str]]) -> Edition:
    """A finished edition of three images in each class, called alike in all of them."""
    with (folder / "names.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("class", "name"), *((key, name) for key, (name, _) in classes.items())])
    with (folder / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        rows = ((f"{key}/{n:03d}.png", key, group) for key, (_, group) in classes.items() for n in range(3))
        csv.writer(file).writerows([("file", "class", "group"), *rows])
    (folder / "card.yaml").write_text(yaml.safe_dump(CARD))
    options = ("--labels", "labels.csv", "--names", "names.csv", "--card", "card.yaml")
    edition = own_edition.make(folder, keys=list(classes), each=3, edge=24, options=options)
    own_edition.change_params(edition, export={"date": "2026-01-31"})
    own_edition.review(edition, "ada")
    own_edition.run(edition, "crops", "score_crops", "review_apply", "export")
    return edition


def expected(folder: Path, classes: dict[str, tuple[str, str]], of_pixels: bool = True) -> dict[str, Record]:
    """The record of each image by its id, from the images that the edition was made of."""
    found = {}
    for index, key in enumerate(sorted(classes)):
        for path in sorted((folder / "images" / key).iterdir()):
            digest = pixels(Image.open(path)) if of_pixels else hashlib.sha256(path.read_bytes()).hexdigest()
            found[f"{key}/{path.name}"] = (index, key, *classes[key], digest)
    return found


def pixels(image: Any) -> str:
    return hashlib.sha256(np.asarray(image.convert("RGB")).tobytes()).hexdigest()


@pytest.fixture(scope="module", params=["odd", "numbers"])
def classes(request: pytest.FixtureRequest) -> dict[str, tuple[str, str]]:
    return {"odd": ODD, "numbers": NUMBERS}[request.param]


@pytest.fixture(scope="module")
def edition(classes: dict[str, tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Edition:
    return made(tmp_path_factory.mktemp("odd"), classes)


@pytest.fixture
def export(edition: Edition) -> Path:
    folder = edition.export("images")
    assert verify.run(folder, decode=True).problems == []
    return folder


PROGRAM = """
import hashlib, json, os
import datasets, numpy as np

table = datasets.load_dataset(os.getcwd())["validation"]
if "image" in table.features:
    raw = table.cast_column("image", datasets.Image(decode=False))
    files = [row["image"]["bytes"] or open(row["image"]["path"], "rb").read() for row in raw]
    table = table.remove_columns("image").add_column("seen", [hashlib.sha256(data).hexdigest() for data in files])
label = "label" if "label" in table.features else "class_index"
print(json.dumps([label, table.features[label].names, list(table)]))
"""


def read_by_datasets(folder: Path, home: Path) -> tuple[str, list[str], list[dict[str, Any]]]:
    """Column of the label, names of the classes and rows, as `datasets` reads a folder with its defaults."""
    offline = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=os.environ | offline,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    label, names, rows = json.loads(done.stdout)
    return label, names, rows


@pytest.mark.long
def test_datasets(export: Path, edition: Edition, classes: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    label, names, rows = read_by_datasets(export, tmp_path)
    assert (label, names) == ("label", [classes[key][0] for key in sorted(classes)])
    found = {
        row["image_id"]: (row["label"], row["class"], row["class_name"], row["group"], row["seen"]) for row in rows
    }
    assert found == expected(edition.folder.parent, classes, of_pixels=False)


@pytest.mark.long
def test_datasets_without_the_images(edition: Edition, classes: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    folder = publish.run(edition.export("images"), tmp_path / "out", False, None).folder
    assert verify.run(folder, decode=False).problems == []
    assert not (folder / "metadata.jsonl").exists()
    label, names, rows = read_by_datasets(folder, tmp_path)
    assert (label, names) == ("class_index", [classes[key][0] for key in sorted(classes)])
    found = {
        row["image_id"]: (row["class_index"], row["class"], row["class_name"], row["group"], row["file_sha256"])
        for row in rows
    }
    assert found == expected(edition.folder.parent, classes, of_pixels=False)


def test_image_folder(export: Path, edition: Edition, classes: dict[str, tuple[str, str]]) -> None:
    folder = ImageFolder(str(export))
    found = {
        Path(path).relative_to(export).as_posix(): (
            label,
            folder.classes[label],
            *classes[folder.classes[label]],
            pixels(image),
        )
        for (path, label), (image, _) in zip(folder.samples, folder, strict=True)
    }
    assert found == expected(edition.folder.parent, classes)


def test_mlcroissant(export: Path, edition: Edition, classes: dict[str, tuple[str, str]]) -> None:
    records = [
        {
            name.removeprefix("images/"): value.decode() if isinstance(value, bytes) else value
            for name, value in each.items()
        }
        for each in mlcroissant.Dataset(jsonld=export / "croissant.json").records("images")
    ]
    found = {
        each["image_id"]: (each["class_index"], each["class"], each["class_name"], each["group"], pixels(each["image"]))
        for each in records
    }
    assert found == expected(edition.folder.parent, classes)
    assert len(records) == len(found)
    assert all(each["file_name"] == each["image_id"] and each["left"] is None for each in records)


def test_webdataset(export: Path, edition: Edition, classes: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    pack(export, tmp_path / "shards", 40)
    shards = [str(path) for path in sorted((tmp_path / "shards").iterdir())]
    read = webdataset.WebDataset(shards, shardshuffle=False).decode("pil").to_tuple("jpg;png", "cls", "json")
    found = {
        each["image_id"]: (label, each["class"], each["class_name"], each["group"], pixels(image))
        for image, label, each in read
    }
    assert found == expected(edition.folder.parent, classes)


def of_table(table: pd.DataFrame, label: str) -> Iterator[tuple[str, Record]]:
    for row in table.to_dict("records"):
        yield row["image_id"], (row[label], row["class"], row["class_name"], row["group"], row["file_sha256"])


def test_pandas(export: Path, edition: Edition, classes: dict[str, tuple[str, str]]) -> None:
    # by default pandas takes a column for numbers in which every value looks like one
    table = pd.read_json(export / "metadata.jsonl", lines=True, dtype=None if classes is ODD else False)
    assert dict(of_table(table, "label")) == expected(edition.folder.parent, classes, of_pixels=False)


def test_cleanset(export: Path, edition: Edition, classes: dict[str, tuple[str, str]]) -> None:
    wanted = expected(edition.folder.parent, classes, of_pixels=False)
    assert dict(of_table(cleanset.table("images", export), "class_index")) == wanted
    images = cleanset.load("images", export)
    assert images.class_names == [classes[key][0] for key in sorted(classes)]
    found = {
        each["image_id"]: (label, each["class"], each["class_name"], each["group"], pixels(image))
        for image, label, each in images
    }
    assert found == expected(edition.folder.parent, classes)


LOADED = "import cleanset, sys; print(cleanset.load(sys.argv[1])[0])"


@pytest.mark.long
def test_in_a_locale_that_is_not_utf8(export: Path, classes: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    """The command begins again in Python's UTF-8 mode; a program of the user's own gets a message to do so."""
    compiled = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(tmp_path / "de_DE.ISO-8859-1")]
    if shutil.which("localedef") is None or subprocess.run(compiled, capture_output=True, check=False).returncode:
        pytest.skip("no German in ISO-8859-1: install the package locales")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "PYTHONUTF8"))}
    environment |= {"LOCPATH": str(tmp_path), "LC_ALL": "de_DE.ISO-8859-1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments, export], env=environment, capture_output=True, encoding="latin-1"
        )

    assert "images are good" in run("-m", "cleanset", "verify").stdout
    loaded = run("-c", LOADED)
    if all(key.isascii() for key in classes):
        assert loaded.returncode == 0
    else:
        assert "takes names for iso8859-1; expected PYTHONUTF8=1" in loaded.stderr


def test_names_on_pages_have_a_direction(edition: Edition, classes: dict[str, tuple[str, str]]) -> None:
    own_edition.run(edition, "count", "report")
    pages = "".join(path.read_text() for path in edition.report.rglob("*.html"))
    directed = set(re.findall('<bdi dir="auto">([^<]*)</bdi>', pages))
    assert directed == ({"قطة, سوداء", "کتاب", "كلب", "قطة", "کتاب فارسی"} if classes is ODD else set())
    assert "&lt;b&gt;bold&lt;/b&gt;" in pages or classes is NUMBERS


def test_a_set_of_your_own_without_its_json_lines_is_refused(export: Path, tmp_path: Path) -> None:
    """As versions before those lines wrote it."""
    older = Path(shutil.copytree(export, tmp_path / "older"))
    for name in ("croissant.jsonl", "metadata.jsonl"):
        (older / name).unlink()
    problems = [f"{each}" for each in verify.run(older, decode=False).problems]
    for name in ("croissant.jsonl", "metadata.jsonl"):
        assert f"missing      {name}: nothing; expected what is made from manifest.csv" in problems
    with pytest.raises(CleansetError, match=r"problems: .*; see cleanset verify"):
        publish.run(older, tmp_path / "out", True, None)
