"""Own images, as people have them: what is read, and what is refused in one line."""

import io
import os
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from cleanset.classes import class_table, parse_class_table
from cleanset.cli import app
from cleanset.dataset.folder import LabelledImages, exported_name, read_images
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.codec import inspect
from cleanset.stages.preprocess import measure, read_inputs


def picture(kind: str = "JPEG", mode: str = "RGB", seed: int = 0, **options: object) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (24, 32, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(out, format=kind, **options)
    return out.getvalue()


def folder_of(at: Path, *names: str) -> Path:
    for seed, name in enumerate(names):
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(picture("PNG" if name.lower().endswith("png") else "JPEG", seed=seed))
    return at


TWO = ("cat/ISIC_0001.jpg", "dög (1)/b ild.png", "dög (1)/more/x.JPEG")


def test_folders_of_classes(tmp_path: Path) -> None:
    folder_of(tmp_path, *TWO, "cat/.DS_Store", "cat/Thumbs.db")
    found = read_images(tmp_path, None, None)
    assert found.classes.keys == ("cat", "dög (1)")
    assert found.class_of == {"cat/ISIC_0001.jpg": 0, "dög (1)/b ild.png": 1, "dög (1)/more/x.JPEG": 1}
    assert found.texts == {"classes": "class\tname\tindex\ncat\tcat\t0\ndög (1)\tdög (1)\t1\n"}
    facts = measure(found.locations, ("JPEG", "PNG"))
    assert facts[["image_id", "width", "height", "mode"]].to_numpy().tolist() == [[n, 32, 24, "RGB"] for n in TWO]
    assert exported_name("dög (1)", "dög (1)/more/x.JPEG") == "dög (1)/more__x.JPEG"


def test_a_table_of_labels_with_groups_and_names(tmp_path: Path) -> None:
    folder_of(tmp_path / "all", "ISIC_0001.jpg", "ISIC_0002.jpg", "ISIC_0003.jpg", "not listed.jpg")
    labels, names = tmp_path / "labels.csv", tmp_path / "names.csv"
    labels.write_text(
        "\ufefffile,class,group\nISIC_0002.jpg,nv,p1\nISIC_0001.jpg,mel,p2\nISIC_0003.jpg,nv,p1\n", encoding="utf-8"
    )
    names.write_text("class,name\nmel,melanoma\nnv,naevus\n", encoding="utf-8")
    found = read_images(tmp_path / "all", labels, names)
    assert list(found.class_of.items()) == [("ISIC_0001.jpg", 0), ("ISIC_0002.jpg", 1), ("ISIC_0003.jpg", 1)]
    assert [(each.key, each.name) for each in found.classes.names] == [("mel", "melanoma"), ("nv", "naevus")]
    assert found.texts["groups"] == "image_id,group\nISIC_0001.jpg,p2\nISIC_0002.jpg,p1\nISIC_0003.jpg,p1\n"


Capture = pytest.CaptureFixture[str]


def labelled(tmp_path: Path, labels: str) -> LabelledImages:
    """The images 1.jpg to 8.jpg with a table of labels."""
    folder_of(tmp_path / "all", *(f"{number}.jpg" for number in range(1, 9)))
    (tmp_path / "labels.csv").write_bytes(labels.encode())
    return read_images(tmp_path / "all", tmp_path / "labels.csv", None)


def test_texts_that_are_one_key(tmp_path: Path, capsys: Capture) -> None:
    """Blanks and Unicode forms do not count; classes of one group do not divide it; case counts, with a notice."""
    rows = [
        "1.jpg,cat,André 1", "2.jpg, cat,Andre\u0301 1", "3.jpg,cat , André  1", "4.jpg,dog,\tAndré\xa01 ",
        "5.jpg,do\u0308g,andré 1", "6.jpg,dög,p2", "7.jpg,ripe  pear,P2", "8.jpg,ripe pear,q",
    ]  # fmt: skip
    found = labelled(tmp_path, "\n".join(["file,class,group", *rows, ""]))
    assert found.classes.keys == ("cat", "dog", "dög", "ripe pear")
    assert list(found.class_of.values()) == [0, 0, 0, 1, 2, 2, 3, 3]
    assert list(found.group_of.values()) == [*["André 1"] * 4, "andré 1", "p2", "P2", "q"]
    assert capsys.readouterr().err == (
        f"{tmp_path}/labels.csv: groups that differ by case alone, and count as different: André 1 and andré 1, "
        "P2 and p2\n"
    )


def test_groups_that_are_nearly_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    groups = [
        "p-1",
        "p\u20131",
        "O'Neil",
        "O\u2019Neil",
        "o'neil",
        "001",
        "1",
        "10",
        "p-2",
        "x 0",
        "x 00",
        "m-12",
        "m1-2",
    ]
    folder_of(tmp_path, *(f"{number % 2}/{number}.jpg" for number in range(len(groups))))
    table = tmp_path / "labels.csv"

    def notices(chosen: list[str]) -> list[str]:
        rows = (f"{number % 2}/{number}.jpg,{number % 2},{group}\n" for number, group in enumerate(chosen))
        table.write_text("file,class,group\n" + "".join(rows), encoding="utf-8")
        read_images(tmp_path, table, None)
        return capsys.readouterr().err.splitlines()

    assert notices(groups) == [
        f"{table}: groups that differ by case alone, and count as different: O'Neil and o'neil",
        f"{table}: groups that differ by the kind of dash, the apostrophe or leading zeros alone, and count as "
        "different: 001 and 1, O'Neil and O\u2019Neil, p-1 and p\u20131, x 0 and x 00",
    ]
    assert notices([f"p-{number}" for number in range(len(groups))]) == []
    assert len(notices(groups)) == 2


def test_rows_that_are_moved_against_the_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said of the classes that do not fit, before and after a correction, and not of other folders."""
    files = [f"{key}/{place}.jpg" for key in ("cat", "dog", "fox") for place in range(4)]
    folder_of(tmp_path, *files, "misc/cat/9.jpg", "misc/8.jpg")
    table = tmp_path / "labels.csv"

    def notices(classes: list[str]) -> str:
        rows = zip([*files, "misc/cat/9.jpg", "misc/8.jpg"], classes, strict=True)
        table.write_text("file,class\n" + "".join(f"{file},{key}\n" for file, key in rows))
        read_images(tmp_path, table, None)
        return capsys.readouterr().err

    right = [file.partition("/")[0] for file in files]
    said = f"{table}: gives {{}} of 13 images in folders of classes another class than the folder's: {{}}; the table "
    moved = [*right[1:], "fox", "cat", "dog"]
    expected = said.format(2, "cat/3.jpg (dog), dog/3.jpg (fox)")
    assert notices(moved) == expected + "is used: check whether its rows are shifted\n"
    assert notices([*right, "cat", "dog"]) == ""
    of_three = said.format(3, "cat/3.jpg (dog), dog/3.jpg (fox), misc/cat/9.jpg (dog)")
    assert notices([*right[1:], "fox", "dog", "dog"]) == of_three + "is used: check whether its rows are shifted\n"


def test_a_table_with_names_in_another_unicode_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Mac's names are decomposed; the images are found by either form, and known by the file system's."""
    composed, decomposed = "fu\u00df/b\u00e4r.jpg", "fu\u00df/ba\u0308r.jpg"
    folder_of(tmp_path, decomposed, "a/1.jpg", "a/2.jpg", "a/3.jpg", "a/4.jpg", "a/5.jpg")
    table = tmp_path / "labels.csv"
    for form in (composed, decomposed, composed):
        table.write_text(f"file,class,group\n{form},bear,p1\na/1.jpg,a,p2\n", encoding="utf-8")
        found = read_images(tmp_path, table, None)
        assert found.class_of == {"a/1.jpg": 0, decomposed: 1}
        assert found.group_of == {"a/1.jpg": "p2", decomposed: "p1"}
        assert capsys.readouterr().err == (
            f"{table}: names 2 of the 6 images in {tmp_path}; left out: a/2.jpg, a/3.jpg, a/4.jpg, a/5.jpg\n"
        )
    table.write_text(f"file,class\n{composed},bear\na/1.jpg,a\n{decomposed},a\n", encoding="utf-8")
    with pytest.raises(CleansetError, match="a second time, in another Unicode form; expected each image once"):
        read_images(tmp_path, table, None)
    # a file whose name is found in no Unicode form is missing; the message counts no images
    table.write_text(f"file,class\n{composed},bear\na/6.jpg,a\n", encoding="utf-8")
    with pytest.raises(CleansetError, match=r"labels\.csv: not in .*: a/6\.jpg; put them there, or correct the table$"):
        read_images(tmp_path, table, None)
    assert capsys.readouterr().err == ""
    # a file of the other form that came later is the one that is meant
    folder_of(tmp_path, composed)
    table.write_text(f"file,class\n{composed},bear\na/1.jpg,a\n", encoding="utf-8")
    assert list(read_images(tmp_path, table, None).class_of) == ["a/1.jpg", composed]


def test_names_and_scores_in_another_unicode_form(tmp_path: Path) -> None:
    images = folder_of(tmp_path / "images", "do\u0308g/1.jpg", "cat/1.jpg")
    (tmp_path / "names.csv").write_text("class,name\ndög, der  Hund\n cat,Katze\n", encoding="utf-8")
    (tmp_path / "scores.csv").write_text(
        "file,cat ,do\u0308g\ndo\u0308g/1.jpg,.2,.8\ncat/1.jpg,.7,.3\n", encoding="utf-8"
    )
    options = [f"--{name}={tmp_path / name}.csv" for name in ("names", "scores")]
    assert_refused(tmp_path, ["--images", str(images), *options], "")
    found = read_images(images, None, tmp_path / "names.csv")
    assert [(each.key, each.name) for each in found.classes.names] == [("cat", "Katze"), ("dög", "der Hund")]
    assert exported_name("dög", "do\u0308g/1.jpg") == "dög/1.jpg"
    assert exported_name("do\u0308g", "do\u0308g/1.jpg") == "do\u0308g/1.jpg"  # of a set made before


@pytest.mark.parametrize(
    "text",
    [
        '"file","class","group"\n"1.jpg","cat","p"\n"2.jpg","dog","p"\n',
        "file,class,group\r1.jpg,cat,p\r2.jpg,dog,p\r",
        "\ufefffile,class,group\r\n1.jpg,cat,p\r\n2.jpg,dog,p\r\n",
    ],
)
def test_tables_as_spreadsheets_write_them(tmp_path: Path, capsys: Capture, text: str) -> None:
    found = labelled(tmp_path, text)
    assert (found.class_of, found.group_of) == ({"1.jpg": 0, "2.jpg": 1}, {"1.jpg": "p", "2.jpg": "p"})
    left = "3.jpg, 4.jpg, 5.jpg, 6.jpg, 7.jpg, 8.jpg"
    notice = f"{tmp_path}/labels.csv: names 2 of the 8 images in {tmp_path}/all; left out: {left}\n"
    assert capsys.readouterr().err == notice


def test_what_systems_leave_is_no_class_and_no_image(tmp_path: Path, capsys: Capture) -> None:
    thumbnails = [f"{name}/a.jpg" for name in ("@eaDir", "__MACOSX", "#recycle", "@Recycle", "$RECYCLE.BIN", ".cache")]
    inner = (
        "cat/@eaDir/ISIC_0001.jpg/SYNOPHOTO_THUMB_SM.jpg",
        "cat/SYNOPHOTO_THUMB_M.jpg",
        "cat/System Volume Information/x.jpg",
        "cat/@__thumb/x.jpg",
        "cat/#SynoRecycle/x.jpg",
    )
    folder_of(tmp_path, *TWO, *thumbnails, *inner, "cat/Icon\r", "cat/ehthumbs.db")
    assert list(read_images(tmp_path, None, None).class_of) == list(TWO)
    table = tmp_path / "labels.csv"
    table.write_text("file,class\n" + "".join(f"{name},{name[0]}\n" for name in TWO))
    read_images(tmp_path, table, None)
    assert capsys.readouterr().err == ""


def test_all_wrong_names_are_in_one_line(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    folder_of(photos, *TWO, "cat/a\u200bb.jpg", "cat/b.jpg ", "cat/1.gif", "cat/2.webp", "a.txt", "b.txt")
    for key in ("emu", "fox"):
        (photos / key).mkdir()
    begun = f"{photos}: "
    zero = r"'cat/a\u200bb.jpg' with the invisible ZERO WIDTH SPACE"
    for names, message in (
        ("a.txt b.txt", "a.txt, b.txt: next to the folders of the classes"),
        ("emu fox", "emu, fox: a class without images"),
        ("cat/a\u200bb.jpg,cat/b.jpg ", f"{zero}, 'cat/b.jpg ' with a blank at an end as the name of an image"),
        ("cat/1.gif cat/2.webp", "'cat/1.gif', 'cat/2.webp': not the name of an image; expected .jpeg, .jpg, .png"),
    ):
        assert_refused(tmp_path, ["--images", str(photos)], begun + message)
        for name in names.split("," if "," in names else " "):
            (photos / name).rmdir() if (photos / name).is_dir() else (photos / name).unlink()
    assert len(read_images(photos, None, None).class_of) == len(TWO)


def test_splits_are_no_classes(tmp_path: Path) -> None:
    """Refused whatever is in them, read as classes if the params say they are, and refused again without it."""
    photos = tmp_path / "photos"
    folder_of(photos, *(f"{split}/{key}/1.jpg" for split in ("Train", "test", "val-2") for key in ("cat", "dog")))
    given = ["--images", str(photos)]
    message = (
        f"{photos}: Train, test, val-2: the splits of a dataset by their names, not classes; expected a folder for "
        f"each class: name {photos}/Train, give a table of labels, or, if these are classes, say --classes-are-folders"
    )
    assert_refused(tmp_path, given, message)
    # a class more than another split has
    written("test/fox/1.jpg", picture(seed=9))(photos)
    assert_refused(tmp_path, given, message)
    edition = tmp_path / "edition"
    result = CliRunner().invoke(app, ["edition", str(edition), *given, "--classes-are-folders"])
    assert "7 images of 3 classes (Train, test, val-2); run there" in result.output
    assert (
        "at most 3 images of a class (export.images_per_class in params.yaml), and none before a review"
        in result.output
    )
    # the edition knows it afterwards, however often it reads the images
    accepted = CliRunner().invoke(app, ["edition", str(edition), "--accept"])
    assert accepted.output == "no image has changed\n"
    assert list(found_by_preprocess(edition)) == ["Train", "test", "val-2"]
    written("val-2/cat/2.jpg", picture(seed=10))(photos)
    assert "1 additional" in CliRunner().invoke(app, ["edition", str(edition), "--accept"]).output
    params = edition / "params.yaml"
    params.write_text(re.sub("  classes_are_folders: .*\n", "", params.read_text()))
    with pytest.raises(CleansetError, match="^" + re.escape(message.replace(str(photos), f"{edition}/../photos"))):
        found_by_preprocess(edition)


def found_by_preprocess(edition: Path) -> tuple[str, ...]:
    _, found = read_inputs(Edition(edition))
    return found.classes.keys


@pytest.mark.parametrize(
    "files",
    [
        "train/cat/1, train/dog/1, train/fox/1, test/cat/1, test/dog/1",
        "train/cat/1, train/dog/1, test/1, test/2",
        "seg_train/seg_train/sea/1, seg_test/seg_test/sea/1, seg_pred/seg_pred/1",
        "train_images/1, test_images/1",
        "Training Data/cat/1, Test Data/cat/1",
        "train/NORMAL/1, test/NORMAL/1, val/NORMAL/1, chest_xray/train/NORMAL/1, chest_xray/test/NORMAL/1",
        "fold1/cat/1, fold2/cat/1, fold3/dog/1",
        "Fold_01/1, Fold_02/1",
        "query/0001/1, gallery/0001/1, bounding_box_train/0002/1",
        "bounding_box_train/1, bounding_box_test/1, query/1",
        "TrainSet/cat/1, ValSet/cat/1",
        "trainA/1, trainB/1, testA/1, testB/1",
        "TRAINING/cat/1, HOLD-OUT/cat/1",
        "train2017/cat/1, val2017/cat/1",
        "training/cat/1, validation/cat/1, evaluation/cat/1",
        "dogs-vs-cats.train/1, dogs-vs-cats.test/1",
        "cat/1, dog/1, test/1",
        "cat/1, dog/1, Validation/cat/1",
        "trainval/cat/1, testing/cat/1",
        "train/cat/1, unlabeled/1",
        "support/cat/1, query/cat/1",
        "split0/cat/1, split1/cat/1",
        "训练集/cat/1, 测试集/cat/1",
        "valid/cat/1, train/cat/1, extra/cat/1",
    ],
)
def test_names_that_mean_splits(files: str, tmp_path: Path) -> None:
    folder_of(tmp_path, *(f"{file}.jpg" for file in files.split(", ")))
    with pytest.raises(CleansetError, match="the splits of a dataset by their names, not classes; expected a folder"):
        read_images(tmp_path, None, None)
    read_images(tmp_path, None, None, classes_are_folders=True)


@pytest.mark.parametrize(
    "names",
    [
        "train bus tram",
        "test tube,flask,beaker",
        "valley mountain",
        "goldfold silverfold",
        "steam train,bullet train,freight train",
        "valid invalid",
        "dev prod",
        "training shoe,running shoe",
        "gallery museum",
        "fold crease",
        "query answer",
        "testudo trainbearer evaluator",
        "blood test,urine test",
        "trained untrained",
        "val_d'isere chamonix",
        "1 2 3",
        "blindfold manifold",
        "set1 set2",
        "hold out grip",
        "image 1,image 2",
        "splitter splits",
        "train",
    ],
)
def test_names_that_are_classes(names: str, tmp_path: Path) -> None:
    classes = sorted(names.split("," if "," in names else " "))
    classes = classes if len(classes) > 1 else [*classes, "zebra"]
    folder_of(tmp_path, *(f"{name}/{number}.jpg" for name in classes for number in range(2)))
    assert read_images(tmp_path, None, None).classes.keys == tuple(classes)
    # one of them with folders, as of days
    folder_of(tmp_path, f"{classes[0]}/day/9.jpg", f"{classes[1]}/day/9.jpg")
    assert len(read_images(tmp_path, None, None).class_of) == 2 * len(classes) + 2


Change = Callable[[Path], None]


def written(name: str, data: bytes = b"") -> Change:
    def change(images: Path) -> None:
        (images / name).parent.mkdir(parents=True, exist_ok=True)
        (images / name).write_bytes(data or picture())

    return change


def linked(name: str, to: str) -> Change:
    return lambda images: (images / name).symlink_to(to)


def piped(name: str) -> Change:
    return lambda images: os.mkfifo(images / name)


def emptied(name: str) -> Change:
    return lambda images: (images / name).mkdir()


ODD_KEYS = (
    "-a", " a", "a ", "a.", "a:b", "a*b", "a?b", "a<b", "a|b", 'a"b', "a\\b", "a\tb", "a\nb", "con", "NUL", "com1.x",
    "a" * 101, "ä" * 51, "a#b", "a%b", "a=b", "{a}", "a;b", "a@b", "~a", "$a", "!a", "a`b",
)  # fmt: skip
ODD_IDS = (
    "a\\b.jpg", "a\tb.jpg", "a\nb.jpg", "a\x7fb.jpg", "a\u200bb.jpg", "a\u202eb.jpg", " a.jpg", "a.jpg ", "d /a.jpg",
    "a" * 220 + ".jpg",
)  # fmt: skip
SUFFIXES = ("a.gif", "a.tif", "a.webp", "a.bmp", "a.txt", "a", "a.jpg.zip", "a.heic", "a.dcm", "README", "labels.csv")

IN_FOLDERS: list[tuple[Change, str]] = [
    *((written(f"{key}/a.jpg"), "expected") for key in ODD_KEYS),
    *((written(f"cat/{name}"), "as the name of an image; expected a path") for name in ODD_IDS),
    *((written(f"cat/{name}"), "not the name of an image; expected .jpeg, .jpg, .png") for name in SUFFIXES),
    (written("stray.jpg"), "next to the folders of the classes; expected a folder for each class"),
    (emptied("fish"), "a class without images"),
    (written("CAT/z.jpg"), "classes 'CAT' and 'cat', which differ only by case"),
    (written("do\u0308g (1)/z.jpg"), "which differ only by blanks or Unicode form"),
    (written("dög  (1)/z.jpg"), "which differ only by blanks or Unicode form"),
    (written("cat/a\u200db.jpg"), "'cat/a\\u200db.jpg' with the invisible ZERO WIDTH JOINER as the name of an image"),
    (written("ca\u200ct/a.jpg"), "with the invisible ZERO WIDTH NON-JOINER as the name of an image"),
    (written("cat/a.jpg "), "'cat/a.jpg ' with a blank at an end as the name of an image"),
    (written("cat/isic_0001.jpg"), "differ only by case, Unicode form or folders"),
    (written("cat/ISIC_0001.JPG"), "differ only by case, Unicode form or folders"),
    (written("cat/ISIC/0001.jpg", picture()), ""),
    (written("dög (1)/more__x.JPEG"), "differ only by case, Unicode form or folders"),
    (linked("cat/loop", "."), "folders deep; expected no link to a folder above it"),
    (linked("cat/gone.jpg", "nowhere.jpg"), "cat/gone.jpg (broken symlink); put them there"),
    (linked("bird", "nowhere"), "bird: broken symlink to nowhere; restore its target, or remove the link"),
    (piped("cat/pipe.jpg"), "a named pipe; expected a regular file"),
]


@pytest.mark.parametrize(("change", "message"), IN_FOLDERS)
def test_wrong_folders(tmp_path: Path, change: Change, message: str) -> None:
    images = folder_of(tmp_path / "images", *TWO)
    change(images)
    assert_refused(tmp_path, ["--images", str(images)], message)


def assert_refused(tmp_path: Path, options: list[str], message: str) -> None:
    """Making an edition ends with one line, and nothing is left behind; or goes well if the message is empty."""
    edition = tmp_path / "edition"
    result = CliRunner().invoke(app, ["edition", str(edition), *options])
    if not message:
        assert result.exit_code == 0, result.output
        return
    error = result.exception
    assert isinstance(error, CleansetError), result.output
    assert message in str(error)
    assert "\n" not in str(error)
    assert not edition.exists()
    assert not list(tmp_path.glob("*.partial*"))


L = "file,class\ncat/ISIC_0001.jpg,a\n"
G = "file,class,group\n"
LABELS: list[tuple[str, str]] = [
    ("", "expected the header file,class"),
    ("file,label\n", "expected the header file,class"),
    ("class,file\n", "expected the header file,class"),
    ("file;class\n", "expected the header file,class"),
    ("file,class\n", "no image"),
    (L, "1 classes; expected 2 to 5,000"),
    (f"{L}dög (1)/b ild.png\n", "line 3: 1 cells; expected file,class"),
    (f"{L}dög (1)/b ild.png,b,c\n", "line 3: 3 cells; expected file,class"),
    (f"{L}dög (1)/b ild.png,\n", "'dög (1)/b ild.png' without a class"),
    (f"{L}cat/ISIC_0001.jpg,b\n", "a second time, in class 'a' before and 'b' now"),
    (f"{L}cat/ISIC_0001.jpg,a\n", "a second time, in class 'a' before and 'a' now"),
    (f"{L}../secret.jpg,b\n", "'../secret.jpg' as the name of an image"),
    (f"{L}/etc/passwd.jpg,b\n", "'/etc/passwd.jpg' as the name of an image"),
    (f"{L}cat/../cat/x.jpg,b\n", "as the name of an image"),
    (f"{L}./cat/ISIC_0001.jpg,b\n", "as the name of an image"),
    (f"{L}cat//ISIC_0001.jpg,b\n", "as the name of an image"),
    (f"{L}gone.jpg,b\nlost.jpg,b\n", ": gone.jpg, lost.jpg; put them there"),
    (f"{L}dög (1)/more,b\n", "not the name of an image"),
    (f"{L}dög (1)/b ild.png,A\n", "classes 'A' and 'a', which differ only by case"),
    (f"{L}dög (1)/b ild.png,b/c\n", "'b/c' as a class"),
    (f"{L}dög (1)/b ild.png,..\n", "'..' as a class"),
    (f"{L}CAT/isic_0001.jpg,b\n", "differ only by case"),
    (f"{L}dög (1)/b ild.png,\"b\n", "not CSV"),
    (f"{G}cat/ISIC_0001.jpg,a,\ndög (1)/b ild.png,b,q\n", "without a group"),
    (f"{G}cat/ISIC_0001.jpg,a,p\u200b\ndög (1)/b ild.png,b,q\n", "'p\\u200b' with the invisible ZERO WIDTH SPACE"),
    (f"{L}dög (1)/b ild.png,b\u200db\n", "with the invisible ZERO WIDTH JOINER as a class; expected"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), LABELS)
def test_wrong_labels(tmp_path: Path, text: str, message: str) -> None:
    images, labels = folder_of(tmp_path / "images", *TWO), tmp_path / "labels.csv"
    labels.write_text(text, encoding="utf-8")
    assert_refused(tmp_path, ["--images", str(images), "--labels", str(labels)], message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class\ncat\n", "expected the header class,name"),
        ("class,name\ncat,Katze\n", "class 'dög (1)' has no name"),
        ("class,name\ncat,Katze\ndög (1),Hund\nfish,Fisch\n", "class 'fish' has no image"),
        ("class,name\ncat,Katze\ncat,Kater\ndög (1),Hund\n", "class 'cat' a second time"),
        ("class,name\ncat,\ndög (1),Hund\n", "class 'cat' has the name ''"),
        ("class,name\ncat,\"Kat\nze\"\ndög (1),Hund\n", "expected printable text"),
    ],
)  # fmt: skip
def test_wrong_names(tmp_path: Path, text: str, message: str) -> None:
    images, names = folder_of(tmp_path / "images", *TWO), tmp_path / "names.csv"
    names.write_text(text, encoding="utf-8")
    assert_refused(tmp_path, ["--images", str(images), "--names", str(names)], message)


A, B, C = TWO
ALL = "file,cat,dög (1)\n"
TOP = "file,class,confidence\n"
GOOD = f"{A},.9,.1\n{B},.2,.8\n"
SCORES: list[tuple[str, str]] = [
    ("", "no CSV table"),
    ("file\n", "expected the columns file, perhaps model"),
    ("name,cat,dög (1)\nx,1,0\n", "expected the columns file, perhaps model"),
    (f"{ALL}{GOOD}", f"no scores of {C!r}"),
    (f"{ALL}{GOOD}{C},.5,.5\nzebra.jpg,.5,.5\n", "scores of an unknown image, 'zebra.jpg'"),
    (f"{ALL}{GOOD}{C},.5,.5\n{C},.5,.5\n", "a second time for one model"),
    (f"file,cat\n{A},1\n{B},1\n{C},1\n", "expected the columns file, perhaps model"),
    (f"file,cat,dog\n{A},.9,.1\n{B},.2,.8\n{C},.5,.5\n", "a column of an unknown class, 'dog'"),
    (f"file,cat,dög (1),fish\n{A},1,0,0\n{B},1,0,0\n{C},1,0,0\n", "a column of an unknown class, 'fish'"),
    (f"{ALL}{GOOD}{C},nan,.5\n", "'nan'; expected a probability"),
    (f"{ALL}{GOOD}{C},inf,.5\n", "'inf'; expected a probability"),
    (f"{ALL}{GOOD}{C},,.5\n", "''; expected a probability"),
    (f"{ALL}{GOOD}{C},-.1,1.1\n", "expected a probability"),
    (f"{ALL}{GOOD}{C},.5,x\n", "'x'; expected a probability"),
    (f"{ALL}{GOOD}{C},.5\n", "expected a probability"),
    (f"{ALL}{GOOD}{C},.5,.5,.5\n", "no CSV table"),
    (f"{ALL}{GOOD}{C},.5,.4\n", "sum up to 0.9; expected softmax probabilities"),
    (f"{ALL}{GOOD}{C},1,1\n", "sum up to 2"),
    (f"{TOP}{A},cat,.9\n{B},cat,.9\n{C},fish,.9\n", "has the class 'fish'"),
    (f"{TOP}{A},cat,.9\n{B},cat,.9\n{C},dög (1),1.5\n", "'1.5'; expected a probability"),
    (f"file,model,cat,dög (1)\n{A},1,.9,.1\n{B},1,.9,.1\n{C},1,.9,.1\n", "model '1'; expected names that begin with"),
    (f"file,model,cat,dög (1)\n{A},m,.9,.1\n{B},m,.9,.1\n", f"no scores of {C!r}"),
    (f"file,model,class,confidence\n{A},m,cat,1\n{B},M,cat,1\n", "no scores of"),
    ("\x00\x01\x02", "expected the columns file"),
]


@pytest.mark.parametrize(("text", "message"), SCORES)
def test_wrong_scores(tmp_path: Path, text: str, message: str) -> None:
    images, scores = folder_of(tmp_path / "images", *TWO), tmp_path / "scores.csv"
    scores.write_text(text, encoding="utf-8")
    assert_refused(tmp_path, ["--images", str(images), "--scores", str(scores)], message)


def animation(kind: str) -> bytes:
    out = io.BytesIO()
    first, second = (Image.open(io.BytesIO(picture(seed=seed))) for seed in (1, 2))
    first.save(out, format=kind, save_all=True, append_images=[second])
    return out.getvalue()


def sixteen_bits(channels: int) -> bytes:
    import cv2

    shape = (8, 8) if channels == 1 else (8, 8, channels)
    return bytes(cv2.imencode(".png", np.full(shape, 40_000, np.uint16))[1])


def few_bits(bits: int) -> bytes:
    """A grey PNG of 8 x 8 pixels of 2 or 4 bits, black."""
    chunks = (b"IHDR", struct.pack(">IIBBBBB", 8, 8, bits, 0, 0, 0, 0)), (b"IDAT", zlib.compress(bytes(8 * (bits + 1))))
    parts = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
             for kind, data in (*chunks, (b"IEND", b"")))  # fmt: skip
    return b"".join((b"\x89PNG\r\n\x1a\n", *parts))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"GIF89a", "not a JPEG or PNG"),
        (picture("GIF"), "not a JPEG or PNG"),
        (picture("TIFF"), "not a JPEG or PNG"),
        (picture("WEBP"), "not a JPEG or PNG"),
        (picture("BMP"), "not a JPEG or PNG"),
        (picture()[:-60], "truncated"),
        (picture("PNG")[:-60], "truncated"),
        (picture("PNG")[:-600], "truncated"),
        (picture(mode="CMYK"), "CMYK; expected 8 bits of RGB or grey"),
        (sixteen_bits(1), "16 bits; expected"),
        (sixteen_bits(3), "16 bits; expected"),
        (animation("PNG"), "animated, 2 images"),
        (animation("GIF"), "not a JPEG or PNG"),
        (picture("PNG", "P"), "a palette; expected"),
        (picture("PNG", "1"), "^black and white; expected"),
        (few_bits(2), "^2 bits; expected"),
        (few_bits(4), "^4 bits; expected"),
        (picture("PNG", "RGBA"), "transparency; expected"),
        (picture("PNG", "LA"), "transparency; expected"),
        (picture("PNG", transparency=(0, 0, 0)), "transparency; expected"),
    ],
)
def test_images_that_other_programs_show_otherwise(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inspect(data, ("JPEG", "PNG"))


def test_grey_images_are_read() -> None:
    assert [inspect(picture(kind, "L"), ("JPEG", "PNG")).mode for kind in ("JPEG", "PNG")] == ["L", "L"]


def test_class_tables() -> None:
    table = class_table([("b", "B"), ("a c", "Ä, other")], "here")
    assert parse_class_table(table.text, "there").names == table.names
    for text in ("", "a\tb\n", table.text.replace("\t1", "\t2"), table.text[:-1], table.text + "z\tz\t5\n"):
        with pytest.raises(CleansetError, match=r"^there: "):
            parse_class_table(text, "there")
    with pytest.raises(CleansetError, match="5,001 classes; expected 2 to 5,000"):
        class_table(((f"c{n}", "n") for n in range(5001)), "here")
