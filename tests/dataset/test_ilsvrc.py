import json
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from scipy.io import loadmat

from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import class_of_ilsvrc_id, timm_info
from cleanset.dataset.labels import read_original_labels, read_reassessed
from cleanset.image_ids import image_id, image_id_in, image_number, parse_image_name
from tests.ten_images import DEVKIT


@pytest.mark.parametrize(
    ("ilsvrc_id", "wnid", "class_index"),
    [
        (1, "n02119789", 278),  # kit fox
        (2, "n02100735", 212),  # English setter
        (3, "n02110185", 250),  # Siberian husky
        (100, "n02489166", 376),  # proboscis monkey
        (490, "n01751748", 65),  # sea snake, the label of image 1
        (500, "n01644373", 31),  # tree frog
        (999, "n07831146", 959),  # carbonara
        (1000, "n03255030", 543),  # dumbbell
    ],
)
def test_real_devkit_numbers(ilsvrc_id: int, wnid: str, class_index: int) -> None:
    assert class_of_ilsvrc_id()[ilsvrc_id] == class_index
    assert imagenet().keys[class_index] == wnid
    assert imagenet().indices[wnid] == class_index


def test_ilsvrc_ids_are_a_bijection() -> None:
    assert sorted(class_of_ilsvrc_id()) == list(range(1, 1001))
    assert sorted(class_of_ilsvrc_id().values()) == list(range(1000))


def test_ilsvrc_ids_are_those_of_the_devkit(real: Path, tmp_path: Path) -> None:
    """The column of classes.tsv against meta.mat, read by another library."""
    with tarfile.open(real / DEVKIT) as archive:
        file = archive.extractfile("ILSVRC2012_devkit_t12/data/meta.mat")
        assert file is not None
        (tmp_path / "meta.mat").write_bytes(file.read())
    synsets = loadmat(str(tmp_path / "meta.mat"), squeeze_me=True)["synsets"]
    leaves = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in synsets if not row["num_children"]}
    assert {number: imagenet().keys[index] for number, index in class_of_ilsvrc_id().items()} == leaves


def test_class_indices_are_the_sorted_order() -> None:
    assert list(imagenet().keys) == sorted(imagenet().keys)
    assert (len(imagenet().keys), imagenet().keys[0], imagenet().keys[999]) == (1000, "n01440764", "n15075141")


@pytest.mark.slow
def test_classes_are_those_of_timm() -> None:
    """classes.tsv against the tables that it was made from."""
    pytest.importorskip("timm")
    names, glosses = (
        dict(
            line.split("\t", 1) for line in timm_info(f"imagenet_synset_to_{name}.txt").read_text("utf-8").splitlines()
        )
        for name in ("lemma", "definition")
    )
    assert list(imagenet().keys) == timm_info("imagenet_synsets.txt").read_text().split()
    assert [each.names for each in imagenet().names] == [names[wnid] for wnid in imagenet().keys]
    assert [each.gloss for each in imagenet().names] == [glosses[wnid] for wnid in imagenet().keys]
    assert imagenet().names[0].names == "tench, Tinca tinca"


def test_real_ground_truth(real: Path) -> None:
    labels, _ = read_original_labels(real / DEVKIT)
    assert len(labels) == 50_000
    assert set(Counter(labels.values()).values()) == {50}
    first = [labels[image_id(number)] for number in range(1, 6)]
    assert [imagenet().keys[index] for index in first] == [
        "n01751748",
        "n09193705",
        "n02105855",
        "n04263257",
        "n03125729",
    ]
    assert first == [65, 970, 230, 809, 516]


def test_reassessed_list_of_timm() -> None:
    lists = read_reassessed(timm_info("imagenet_real_labels.json").read_text(), "real.json")
    assert len(lists) == 50_000
    lengths = Counter(map(len, lists))
    assert lengths == {0: 3163, 1: 39394, 2: 5408, 3: 1319, 4: 411, 5: 161, 6: 88, 7: 41, 8: 13, 9: 2}
    assert sum(map(len, lists)) == 57_553
    assert lists[:5] == [[], [795, 970], [230, 231], [809], [516, 850]]
    assert lists[-1] == [355]


def test_real_labels_and_reassessed_labels_meet_on_the_same_images(real: Path) -> None:
    """Numbers computed apart from this project; a shift by one image or a mixed-up numbering breaks them."""
    original, _ = read_original_labels(real / DEVKIT)
    lists = json.loads(timm_info("imagenet_real_labels.json").read_text())
    pairs = [(original[image_id(number)], labels) for number, labels in enumerate(lists, start=1)]
    assert sum(labels == [label] for label, labels in pairs) == 35_716
    assert sum(label in labels for label, labels in pairs) == 42_164


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("ILSVRC2012_val_00000001.JPEG", ("ILSVRC2012_val_00000001", None)),
        ("ILSVRC2012_val_00000001_n01751748.JPEG", ("ILSVRC2012_val_00000001", "n01751748")),
        ("ILSVRC2012_val_00000000.JPEG", None),
        ("ILSVRC2012_val_0000001.JPEG", None),
        ("ILSVRC2012_val_00000001.jpg", ("ILSVRC2012_val_00000001", None)),
        ("ILSVRC2012_val_00000001.png", None),
        ("ILSVRC2012_val_00000001.JPEG\n", None),
        ("ILSVRC2012_val_0000000\N{ARABIC-INDIC DIGIT ONE}.JPEG", None),
        ("ILSVRC2012_test_00000001.JPEG", None),
        ("xILSVRC2012_val_00000001.JPEG", None),
    ],
)
def test_image_names(name: str, parsed: tuple[str, str | None] | None) -> None:
    assert parse_image_name(name) == parsed


def test_image_id_and_number() -> None:
    assert image_id(50_000) == "ILSVRC2012_val_00050000"
    assert image_number("ILSVRC2012_val_00050000") == 50_000


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("n01440764/ILSVRC2012_val_00000001.JPEG", "ILSVRC2012_val_00000001"),
        ("n01440764/ILSVRC2012_val_00000008.png", "ILSVRC2012_val_00000008"),
        ("0/ILSVRC2012_val_00000001_n01751748.JPEG", "ILSVRC2012_val_00000001"),
        ("n01440764/n01440764_18.JPEG", None),
    ],
)
def test_ids_of_files(file: str, expected: str | None) -> None:
    assert image_id_in(file) == expected
