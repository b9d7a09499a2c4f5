import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cleanset
from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.image_lists import open_list, open_set_or_list, read_list
from cleanset.evaluation.measured_models import accuracy_card
from cleanset.evaluation.sets import EvaluationImage
from cleanset.images.codec import decode, pixels_sha256
from cleanset.plumbing.files import sha256
from tests.own_edition import KEYS
from tests.ten_images import LABELS, drawn_image, id_of, ten_images

LIST = f"""model,class_index,place,image_id,cropped
standard,278,1,{id_of(4)},no
standard,0,1,{id_of(8)},yes
other,281,1,{id_of(6)},no
"""


def test_a_list(edition: Edition, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(LIST)
    found = open_list(path, edition, "standard")
    digests = {number: sha256(ten_images()[id_of(number)]) for number in (4, 8)}
    assert found.items == [
        EvaluationImage(f"n01440764/{id_of(8)}.JPEG", 0, None, digests[8]),
        EvaluationImage(f"n02119789/{id_of(4)}.JPEG", 278, None, digests[4]),
    ]
    whole = pixels_sha256(decode(ten_images()[id_of(8)]))
    for read in (found.read, pickle.loads(pickle.dumps(found.read))):
        assert pixels_sha256(read(f"n01440764/{id_of(8)}.JPEG")) == whole
    assert (found.name, found.kind, found.checked) == ("list.csv (standard)", "list", str(edition.index))
    assert found.notes == ["1 of them is cropped in the list, and measured whole: it has no boxes"]
    assert found.classes == imagenet()


def test_a_list_by_wnid_with_tiers(edition: Edition, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    keys = imagenet().keys
    rows = [f"{id_of(n)},{keys[LABELS[n - 1]]},{tier}" for n, tier in ((1, "top5"), (4, "reserve"), (2, ""))]
    path.write_text("\n".join(["image_id,wnid,tier", *rows]) + "\n")
    found = open_list(path, edition, None)
    assert [(item.class_index, item.tier) for item in found.items] == [(0, "top5"), (0, None), (278, "reserve")]
    assert found.notes == []


def test_predictions_on_a_list_are_measured_in_python(edition: Edition, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(f"image_id,class_index\n{id_of(4)},278\n{id_of(8)},0\n")
    found = cleanset.evaluate(np.array([0, 281]), path, edition=edition.folder)
    assert (found.accuracy, found.images.kind) == (0.5, "list")
    path.write_text(LIST)
    for role, accuracy in (("standard", 0.5), ("other", 1.0)):
        predictions = np.array([0, 281] if role == "standard" else [281])
        assert cleanset.evaluate(predictions, path, edition=edition.folder, role=role).accuracy == accuracy
    with pytest.raises(CleansetError, match="role 'other': goes with a list"):
        cleanset.evaluate(np.array([0]), cleanset.load(edition.export("standard")), role="other")


def test_every_form_of_an_id_in_a_list(edition: Edition, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(f"image_id,class_index\n{id_of(4)}.JPEG,278\nval/{id_of(1)},278\n00000008,0\n")
    assert [item.file for item in open_list(path, edition, None).items] == [
        f"n01440764/{id_of(8)}.JPEG",
        f"n02119789/{id_of(1)}.JPEG",
        f"n02119789/{id_of(4)}.JPEG",
    ]


def test_the_devkits_numbers_are_a_column_of_their_own(tmp_path: Path) -> None:
    """Images 1 to 3 are of the wnids at places 65, 970 and 230, which the devkit calls 490, 361 and 171."""
    path = tmp_path / "list.csv"
    path.write_text("image_id,ILSVRC2012_ID\n1,490\n2,361\n3,171\n")
    assert [each.class_indices for each in read_list(path, None, imagenet())] == [(65,), (970,), (230,)]
    path.write_text("image_id,ILSVRC2012_ID,class_index\n1,490,66\n")
    with pytest.raises(
        CleansetError, match="line 2: ILSVRC2012_ID 490 is n01751748; expected one class in all columns"
    ):
        read_list(path, None, imagenet())
    path.write_text("image_id,ILSVRC2012_ID\n1,0\n")
    with pytest.raises(CleansetError, match="line 2, column ILSVRC2012_ID: '0'; expected a number from 1 to 1000"):
        read_list(path, None, imagenet())


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            "1,490\n2,361\n3,171\n",
            r"0 of 3 images, and of 3 if the numbers are the devkit's, 1 to 1000: call the column",
        ),
        (
            "1,66\n2,971\n3,1\n",
            "0 of 3 images, and of 2 if the numbers are places of the sorted wnids from 1: subtract",
        ),
    ],
)
def test_another_numbering_is_recognised_by_the_original_labels(rows: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(f"image_id,class_index\n{rows}")
    with pytest.raises(CleansetError, match=f"class_index is the original label of {problem}"):
        read_list(path, None, imagenet())


def test_a_list_of_own_images(own: Edition, tmp_path: Path) -> None:
    """By the keys of their classes, which may be digits."""
    path = tmp_path / "list.csv"
    path.write_text(f"image_id,class\n{KEYS[0]}/001.png,{KEYS[0]}\n{KEYS[2]}/000.png,{KEYS[2]}\n")
    found = open_set_or_list(str(path), own, ["images"])
    assert [item.class_index for item in found.items] == [0, 2]
    assert found.classes.keys == KEYS
    assert [found.read(item.file).size for item in found.items] == [(40, 40)] * 2


def test_a_role_goes_with_a_list_alone(edition: Edition) -> None:
    with pytest.raises(CleansetError, match=r"^--role other: goes with a list \(.csv\); standard is a set$"):
        open_set_or_list("standard", edition, ["standard"], "other")


@pytest.mark.parametrize(
    ("old", "new", "role", "message"),
    [
        ("class_index", "class", "standard", "line 2: no class; expected a column class_index or wnid: add one"),
        ("standard,278,1,", "standard,278,", "standard", "line 2: 4 cells; expected model,class_index,place,"),
        (id_of(4), id_of(77), "standard", f"line 2: '{id_of(77)}'; expected one of the 10 images of .*index.parquet"),
        (",278,", ",1000,", "standard", "line 2, column class_index: '1000'; expected a class index from 0"),
        (
            f"0,1,{id_of(8)}",
            f"278,1,{id_of(4)}",
            "standard",
            "line 3: .* a second time, after line 2; expected each image once",
        ),
        (",place,", ",left,", "standard", "line 2: a crop box; expected whole images: run cleanset rebuild"),
        (",place,", ",tier,", "standard", "line 2: tier '1'; expected top5, reserve, relaxed or none"),
        ("", "", "third", "no images of 'third'; it has 'other', 'standard'"),
        ("", "", None, "images of 'other', 'standard'; expected --role, in Python role=, with one of them"),
        (LIST, "image_id,wnid\n", None, "no images; expected at least one row"),
        (LIST, "wnid,image_id\nn01440764,a\n", "x", "no images of 'x'; it has no column model"),
        (LIST, 'wnid,image_id\n"a', None, "not CSV"),
    ],
)
def test_a_list_that_is_not_valid(
    old: str, new: str, role: str | None, message: str, edition: Edition, tmp_path: Path
) -> None:
    path = tmp_path / "list.csv"
    path.write_text(LIST.replace(old, new, 1) if old else LIST)
    with pytest.raises(CleansetError, match=f"^{path}.*{message}"):
        open_list(path, edition, role)


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder with six images in three folders, of names that are not wnids."""
    for place, file in enumerate(("axe/a.png", "axe/b.png", "bus/c.png", "bus/old/d.png", "cup/e.png", "cup/f.png")):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        drawn_image(40, 40, seed=place).save(tmp_path / file)
    return tmp_path


def test_a_table_from_folder_to_class(beside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As ObjectNet and ImageNet-9 need one; any of several classes is correct."""
    path = beside / "folders.csv"
    path.write_text("folder,class_index\naxe,3\nbus,779 654\n")
    found = open_list(path, Edition(beside), None)
    assert [(item.file, item.labels) for item in found.items] == [
        ("axe/a.png", (3,)),
        ("axe/b.png", (3,)),
        ("bus/c.png", (779, 654)),
        ("bus/old/d.png", (779, 654)),
    ]
    assert capsys.readouterr().err == f"2 of 3 folders next to {path} are in it\n"
    assert found.limits[1] == "2 of 4 images have several classes; any of them is correct"
    assert found.class_count == 3
    result = cleanset.evaluate(np.array([3, 4, 654, 779]), path, edition=beside)
    assert (result.accuracy, result.top5_accuracy) == (0.75, None)


def test_top5_with_several_labels(beside: Path) -> None:
    path = beside / "files.csv"
    path.write_text("file,wnid\naxe/a.png,n01440764 n01443537\nbus/c.png,n01484850\n")
    header = ["image", *(f"class_{rank}" for rank in range(1, 6))]
    rows = [["axe/a.png", 6, 7, 8, 1, 9], ["bus/c.png", 6, 7, 8, 1, 9]]
    result = cleanset.evaluate(pd.DataFrame(rows, columns=header), path, edition=beside)
    assert (result.accuracy, result.top5_accuracy) == (0.0, 0.5)


def test_the_card_knows_all_labels(beside: Path) -> None:
    path = beside / "files.csv"
    digests = set()
    for labels in ("3", "3 4"):
        path.write_text(f"file,class_index\naxe/a.png,{labels}\naxe/b.png,3\n")
        digests.add(accuracy_card(open_list(path, Edition(beside), None), []).images.sha256)
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("folder,class_index\nsaw,3\n", "line 2: 'saw'; expected a folder in"),
        ("folder,class_index\n../x,3\n", r"line 2: '\.\./x'; expected a folder in"),
        ("file,class_index\n../a.png,3\n", r"line 2: '\.\./a.png' as the name of an image"),
        ("file,class_index\naxe/a.png,3\naxe/a.png,4\n", "line 3: axe/a.png a second time; expected each image once"),
        ("folder,class_index,wnid\naxe,3 4,n01440764\n", "line 2: other numbers of classes in class_index, wnid"),
        ("name,class_index\naxe,3\n", "line 2: no image; expected a column image_id, file or folder"),
    ],
)
def test_a_table_of_files_that_is_not_valid(text: str, message: str, beside: Path) -> None:
    path = beside / "list.csv"
    path.write_text(text)
    with pytest.raises(CleansetError, match=message):
        open_list(path, Edition(beside), None)
