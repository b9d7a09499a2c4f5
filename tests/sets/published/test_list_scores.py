"""The score table of a published list, and the images from beyond it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.edition.lists import images_beyond
from cleanset.edition.params import Model, read_params
from cleanset.errors import CleansetError
from cleanset.review.store import read_reviews
from cleanset.scoring.brought import scores_of
from cleanset.sets.published.lists import list_scores, with_extras
from cleanset.tables import SCORES, read_table, write_table
from replay import extras_of

A, B, C, D = (f"ILSVRC2012_val_{number:08d}" for number in (1, 2, 3, 4))
LABELS = {A: [5], B: [5], C: [0, 5], D: []}
LISTED = pd.DataFrame({"class_index": [5, 5], "image_id": [B, A], "confidence": np.array([0.75, 0.5], np.float32)})
STEP = 2.0**-25
"""Spacing of float32 below one half."""


def test_extras() -> None:
    assert extras_of(LISTED, {5: [A, B, C], 7: [D], 8: []}) == {5: [C], 7: [D]}


def test_extras_come_next_below_the_list() -> None:
    table = with_extras(LISTED, {5: [C, D], 7: ["x"]})
    assert table["image_id"].tolist() == [B, A, C, D, "x"]
    assert table["class_index"].tolist() == [5, 5, 5, 5, 7]
    assert table["confidence"].tolist() == [0.75, 0.5, 0.5 - STEP, 0.5 - 2 * STEP, 0.5 - STEP]


def test_tables_say_no_more_than_the_lists(tmp_path: Path) -> None:
    scores = scores_of(LISTED, LABELS, imagenet())
    write_table(tmp_path / "scores.parquet", scores, SCORES, imagenet())
    table = read_table(tmp_path / "scores.parquet", SCORES, imagenet())
    assert [classes[0] for classes in table["top5_class"]] == [5, 5, 1, 0]
    assert [probabilities[0] for probabilities in table["top5_probability"]] == [0.5, 0.75, 0, 0]


SINGLE = {A: [5], B: [5], C: [5], D: [7], "ILSVRC2012_val_00000005": [5, 6]}
LIST = f"model,class_index,rank,image_id,confidence\nrobust,5,1,{B},0.75\nplain,7,1,{D},0.5\n"
BEYOND = f"model,class_index,image_id\nrobust,5,{A}\nrobust,7,{D}\n"
MODEL = Model(source="lists", file="lists.csv", name="robust", beyond="beyond.csv")


def found(folder: Path, text: str = LIST, beyond: str = BEYOND) -> dict[str, float]:
    """The top-1 probability of each image by the list of robust."""
    (folder / "lists.csv").write_text(text)
    (folder / "beyond.csv").write_text(beyond)
    scores = list_scores(folder, MODEL, SINGLE, imagenet())
    assert scores.listed == 1
    assert list(scores.beyond) == [A, D]
    first = [row[0] for row in scores.table["top5_probability"]]
    return dict(zip(scores.table["image_id"], map(float, first), strict=True))


def test_the_scores_of_a_list(tmp_path: Path) -> None:
    """Class 7 has no list of this model: its image begins below one half. Lists of others do not count."""
    below = float(np.nextafter(np.float32(0.75), np.float32(0)))
    assert list(found(tmp_path).values()) == [below, 0.75, 0.0, 0.5 - STEP, 0.0]


@pytest.mark.parametrize(
    ("text", "beyond", "message"),
    [
        (LIST, BEYOND.replace(A, B), f"beyond.csv, line 2: {B} is in the list; expected images from beyond it"),
        (
            LIST,
            BEYOND.replace(D, "ILSVRC2012_val_00000009"),
            "beyond.csv, line 3: 'ILSVRC2012_val_00000009' is not in the",
        ),
        (LIST, BEYOND.replace(f"7,{D}", f"6,{D}"), f"beyond.csv, line 3: {D} in the list of class 6, its labels: 7"),
        (
            LIST.replace(B, "ILSVRC2012_val_00000009"),
            BEYOND,
            "lists.csv, line 2: 'ILSVRC2012_val_00000009' is not in the",
        ),
        (LIST + f"robust,5,2,{B},0.5\n", BEYOND, "lists.csv, line 4: "),
        (LIST.replace("0.75", "nan"), BEYOND, "lists.csv, line 2, confidence: 'nan'; expected a probability"),
        (LIST.replace("0.75", ""), BEYOND, "lists.csv, line 2, confidence: ''; expected a probability"),
        (LIST[:-30], BEYOND, "lists.csv, line 3"),
    ],
)
def test_refused(tmp_path: Path, text: str, beyond: str, message: str) -> None:
    with pytest.raises(CleansetError) as error:
        found(tmp_path, text, beyond)
    assert message in str(error.value)


@pytest.mark.slow
def test_the_images_beyond_are_those_of_the_verdicts(repository: Path) -> None:
    """The file in this repository: every reviewed image that the list lacks, and no other."""
    table = pd.read_csv(repository / "imagenet" / "published" / "top5.csv")
    listed = set(table.loc[table["model"] == "norm_robust", "image_id"])
    votes = read_reviews(repository / "imagenet" / "reviews", imagenet())
    reviewed = {key for key, by_reviewer in votes.items() if "scooter" in by_reviewer}
    model = read_params(repository / "imagenet-published").model("norm_robust")
    beyond = {(each.class_index, each.image_id) for each in images_beyond(repository / "imagenet-published", model)}
    assert beyond == {key for key in reviewed if key[1] not in listed}
    assert (len(beyond), len({index for index, _ in beyond})) == (109, 59)
