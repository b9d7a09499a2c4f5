"""The one reader of image ids: every form of them, your own ids, lists, and names of files made from an image."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cleanset
from cleanset.classes import class_table, imagenet
from cleanset.errors import CleansetError, InputError
from cleanset.image_ids import ImageNames, check_matched, is_image_id, listed_ids, parse_image_id

PACKAGE = Path(cleanset.__file__).parent
ID = "ILSVRC2012_val_00047683"
OWN = class_table([("pond", "pond"), ("lake", "lake")], "here")


@pytest.mark.parametrize(
    "text",
    [
        ID,
        f"{ID}.JPEG",
        f"{ID}.jpg",
        f"{ID}.png",
        f"val/{ID}",
        f"val/n02281406/{ID}.JPEG",
        f"/data/imagenet/val/{ID}.JPEG",
        f"{ID}_n02281406.JPEG",
        "00047683",
        "47683",
    ],
)
def test_every_form_of_an_id(text: str) -> None:
    assert parse_image_id(text, imagenet()) == ID
    assert is_image_id(text, imagenet()) == (text == ID)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "50001",
        "000047683",
        "val/47683",
        "ILSVRC2012_val_00060000",
        "ILSVRC2012_val_47683",
        "ILSVRC2012_test_00000001",
        f"x{ID}",
        f"{ID}\n",
        f"{ID}.gif",
        "cat.jpg",
        "\N{ARABIC-INDIC DIGIT ONE}",
    ],
)
def test_what_is_no_image(text: str) -> None:
    assert parse_image_id(text, imagenet()) is None


def test_the_id_of_your_own_image_is_its_path() -> None:
    assert parse_image_id("pond/T0047.png", OWN) == "pond/T0047.png"
    for text in ("pond/T0047", "../T0047.png", "", "pond\\T0047.png"):
        assert parse_image_id(text, OWN) is None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ((ID, "60000"), r"line 2: '60000'; expected an image id such as ILSVRC2012_val_00000001, 1 to 50,000"),
        ((ID, "47683"), rf"line 2: {ID} a second time, after line 1; expected each image once"),
        (("47684",), r"line 1: '47684'; expected one of the 1 images of here"),
    ],
)
def test_a_list_that_is_not_valid(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(CleansetError, match=f"^{message}$"):
        listed_ids(((f"line {place}", text) for place, text in enumerate(texts, start=1)), imagenet(), {ID}, "here")


def test_how_many_were_matched(capsys: pytest.CaptureFixture[str]) -> None:
    check_matched(3, 3, "images", "some")
    check_matched(12, 500, "images are in list.csv", "some")
    assert capsys.readouterr().err == "12 of 500 images are in list.csv\n"
    with pytest.raises(InputError, match=r"^0 of 500 images are in list\.csv; expected some$"):
        check_matched(0, 500, "images are in list.csv", "some")


def test_names_of_files_made_from_an_image() -> None:
    of_imagenet = ImageNames((), imagenet())
    assert of_imagenet.find(f"masks/{ID}.png") == ID
    assert of_imagenet.find(f"ILSVRC2012_val_00000001_to_{ID}_adv.png") == ID
    assert of_imagenet.find("7.png") is None
    own = ImageNames(["pond/1.jpg", "lake/1.jpg", "lake/2.jpg"], OWN, {"lake/a__2.crop.png": "lake/2.jpg"})
    found = {
        name: own.find(name) for name in ("pond/1.png", "pgd/lake/1.png", "2.json", "a__2.png", "1.png", "sea/2.png")
    }
    assert found == {
        "pond/1.png": "pond/1.jpg",
        "pgd/lake/1.png": "lake/1.jpg",
        "2.json": "lake/2.jpg",
        "a__2.png": "lake/2.jpg",
        "1.png": None,
        "sea/2.png": None,
    }


def _texts(path: Path) -> Iterator[str]:
    """The texts in a module but for docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_no_other_module_knows_the_form_of_ids() -> None:
    """A second reader would begin with the prefix, or with eight digits; messages may show one whole id."""
    others = {
        path.relative_to(PACKAGE).as_posix(): text
        for path in PACKAGE.rglob("*.py")
        for text in _texts(path)
        if "ILSVRC2012_val_" in text.replace("ILSVRC2012_val_00000001", "")
        or any(each in text for each in ("[0-9]{8}", "\\d{8}", "08d"))
    }
    assert others.keys() == {"image_ids.py", "classes.py"}
    assert others["classes.py"] == "n[0-9]{8}"
