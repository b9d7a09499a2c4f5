import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.measure.sets import Item, class_index_of, open_list, open_set
from cleanset.vocabulary import class_keys
from tests.measure.conftest import COLOURS, draw
from tests.sets.conftest import FILES
from tests.ten_images import LABELS, id_of, ten_images

TIERS = ["top5", "reserve", "top5", "relaxed", "relaxed", "top5"]


def test_an_export(edition: Edition) -> None:
    found = open_set("standard", edition, ["standard"])
    export = edition.export("standard")
    classes = [0, 0, 278, 278, 278, 281]
    digests = [sha256((export / file).read_bytes()) for file in FILES]
    assert found.items == list(map(Item, FILES, classes, TIERS, digests))
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
    assert found.items == list(map(Item, COLOURS, [0, 1, 1], [None] * 3, digests))
    assert (found.kind, found.checked, found.notes) == ("folder", None, ())


def test_an_image_that_changes_after_the_check_does_not_count(folder: Path) -> None:
    found = open_set(str(folder), Edition(folder), [])
    draw(folder / "n01440764" / "red.png", (254, 0, 0))
    with pytest.raises(CleansetError, match=r"red.png: SHA-256 .* before: changed while it was read"):
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
        (lambda at: (at / "n00000001").mkdir(), "n00000001: not one of the 1,000 wnids"),
        (lambda at: (at / "n01440764" / "a.txt").touch(), "a.txt: not an image; expected files that end in .jpeg,"),
        (lambda at: (at / "n01440764" / "a\nb.png").touch(), r"a\nb.png: a name that cannot be printed"),
        (lambda at: (at / "n01440764" / "a.png").mkdir(), "a.png: not an image; expected files that end in"),
        (lambda at: list(map(shutil.rmtree, at.glob("n*"))), "no images; expected JPEGs or PNGs in folders"),
        (lambda at: shutil.rmtree(at), "unknown set; expected a folder with manifest.csv or one for each class"),
    ],
)
def test_a_folder_that_is_no_set(change: Callable[[Path], object], message: str, folder: Path) -> None:
    change(folder)
    with pytest.raises(CleansetError) as raised:
        open_set(str(folder), Edition(Path("nowhere")), [])
    assert message in str(raised.value)


def test_a_role_without_an_export(edition: Edition) -> None:
    with pytest.raises(CleansetError, match=r"export/other: not there; run dvc pull export@other in .*, or dvc repro"):
        open_set("other", edition, ["other"])
    with pytest.raises(
        CleansetError, match=r"^gone: unknown set; expected one of the edition's roles \(other\), or a folder"
    ):
        open_set("gone", edition, ["other"])


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
        Item(f"n01440764/{id_of(8)}.JPEG", 0, None, digests[8]),
        Item(f"n02119789/{id_of(4)}.JPEG", 278, None, digests[4]),
    ]
    assert found.read(f"n02119789/{id_of(4)}.JPEG") == ten_images()[id_of(4)]
    assert pickle.loads(pickle.dumps(found.read))(f"n01440764/{id_of(8)}.JPEG") == ten_images()[id_of(8)]
    assert (found.name, found.kind, found.checked) == (f"{path} (standard)", "list", str(edition.index))
    assert found.notes == ["1 of them is cropped in the list, and measured whole: it has no boxes"]


def test_a_list_by_wnid_with_tiers(edition: Edition, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    rows = [f"{id_of(n)},{class_keys()[LABELS[n - 1]]},{tier}" for n, tier in ((1, "top5"), (4, "reserve"), (2, ""))]
    path.write_text("\n".join(["image_id,wnid,tier", *rows]) + "\n")
    found = open_list(path, edition, None)
    assert [(item.class_index, item.tier) for item in found.items] == [(0, "top5"), (0, None), (278, "reserve")]
    assert found.notes == []


@pytest.mark.parametrize(
    ("old", "new", "role", "message"),
    [
        ("class_index", "class", "standard", "line 2: no class; expected a column class_index or wnid: add one"),
        (
            "standard,278,1,",
            "standard,278,",
            "standard",
            "line 2: 4 cells; expected model,class_index,place,",
        ),
        (id_of(4), id_of(77), "standard", f"line 2: '{id_of(77)}'; expected an image of .*index.parquet"),
        (
            ",278,",
            ",1000,",
            "standard",
            "line 2, column class_index: '1000'; expected a class index from 0",
        ),
        (f"0,1,{id_of(8)}", f"278,1,{id_of(4)}", "standard", "line 3: .* a second time in this class; expected it"),
        (",place,", ",left,", "standard", "line 2: a crop box; expected whole images: run cleanset rebuild"),
        (",place,", ",tier,", "standard", "line 2: tier '1'; expected top5, reserve, relaxed or none"),
        ("", "", "third", "no images of 'third'; it has 'other', 'standard'"),
        ("", "", None, "images of 'other', 'standard'; expected --role with one of them"),
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
        class_index_of({"wnid": "n01440764", "class_index": "5"}, "list.csv, line 2")
    assert class_index_of({"wnid": "n01440764", "class_index": "0"}, "list.csv, line 2") == 0
