import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.notes import UNCHECKED
from cleanset.evaluation.sets import EvaluationImage, class_index_of, open_set, set_name
from cleanset.plumbing.files import sha256
from tests.evaluation.conftest import COLOURS, draw
from tests.sets.conftest import FILES

TIERS = ["top5", "reserve", "top5", "relaxed", "relaxed", "top5"]


def test_an_export(edition: Edition) -> None:
    found = open_set("standard", edition, ["standard"])
    export = edition.export("standard")
    classes = [0, 0, 278, 278, 278, 281]
    digests = [sha256((export / file).read_bytes()) for file in FILES]
    assert found.items == list(map(EvaluationImage, FILES, classes, TIERS, digests))
    assert (found.kind, found.checked) == ("export", "the manifest")
    chosen, trial = found.notes
    assert chosen == "chosen among the images that standard classifies correctly"
    assert trial.startswith("Made from an archive with the MD5 ")
    assert trial.endswith("not ImageNet's official one: a trial, not for a study.")
    assert open_set(str(export), Edition(Path("elsewhere")), []).items == found.items
    read = pickle.loads(pickle.dumps(found.read))
    assert np.array_equal(np.asarray(read(FILES[1])), np.asarray(Image.open(export / FILES[1])))  # a cropped one


def test_a_folder_per_wnid(folder: Path) -> None:
    found = open_set(str(folder), Edition(Path("nowhere")), [])
    digests = [sha256((folder / file).read_bytes()) for file in COLOURS]
    assert found.items == list(map(EvaluationImage, COLOURS, [0, 1, 1], [None] * 3, digests))
    assert (found.name, found.kind, found.checked, found.notes) == (folder.name, "folder", None, [UNCHECKED])


@pytest.mark.parametrize(
    ("given", "name"), [("standard", "standard"), ("sets/standard", "sets/standard"), ("/home/ada/sets/new/", "new")]
)
def test_no_name_of_a_set_has_an_absolute_path(given: str, name: str) -> None:
    assert set_name(given) == set_name(Path(given)) == name


def test_a_list_of_images_is_no_set(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("file,class\n")
    with pytest.raises(CleansetError, match=r"list.csv: a list of images, which only cleanset evaluate, robustness"):
        open_set(str(tmp_path / "list.csv"), Edition(tmp_path), [])


def test_an_image_that_changes_after_the_check_does_not_count(folder: Path) -> None:
    found = open_set(str(folder), Edition(folder), [])
    draw(folder / "n01440764" / "red.png", (254, 0, 0))
    with pytest.raises(CleansetError, match=r"red.png: SHA-256 .*, or when it was checked; see cleanset verify"):
        found.read("n01440764/red.png")


def test_half_an_image_is_refused_where_it_is_read(folder: Path) -> None:
    path = folder / "n01440764" / "red.png"
    path.write_bytes(path.read_bytes()[:45])
    found = open_set(str(folder), Edition(folder), [])
    with pytest.raises(CleansetError, match=r"red.png: cannot be read \(.*\); expected a whole JPEG or PNG"):
        found.read("n01440764/red.png")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda at: (at / FILES[0]).write_bytes(b"x"), "SHA-256 .*, expected .* as in the manifest"),
        (lambda at: (at / FILES[2]).unlink(), "missing; see cleanset verify"),
        (lambda at: (at / "manifest.csv").write_text(""), "manifest.csv, line 1, column 1: nothing; expected model"),
        (
            lambda at: (at / "manifest.csv").write_text((at / "manifest.csv").read_text().splitlines()[0] + "\n"),
            "manifest.csv: SHA-256 .*, expected .* as in checksums.sha256",
        ),
        (
            lambda at: (
                (at / "manifest.csv").write_text((at / "manifest.csv").read_text().splitlines()[0] + "\n")
                and (at / "checksums.sha256").unlink()
            ),
            "manifest.csv: no images; expected at least one",
        ),
    ],
)
def test_an_export_that_is_not_as_its_manifest(
    change: Callable[[Path], None], message: str, edition: Edition, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(edition.export("standard"), tmp_path / "copy"))
    change(copy)
    with pytest.raises(CleansetError, match=message):
        open_set(str(copy), edition, [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda at: (at / "goldfish").mkdir(), "goldfish: not one of the 1,000 wnids; expected folders like n01440764"),
        (lambda at: (at / "goldfish").mkdir(), "classes of your own need an edition: cleanset docs own_images"),
        (lambda at: (at / "n00000001").mkdir(), "n00000001: not one of the 1,000 wnids"),
        (lambda at: (at / "n01440764" / "a.txt").touch(), "a.txt: not an image; expected files that end in .jpeg,"),
        (lambda at: (at / "n01440764" / "a\nb.png").touch(), r"a\nb.png: a name that cannot be printed"),
        (lambda at: (at / "n01440764" / "a.png").mkdir(), "a.png: not an image; expected files that end in"),
        (lambda at: list(map(shutil.rmtree, at.glob("n*"))), "no images; expected JPEGs or PNGs in folders"),
        (lambda at: shutil.rmtree(at), "unknown set; expected a folder with manifest.csv or one for each class"),
    ],
)
def test_a_folder_that_is_not_a_set(change: Callable[[Path], object], message: str, folder: Path) -> None:
    change(folder)
    with pytest.raises(CleansetError) as raised:
        open_set(str(folder), Edition(Path("nowhere")), [])
    assert message in str(raised.value)


def test_folders_that_are_named_by_class_index(tmp_path: Path) -> None:
    """As ImageNet-V2's: 10 is class 10, and not the third of the sorted names; leading zeros change nothing."""
    for name in ("0", "1", "10", "002", "999"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8), (int(name) % 256, 0, 0)).save(tmp_path / name / "a.png")
    found = open_set(str(tmp_path), Edition(Path("nowhere")), [])
    assert {item.file: item.class_index for item in found.items} == {
        "0/a.png": 0, "002/a.png": 2, "1/a.png": 1, "10/a.png": 10, "999/a.png": 999
    }  # fmt: skip
    assert found.limits == [UNCHECKED, "Its folders are numbers, taken for class indices, as ImageNet-V2's are."]
    (tmp_path / "1000").mkdir()
    with pytest.raises(CleansetError, match="class_index: '1000'; expected a class index from 0 to 999"):
        open_set(str(tmp_path), Edition(Path("nowhere")), [])
    (tmp_path / "1000").rename(tmp_path / "01")
    with pytest.raises(CleansetError, match="folders 01 and 1 are both of class index 1; expected one each"):
        open_set(str(tmp_path), Edition(Path("nowhere")), [])
    (tmp_path / "01").rename(tmp_path / "n01440764")
    with pytest.raises(CleansetError, match="0: not one of the 1,000 wnids; expected folders like n01440764, or all"):
        open_set(str(tmp_path), Edition(Path("nowhere")), [])


def test_a_role_without_an_export(edition: Edition) -> None:
    with pytest.raises(CleansetError, match=r"export/other: not there; run dvc pull export@other in .*, or dvc repro"):
        open_set("other", edition, ["other"])
    with pytest.raises(
        CleansetError, match=r"^gone: unknown set; expected one of the edition's roles \(other\), or a folder"
    ):
        open_set("gone", edition, ["other"])


@pytest.mark.long
@pytest.mark.slow
def test_torch_is_not_imported_before_a_model_runs(folder: Path) -> None:
    program = (
        "import sys\nfrom cleanset.cli import main\n"
        f"sys.argv = ['cleanset', 'evaluate', {str(folder / 'gone')!r}, '--model', 'timm:resnet50.tv_in1k']\n"
        "try:\n    main()\nexcept SystemExit as error:\n    print(error)\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=folder)
    error, imported = done.stdout.splitlines()
    assert error.startswith(f"error: {folder}/gone: unknown set; expected a folder with manifest.csv")
    assert imported == "False"


def test_a_class_and_another_index() -> None:
    with pytest.raises(CleansetError, match=r"list.csv, line 2: class index 5 of n01440764; expected 0"):
        class_index_of({"wnid": "n01440764", "class_index": "5"}, "list.csv, line 2", imagenet())
    assert class_index_of({"wnid": "n01440764", "class_index": "0"}, "list.csv, line 2", imagenet()) == 0
