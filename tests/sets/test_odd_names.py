"""Your own images under odd names, as other libraries read them: every record is the one that was written."""

import csv
import hashlib
import json
import os
import re
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
from cleanset.classes import parse_class_table, use_classes
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.sets import publish, verify
from cleanset.sets.archive import pack
from cleanset.sets.description import Release
from cleanset.sets.folder import checksums, derived_texts
from cleanset.sets.manifest import read_manifest
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
}  # fmt: skip
"""By key of a class: its name, and the group of its images."""
NUMBERS = {"001": ("01", "07"), "002": ("02", "08"), "003": ("3e1", "09")}
"""The same, where every value of a column looks like a number."""

Record = tuple[int, str, str, str, str]
"""Of an image: label, class, name, group, and SHA-256 of its bytes or pixels."""


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


def test_datasets(export: Path, edition: Edition, classes: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    label, names, rows = read_by_datasets(export, tmp_path)
    assert (label, names) == ("label", [classes[key][0] for key in sorted(classes)])
    found = {
        row["image_id"]: (row["label"], row["class"], row["class_name"], row["group"], row["seen"]) for row in rows
    }
    assert found == expected(edition.folder.parent, classes, of_pixels=False)


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


def test_names_on_pages_have_a_direction(edition: Edition, classes: dict[str, tuple[str, str]]) -> None:
    own_edition.run(edition, "count", "report")
    pages = "".join(path.read_text() for path in edition.report.rglob("*.html"))
    directed = set(re.findall('<bdi dir="auto">([^<]*)</bdi>', pages))
    assert directed == ({"قطة, سوداء", "کتاب", "كلب", "قطة", "کتاب فارسی"} if classes is ODD else set())
    assert "&lt;b&gt;bold&lt;/b&gt;" in pages or classes is NUMBERS


OLDER = """\
model,class,class_index,class_name,rank,image_id,tier,confidence,source_confidence,original_class,classes,reviewers,\
left,top,right,bottom,file,source_sha256,source_check,file_sha256,pixels_sha256,encoder,group
images,"a, b",0,a,1,"a, b/0.png",top5,,,0,0,0,,,,,"a, b/0.png",\
5569d04028c20321916f034d734dfd0677f3d4165fe57ff68ef7635eb5c0113c,none,\
5569d04028c20321916f034d734dfd0677f3d4165fe57ff68ef7635eb5c0113c,\
bf93a606614862121e81da16932f196cad4068ec4c9340299a40fa1aca10421d,,
images,c,1,c,1,c/0.png,top5,,,1,1,0,,,,,c/0.png,\
f33a4cba01cb4e8a2f624a6bf6cf12bae10f1c52dc2e0e72c459ff6b2ce56163,none,\
f33a4cba01cb4e8a2f624a6bf6cf12bae10f1c52dc2e0e72c459ff6b2ce56163,\
05d14833468c222c9349a21789137632f529bafb0e5437f84fa7ff3a9ee70272,,
"""
"""The manifest of a set from before names kept their commas and there were JSON lines."""
CLASSES_OF_OLDER = "class\tname\tindex\na, b\ta, b\t0\nc\tc\t1\n"
OLDER_SHA256 = {
    "croissant.json": "e4272638c36380235571a9cad4cbbd6f820eade7862dccaedcd9a1ac98d47c10",
    "metadata.csv": "bcfdaf22abdb51c8f8dfe6130991c31ef67aba1923ec48730ebe24cda23d22dd",
}
REVIEW = (
    "One reviewer is enough, and all who reviewed an image must agree; the board overrules; an image that nobody has "
    "reviewed counts as clean."
)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A set as it was before."""
    for number, key in enumerate(("a, b", "c")):
        (tmp_path / key).mkdir()
        Image.new("RGB", (20, 20), (60 * number + 10, 0, 200)).save(tmp_path / key / "0.png")
    (tmp_path / "classes.tsv").write_text(CLASSES_OF_OLDER)
    use_classes(parse_class_table(CLASSES_OF_OLDER, "here"))
    release = Release(version="1.0.0", archive="photos", review=REVIEW)
    made = derived_texts(OLDER, read_manifest(OLDER, "here"), release, has_records=False)
    texts = made | {"manifest.csv": OLDER, "README.md": "# a card\n"}
    assert {name: hashlib.sha256(made[name].encode()).hexdigest() for name in OLDER_SHA256} == OLDER_SHA256
    texts["checksums.sha256"] = checksums(
        {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    )
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_an_older_set(older: Path) -> None:
    found = verify.run(older, decode=True)
    assert (found.problems, found.good) == ([], 2)
    images = cleanset.load("images", older)
    assert [record["class_name"] for _, _, record in images] == ["a", "c"]
    assert images.class_names == ["a, b", "c"]
    assert list(cleanset.table("images", older)["class_name"]) == ["a", "c"]


def test_an_older_set_lacks_what_its_checksums_list(older: Path) -> None:
    """A set of today is not taken for an older one because its JSON lines are gone."""
    listed = (older / "checksums.sha256").read_text()
    (older / "checksums.sha256").write_text(listed.replace("metadata.csv", "croissant.jsonl"))
    problems = [f"{each}" for each in verify.run(older, decode=False).problems]
    assert "missing      croissant.jsonl: nothing; expected what is made from manifest.csv" in problems
    listing = "croissant.json, croissant.jsonl, manifest.csv, metadata.jsonl"
    assert (
        f"unlike       checksums.sha256: something else; expected a SHA-256 and a name for each of {listing}"
        in problems
    )


def test_publish_asks_for_the_export_of_this_version(older: Path, tmp_path: Path) -> None:
    (older / "rejected.csv").write_text("")
    (older / "checksums.sha256").write_text(
        checksums(
            {
                p.name: hashlib.sha256(p.read_bytes()).hexdigest()
                for p in older.iterdir()
                if p.is_file() and "sha256" not in p.name
            }
        )
    )
    with pytest.raises(CleansetError, match=r"no list of records \(croissant.jsonl\); expected .*: run dvc repro"):
        publish.run(older, tmp_path.with_name("out"), True, None)
