"""Predictions made elsewhere: every way to give them, and a line for each that does not fit the set."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

import cleanset
from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.evaluate import run
from cleanset.evaluation.function import evaluate
from cleanset.evaluation.prediction_measures import Accuracy
from cleanset.evaluation.predictions import (
    checked_array,
    checked_table,
    parse_prediction_files,
    read_predictions,
    write_predictions_csv,
)
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet, open_set

NOWHERE = Edition(Path("nowhere"))
FILES = ("n01440764/red.png", "n01443537/blue.PNG", "n01443537/green.png")


def images_of(folder: Path) -> EvaluationSet:
    return open_set(str(folder), NOWHERE, ())


def read(folder: Path, text: str) -> pd.DataFrame:
    (folder.parent / "p.csv").write_bytes(text.encode())
    return read_predictions(folder.parent / "p.csv", images_of(folder))[0]


@pytest.mark.parametrize(
    "text",
    [
        "image,class_index\nn01440764/red.png,0\nn01443537/blue.PNG,0\nn01443537/green.png,1\n",
        "class_index,image\n1,green\n0,red\n0,blue\n",  # any order, without folder and ending
        "image,wnid\ngreen.png,n01443537\nred.png,n01440764\nblue.PNG,n01440764\n",
        "image,wnid,class_index\ngreen,n01443537,1\nred,n01440764,0\nblue,n01440764,0\n",
        "\ufeffimage,class_index\r\nred,0\r\nblue,0\r\n\r\ngreen,1\r\n",  # as a spreadsheet writes it
    ],
)
def test_files_of_top1_classes(text: str, folder: Path) -> None:
    found = read(folder, text)
    assert found.columns.tolist() == ["file", "class_index", "tier", "prediction", "correct"]
    assert found["file"].tolist() == list(FILES)
    assert found["prediction"].tolist() == [0, 0, 1]
    assert found["correct"].tolist() == [True, False, True]


def unread(_: str) -> Image.Image:
    return Image.new("RGB", (1, 1))


def made_up_set(items: Sequence[EvaluationImage], order: Sequence[str]) -> EvaluationSet:
    return EvaluationSet(
        name="x", kind="folder", items=items, read=unread, checked=None, classes=imagenet(), order=order
    )


def test_probabilities_are_float32() -> None:
    """0.1 has no exact float32; the same number is read whether it was written from float32 or float64."""
    images = made_up_set([EvaluationImage("n01440764/a.png", 0, None, "")], ["a.png"])
    for text in ("0.1", str(np.float32(0.1)), repr(float(np.float32(0.1)))):
        columns = {"image": ["a"], "class_index": ["0"], "probability": [text]}
        found = checked_table(columns, "x", str, images)
        assert found["confidence"].tolist() == [np.float32(0.1)]


FIVE = ",".join(["image", *(f"{what}_{rank}" for what in ("class", "probability") for rank in range(1, 6))])


def test_a_file_of_five(folder: Path, tmp_path: Path) -> None:
    rows = "\n".join(f"{name},5,1,n01440764,3,7,0.5,0.25,0.125,0.0625,0.03125" for name in ("red", "blue", "green"))
    found = read(folder, f"{FIVE}\n{rows}\n")
    assert found["top5_class"].tolist() == [[5, 1, 0, 3, 7]] * 3
    assert found["confidence"].tolist() == [0.5] * 3
    write_predictions_csv(tmp_path / "again.csv", found)
    again, _ = read_predictions(tmp_path / "again.csv", images_of(folder))
    pd.testing.assert_frame_equal(again, found)


TOP = "image,class_index\nred,0\nblue,0\ngreen,1\n"
KNOWN = "image,class_index,probability\nred,0,0.5\nblue,0,0.25\ngreen,1,1\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (TOP, "green,1\n", "", "no prediction for 1 of the 3 images of .*set: n01443537/green.png; expected one"),
        (TOP, "green,1", "red.png,1", "line 4: n01440764/red.png a second time, after line 2; expected it once"),
        (TOP, "green", "yellow", "line 4: 'yellow'; expected an image of .*: its path there, file name or image id"),
        (TOP, "0\nblue", "1000\nblue", "line 2, column class_index: '1000'; expected a class index from 0 to 999"),
        (TOP, "0\nblue", "-1\nblue", "line 2, column class_index: '-1'; expected a class index"),
        (TOP, "0\nblue", "nan\nblue", "line 2, column class_index: 'nan'; expected a class index"),
        (TOP, "0\nblue", "0.0\nblue", "line 2, column class_index: '0.0'; expected a class index"),
        (TOP, "0\nblue", "²\nblue", "line 2, column class_index: '²'; expected a class index"),
        (TOP, "0\nblue", "\nblue", "line 2, column class_index: ''; expected a class index"),
        (TOP, "0\nblue", "n00000001\nblue", "line 2, column class_index: 'n00000001'; expected a class index"),
        (TOP, "0\nblue", "0,1\nblue", "line 2: 3 cells; expected image,class_index: give image with"),
        (TOP, "image", "file", "line 1: 'file,class_index'; expected the column image, each once: give"),
        (TOP, "class_index", "label", "p.csv: columns 'image, label'; expected image with class_index or wnid"),
        (TOP, "class_index", "image", "line 1: 'image,image'; expected the column image, each once"),
        (TOP, TOP, "", "line 1: ''; expected the column image, each once: give image"),
        (TOP, TOP, "image,class_index\n", "no prediction for 3 of the 3 images .*; expected one for each"),
        (TOP, "red", '"red', "not CSV"),
        (KNOWN, "0.25", "nan", "line 3, column probability: 'nan'; expected a probability from 0 to 1"),
        (KNOWN, "0.25", "inf", "line 3, column probability: 'inf'; expected a probability from 0 to 1"),
        (KNOWN, "0.25", "1.5", "line 3, column probability: '1.5'; expected a probability from 0 to 1"),
        (KNOWN, "0.25", "-0.1", "line 3, column probability: '-0.1'; expected a probability from 0 to 1"),
        (KNOWN, "0.25", "0_1", "line 3, column probability: '0_1'; expected a probability from 0 to 1"),
        (KNOWN, "0.25", "", "line 3, column probability: ''; expected a probability from 0 to 1"),
        (KNOWN, "probability", "probability_1", "columns 'image, class_index, probability_1'; expected image with"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit(text: str, old: str, new: str, message: str, folder: Path) -> None:
    with pytest.raises(CleansetError, match=message) as raised:
        read(folder, text.replace(old, new, 1))
    assert "\n" not in str(raised.value)
    assert "p.csv" in str(raised.value)


@pytest.mark.parametrize(
    ("classes", "probabilities", "message"),
    [
        ("5,1,0,3,5", "0.5,0.2,0.1,0.1,0.1", "line 2: 5, 1, 0, 3, 5; expected five different classes"),
        ("5,1,0,3,2", "0.2,0.5,0.1,0.1,0.1", "line 2: probabilities 0.2, 0.5, 0.1, 0.1, 0.1; expected the highest fir"),
        ("5,1,0,3,2", "0.9,0.5,0.1,0.1,0.1", "line 2: probabilities 0.9, 0.5, .*; expected the highest first"),
        ("5,1,0,3,1000", "0.5,0.2,0.1,0.1,0.1", "line 2, column class_5: '1000'; expected a class index from 0 to 999"),
    ],
)
def test_five_that_do_not_fit(classes: str, probabilities: str, message: str, folder: Path) -> None:
    with pytest.raises(CleansetError, match=message):
        read(folder, f"{FIVE}\nred,{classes},{probabilities}\n")


def test_an_image_of_two_files_needs_its_path(folder: Path) -> None:
    (folder / "n01440764" / "blue.jpg").write_bytes((folder / "n01443537" / "blue.PNG").read_bytes())
    with pytest.raises(CleansetError, match=r"line 3: 'blue' is n01440764/blue.jpg and n01443537/blue.PNG; expected a"):
        read(folder, TOP)
    assert len(read(folder, TOP.replace("blue", "blue.PNG") + "blue.jpg,3\n")) == 4


def test_names_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b=c.csv"):
        Path(name).touch()
    found = parse_prediction_files(["a.csv", "mine=a.csv", "b=c.csv"], [])
    assert {name: str(path) for name, path in found.items()} == {
        "a.csv": "a.csv",
        "mine": "a.csv",
        "b=c.csv": "b=c.csv",
    }
    for text, taken, message in (
        ("a.txt", [], "'a.txt': expected a file that ends in .csv or .parquet"),
        ("x=gone.csv", [], "'x=gone.csv': missing; expected FILE or NAME=FILE"),
        ("=a.csv", [], "'=a.csv': expected a name of 1 to 100 characters before ="),
        ("timm:x=a.csv", ["timm:x"], "the name 'timm:x' is taken; expected NAME=FILE"),
    ):
        with pytest.raises(CleansetError, match=message):
            parse_prediction_files([text], taken)


@pytest.mark.slow
def test_what_a_model_wrote_is_read_and_gives_the_same_page(mine: str, folder: Path, tmp_path: Path) -> None:
    """As its Parquet file, and as a CSV of it, under the name of the model."""
    out, name = tmp_path / "out", f"{mine}:colours"
    _, (row,) = run(NOWHERE, Arguments(str(folder), [name], out=out, report=tmp_path / "page"))
    (text,) = [path.read_text() for path in (tmp_path / "page").iterdir()]
    stored = pd.read_parquet(out / "mine_colours.parquet")
    five = {
        f"{what}_{rank + 1}": [each[rank] for each in stored[f"top5_{what}"]]
        for what in ("class", "probability") for rank in range(5)
    }  # fmt: skip
    pd.DataFrame({"image": stored["file"].str.split("/").str[1], **five}).to_csv(tmp_path / "p.csv", index=False)
    for file in (out / "mine_colours.parquet", tmp_path / "p.csv"):
        wanted = Arguments(str(folder), [], predictions=[f"{name}={file}"], report=tmp_path / "again")
        again = run(NOWHERE, wanted)[1][0]
        assert again.measures == row.measures
        assert (tmp_path / "again" / "index.html").read_text() == text
    both = run(NOWHERE, Arguments(str(folder), [name], predictions=[f"other={tmp_path / 'p.csv'}"]))[1]
    assert sorted(each.name for each in both) == [name, "other"]
    (folder / "n01440764" / "red.png").write_bytes((folder / "n01443537" / "green.png").read_bytes())
    with pytest.raises(CleansetError, match=r"row 1: predicted on other bytes of n01440764/red.png than the set has"):
        read_predictions(out / "mine_colours.parquet", images_of(folder))


def test_a_damaged_parquet_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(CleansetError, match=r"p.parquet: not a Parquet file \(.*\); expected a Parquet or"):
        read_predictions(tmp_path / "p.parquet", images_of(folder))
    pd.DataFrame({"image": list("abc"), "class_index": [0, 1, 2]}).to_parquet(tmp_path / "p.parquet")
    with pytest.raises(CleansetError, match=r"p.parquet, row 1: 'a'; expected an image of"):
        read_predictions(tmp_path / "p.parquet", images_of(folder))


@pytest.mark.long
def test_the_command_without_torch_and_pyarrow(folder: Path, tmp_path: Path) -> None:
    """What a slim installation does: table, JSON and checked predictions."""
    (tmp_path / "p.csv").write_text(KNOWN)
    program = (
        "import sys\nfor name in ('torch', 'timm', 'pyarrow', 'dvc'): sys.modules[name] = None\n"
        f"sys.argv = ['cleanset', 'evaluate', {str(folder)!r}, '--predictions', 'p.csv', '--out', 'out', '--json']\n"
        "from cleanset.cli import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    (model,) = json.loads(done.stdout)["models"]
    assert (model["model"], model["correct"], model["top5"], model["deterministic"]) == ("p.csv", 2, None, None)
    assert (tmp_path / "out" / "p.csv").read_text() == (
        "image,class_index,probability\nn01440764/red.png,0,0.5\nn01443537/blue.PNG,0,0.25\nn01443537/green.png,1,1.0\n"
    )
    assert json.loads((tmp_path / "out" / "results.json").read_text())["models"] == [model]


PROBABILITIES = np.zeros((3, 1000), np.float32)
PROBABILITIES[[0, 1, 2], [0, 5, 1]] = 1


@pytest.mark.slow
def test_a_tensor(folder: Path) -> None:
    import torch

    assert evaluate(torch.tensor(PROBABILITIES, requires_grad=True), folder).accuracy == 2 / 3


def test_arrays_in_the_order_of_the_set(folder: Path) -> None:
    assert evaluate(np.array([0, 5, 1]), folder).model.measures.overall == Accuracy(3, 2)
    found = evaluate(PROBABILITIES, folder, name="mine")
    assert found.predictions["top5_class"].tolist() == [[0, 1, 2, 3, 4], [5, 0, 1, 2, 3], [1, 0, 2, 3, 4]]
    assert (found.accuracy, found.top5_accuracy) == (2 / 3, 1.0)
    assert found.model.measures.published_calibration_error == pytest.approx(1 / 3)
    assert evaluate(pd.DataFrame(PROBABILITIES), folder).accuracy == 2 / 3
    table = pd.DataFrame({"image": ["red", "blue", "green"], "class_index": [0, 5, 1]})
    assert evaluate(table, folder).accuracy == 2 / 3
    assert evaluate(table.assign(class_index=[imagenet().keys[each] for each in (0, 5, 1)]), folder).accuracy == 2 / 3


@pytest.mark.slow
def test_the_order_of_an_export_is_that_of_its_manifest(edition: Edition) -> None:
    loaded = cleanset.load("standard", edition.folder)
    found = cleanset.evaluate(np.array(loaded.targets), loaded)
    assert found.accuracy == 1
    files = [entry.file for entry in loaded.entries]
    assert list(found.images.order) == files


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (PROBABILITIES[:, :999], r"float32 \(3, 999\); expected \(3,\) class indices, or \(3, 1000\) probabilities"),
        (PROBABILITIES[:2], r"float32 \(2, 1000\); expected \(3,\) class indices"),
        (PROBABILITIES * np.float32("nan"), "row 1: values from nan to nan with the sum nan; expected probabilities"),
        (PROBABILITIES * 9, "row 1: values from 0 to 9 with the sum 9; expected probabilities with the sum 1: apply"),
        (-PROBABILITIES, "row 1: values from -1 to -?0 with the sum -1; expected probabilities"),
        (np.array([0, 1, 1000]), "row 3: 1000; expected a class index from 0 to 999"),
        (np.array([0, -1, 0]), "row 2: -1; expected a class index"),
        (np.array([0.0, 1, 2]), r"float64 \(3,\); expected \(3,\) class indices"),
        (PROBABILITIES.astype(int), r"int64 \(3, 1000\); expected"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit(array: NDArray[Any], message: str, folder: Path) -> None:
    with pytest.raises(CleansetError, match=f"^ndarray(, |: ){message}"):
        evaluate(array, folder)


@given(st.lists(st.integers(0, 999), min_size=3, max_size=3), st.permutations(range(3)))
def test_rows_may_be_in_any_order(classes: list[int], order: list[int]) -> None:
    """A table names its images; an array follows the order of the set."""
    items = [EvaluationImage(f"n01440764/{name}.png", 0, None, "") for name in "abc"]
    images = made_up_set(items, [items[place].file for place in order])
    found = checked_array(np.array([classes[place] for place in order]), "x", images)
    assert found["prediction"].tolist() == classes
