"""The tools that a researcher has load an export unchanged: torchvision, datasets, mlcroissant."""

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
from mlcroissant._src.core import constants
from PIL import Image, ImageOps
from rdflib import Graph
from torchvision.datasets import ImageFolder

from cleanset.classes import imagenet
from cleanset.plumbing.files import sha256_of
from cleanset.sets.catalogues import croissant_json
from cleanset.sets.description import Release
from tests.sets.conftest import FILES
from tests.sets.entries import WHOLE
from tests.sets.test_verify import rows

pytestmark = pytest.mark.slow

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
    """As image folder with all of its files, and as what the data card says it is: then with the names of classes."""
    split, names, table = loaded[way]
    assert names == (None if way == 0 else list(imagenet().labels))
    assert split == "validation"
    expected = [row["pixels_sha256"] for row in rows(export_folder)]
    with Image.open(export_folder / FILES[4]) as turned:  # alone of all these tools, it applies an EXIF orientation
        expected[4] = pixels(ImageOps.exif_transpose(turned))
    assert [each["seen"] for each in table] == expected
    for found, row in zip(table, rows(export_folder), strict=True):
        assert set(found) == set(row) - {"file", "class_index"} | {"seen", "label"}
        assert [found[name] for name in ("image_id", "wnid", "class_name", "tier", "pixels_sha256")] == [
            row[name] for name in ("image_id", "wnid", "class_name", "tier", "pixels_sha256")
        ]
        assert [found["label"], found["rank"]] == [int(row["class_index"]), int(row["rank"])]
        assert found["left"] == (int(row["left"]) if row["left"] else None)


def test_datasets_with_the_classes_alone(loaded: list[Any]) -> None:
    """Without data_files it splits by the names of the files, in which it finds "val", and takes no metadata."""
    split, names, table = loaded[2]
    assert (split, names) == ("validation", WNIDS)
    assert sorted(each["label"] for each in table) == [0, 0, 1, 1, 1, 2]


def test_croissant_is_valid(export_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        metadata = mlcroissant.Dataset(jsonld=export_folder / "croissant.json").metadata
    assert (metadata.ctx.issues.errors, metadata.ctx.issues.warnings, caplog.records) == (set(), set(), [])
    assert str(metadata.ctx.conforms_to.value) == "http://mlcommons.org/croissant/1.1"
    digest = sha256_of(export_folder / "manifest.csv")
    assert metadata.version == f"1.2.3+manifest.{digest[:16]}"
    assert str(metadata.date_published)[:10] == "2026-01-31"
    assert metadata.name == "cleanset-standard"
    assert metadata.license == ["https://www.image-net.org/download.php"]
    assert "Russakovsky" in str(metadata.cite_as)
    assert "research and education" in json.loads((export_folder / "croissant.json").read_text())["conditionsOfAccess"]


def test_croissant_tells_how_it_was_annotated(export_folder: Path) -> None:
    """As mlcroissant reads the properties of Croissant RAI 1.0; each has a value that this set's facts give."""
    described = json.loads((export_folder / "croissant.json").read_text())
    assert described["conformsTo"] == ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
    known = {
        str(each).rpartition("/")[2] for name, each in vars(constants).items() if name.startswith("ML_COMMONS_RAI")
    }
    found = {name.removeprefix("rai:") for name in described if name.startswith("rai:")}
    # the name that the specification has, where mlcroissant has another
    assert found - known == set()
    metadata = mlcroissant.Dataset(jsonld=export_folder / "croissant.json").metadata
    policy = (
        "One reviewer is enough, and all who reviewed an image must agree; the board overrules; an image that nobody "
        "has reviewed is left out."
    )
    assert metadata.data_annotation_protocol == [
        "For each image and class a reviewer gives a verdict: clean; crop, with a box; reject, with a reason; or "
        f"unsure. {policy}"
    ]
    assert metadata.annotations_per_item == (
        "Images by their number of reviewers, the board not counted: 4 with 0, 1 with 1, 1 with 2."
    )
    assert metadata.annotator_demographics == ["Reviewers: 2 (ann, bob). Nothing else is recorded about them."]
    assert metadata.data_collection_missing_data is not None
    assert metadata.data_collection_missing_data.startswith("Classes with images: 3 of 1,000.")
    assert metadata.data_preprocessing_protocol == [
        "Images that are cropped, and PNG: 2. The others are the original files, byte for byte."
    ]
    assert metadata.data_biases is not None
    assert metadata.data_biases[0].startswith("The images are easy ones, chosen by the confidence of `standard`")
    assert len(metadata.data_biases) == 4
    assert metadata.data_limitations is not None
    assert "Cropped images differ" in metadata.data_limitations[-1]
    for value in (metadata.data_annotation_platform, metadata.personal_sensitive_information, metadata.data_use_cases):
        assert value
    assert "ILSVRC2012_img_val.tar" in str(metadata.data_collection_raw_data)


def test_croissant_of_a_set_that_nobody_reviewed() -> None:
    """And that is known by its manifest alone."""
    described = json.loads(
        croissant_json([WHOLE.model_copy(update={"reviewers": 0})], "0" * 64, Release(classes=imagenet()))
    )
    assert described["rai:annotatorDemographics"] == ["None."]
    assert described["rai:dataAnnotationPlatform"] == ["None: nobody has reviewed these images."]
    assert described["rai:dataAnnotationProtocol"].endswith("How the verdicts became one is not known.")
    assert len(described["rai:dataLimitations"]) == 2
    of_scooter = json.loads(croissant_json([WHOLE], "0" * 64, Release(reviewers=("scooter",), classes=imagenet())))
    assert of_scooter["rai:dataAnnotationPlatform"][1:] == ["Notes that the authors of SCOOTER published."]


def test_croissant_tells_the_provenance_of_each_file(export_folder: Path) -> None:
    """By an RDF library that knows nothing of Croissant: PROV-O, of the files and of each record."""
    graph = Graph().parse(export_folder / "croissant.json", format="json-ld")
    rows = graph.query(
        """
        PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX cr: <http://mlcommons.org/croissant/>
        PREFIX sc: <https://schema.org/>
        SELECT ?archive ?label ?description ?person WHERE {
            ?files a cr:FileSet; prov:wasDerivedFrom/prov:label ?archive; prov:wasGeneratedBy ?activity.
            ?activity prov:label ?label; sc:description ?description.
            OPTIONAL { ?activity prov:wasAssociatedWith/prov:label ?person }
        }
        """
    )
    found = {tuple(str(value)[:19] for value in row) for row in rows}
    assert found == {
        ("ILSVRC2012_img_val.", "Review by people", "One reviewer is eno", "ann"),
        ("ILSVRC2012_img_val.", "Review by people", "One reviewer is eno", "bob"),
        ("ILSVRC2012_img_val.", "Crop", "Where a line of the", "None"),
    }
    fields = {
        field["name"]: field
        for field in json.loads((export_folder / "croissant.json").read_text())["recordSet"][0]["field"]
    }
    assert fields["image_id"]["equivalentProperty"] == "prov:wasDerivedFrom"
    assert fields["class_name"]["dataType"] == ["sc:Text", "cr:Label"]


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
