"""A set that changes in its place: what every library loads then is what is there, whatever it has loaded before.

One process loads six states of a folder one after the other, with one cache of `datasets` for all of them.
"""

import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from cleanset.classes import ClassTable, class_table, imagenet
from cleanset.plumbing.files import sha256
from cleanset.sets import verify
from cleanset.sets.archive import pack
from cleanset.sets.card import rebuilt_card
from cleanset.sets.delivered import make_class_folders
from cleanset.sets.description import Release
from cleanset.sets.folder import CARD, CROISSANT, read_release, write_descriptions
from cleanset.sets.manifest import Entry, file_name
from tests.ten_images import drawn_image

pytestmark = pytest.mark.slow

OWN = class_table([(key, key) for key in ("bird", "cat", "dog")], "here")

Drawn = tuple[int, int, int]
"""An image: its class, 0 to 2, its number, and the seed of its pixels."""

FIRST: list[Drawn] = [(0, 1, 1), (0, 2, 2), (1, 3, 3), (1, 4, 4), (2, 5, 5)]
STATES: dict[str, list[Drawn]] = {
    "first": FIRST,
    "an image replaced": [(0, 1, 11), *FIRST[1:]],
    "an image added": [*FIRST, (2, 6, 6)],
    "an image removed": FIRST[1:],
    "an image in another class": [FIRST[0], (1, 2, 2), *FIRST[2:]],
    "other ranks": [FIRST[1], FIRST[0], *FIRST[2:]],
}

PROGRAM = """
import csv, hashlib, json, shutil, sys
from pathlib import Path
import datasets, mlcroissant, numpy as np, pandas as pd, webdataset
from torchvision.datasets import ImageFolder
import cleanset

def seen(image):
    return hashlib.sha256(np.asarray(image.convert("RGB")).tobytes()).hexdigest()

here, keys = Path("set"), sys.argv[1].split(",")
found = []
for state in sys.argv[2:]:
    for name in ("set", "shards"):
        shutil.rmtree(name, ignore_errors=True)
        shutil.copytree(f"states/{state}/{name}", name)
    folders = ImageFolder(str(here))
    shards = webdataset.WebDataset("shards/standard-000000.tar", shardshuffle=False).decode("pil")
    records = mlcroissant.Dataset(jsonld=here / "croissant.json").records("images")
    table = pd.read_csv(here / "manifest.csv")
    of_project = cleanset.load(here)
    found.append({
        "datasets": [(row["label"], seen(row["image"])) for row in datasets.load_dataset(str(here))["validation"]],
        "streaming": [
            (row["label"], seen(row["image"])) for row in datasets.load_dataset(str(here), streaming=True)["validation"]
        ],
        "imagefolder": [
            (row["label"], seen(row["image"]))
            for row in datasets.load_dataset("imagefolder", data_dir=str(here), data_files={"validation": "**"})[
                "validation"
            ]
        ],
        "mlcroissant": [(row["images/class_index"], seen(row["images/image"])) for row in records],
        "webdataset": [(row["cls"], seen(row.get("jpg", row.get("png")))) for row in shards],
        "torchvision": [(keys.index(folders.classes[label]), seen(image)) for image, label in folders],
        "pandas": list(zip(table["class_index"].tolist(), table["pixels_sha256"].tolist())),
        "cleanset": [(label, seen(image)) for image, label, _ in of_project],
        "cleanset.table": [(row.class_index, row.pixels_sha256) for row in cleanset.table(here).itertuples()],
    })
print(json.dumps(found))
"""

IN_ORDER = {"datasets", "streaming", "pandas", "cleanset", "cleanset.table"}
"""Readers that give the images in the order of the manifest."""


def drawn_bytes(seed: int, *, as_jpeg: bool) -> bytes:
    """A drawn image as JPEG, or as PNG."""
    file = io.BytesIO()
    drawn_image(40, 40, seed=seed).save(file, format="JPEG" if as_jpeg else "PNG")
    return file.getvalue()


def pixels(data: bytes) -> str:
    return hashlib.sha256(np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).tobytes()).hexdigest()


def write_state(folder: Path, images: Sequence[Drawn], classes: ClassTable) -> list[tuple[int, str]]:
    """Write a set of these images into `folder`/set, and its shards; return label and SHA-256 of the pixels of each."""
    is_own = not classes.is_imagenet
    keys = [classes.keys[number] for number in range(3)]
    entries = []
    ranks = [0, 0, 0]
    make_class_folders(folder / "set", (keys[place] for place, _, _ in images))
    for place, number, seed in images:
        ranks[place] += 1
        data = drawn_bytes(seed, as_jpeg=not is_own)
        image_id = f"{keys[place]}/{number:03d}.png" if is_own else f"ILSVRC2012_val_{number:08d}"
        entry = Entry.checked(
            {
                "model": "standard",
                "wnid": keys[place],
                "class_index": place,
                "class_name": classes.labels[place],
                "rank": ranks[place],
                "image_id": image_id,
                "tier": "top5",
                "confidence": 0.5,
                "source_confidence": 0.5,
                "ilsvrc_class": place,
                "real_classes": (place,),
                "reviewers": 1,
                "crop": None,
                "file": file_name(keys[place], image_id, None, classes),
                "source_sha256": sha256(data),
                "source_check": "none",
                "file_sha256": sha256(data),
                "pixels_sha256": pixels(data),
            },
            classes,
        )
        (folder / "set" / entry.file).write_bytes(data)
        entries.append(entry)
    release = Release(classes=classes)
    write_descriptions(folder / "set", entries, release, {CARD: rebuilt_card(entries, release)})
    assert verify.run(folder / "set", decode=True).problems == []
    pack(folder / "set", folder / "shards", 100)
    in_order = sorted(entries, key=lambda entry: (entry.class_index, entry.rank))
    return [(entry.class_index, entry.pixels_sha256) for entry in in_order]


@pytest.mark.parametrize(
    "classes",
    [
        pytest.param(imagenet(), id="imagenet", marks=pytest.mark.exhaustive),
        pytest.param(OWN, id="own", marks=pytest.mark.long),
    ],
)
def test_every_library_loads_what_is_there(classes: ClassTable, tmp_path: Path) -> None:
    expected = []
    for number, images in enumerate(STATES.values()):
        (tmp_path / "states" / str(number)).mkdir(parents=True)
        expected.append(write_state(tmp_path / "states" / str(number), images, classes))
    environment = {
        "HF_DATASETS_OFFLINE": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "hf"),
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    }
    command = [sys.executable, "-c", PROGRAM, ",".join(classes.keys[:3]), *map(str, range(len(STATES)))]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for state, by_reader, rows in zip(STATES, found, expected, strict=True):
        for reader, read in by_reader.items():
            pairs = [tuple(pair) for pair in read]
            assert (pairs if reader in IN_ORDER else sorted(pairs)) == (rows if reader in IN_ORDER else sorted(rows)), (
                f"{state}, {reader}"
            )


def test_what_libraries_cache_by_differs_with_the_manifest(tmp_path: Path) -> None:
    """The configuration in the card, by which `datasets` caches, and Croissant's version."""
    keys = set()
    for number, images in enumerate(STATES.values()):
        (tmp_path / str(number)).mkdir()
        write_state(tmp_path / str(number), images, OWN)
        folder = tmp_path / str(number) / "set"
        digest = sha256((folder / "manifest.csv").read_bytes())
        matter = yaml.safe_load((folder / CARD).read_text().split("---\n")[1])
        described = json.loads((folder / CROISSANT).read_text())
        assert matter["configs"][0]["description"] == f"manifest {digest}"
        assert described["version"] == f"0.0.0+manifest.{digest[:16]}"
        assert read_release(folder).version == "0.0.0"
        keys.add(digest)
    assert len(keys) == len(STATES)
