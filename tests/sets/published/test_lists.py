"""The published lists, and lists that are not as they must be."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cleanset.errors import CleansetError
from cleanset.sets.published.lists import PUBLISHED_MODEL, published_candidates, read_top5
from replay import check_pool, read_pool, real_labels

A, B, C = (f"ILSVRC2012_val_{number:08d}" for number in (1, 2, 3))
LABELS: Mapping[str, Sequence[int]] = {A: [5], B: [5], C: [6, 7]}
HEADER = "model,class_index,rank,image_id,confidence\n"
GOOD = f"{HEADER}norm_robust,5,1,{A},1.0\nnorm_robust,5,2,{B},1.0\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "list.csv"
    path.write_text(text)
    return path


def test_published_candidates() -> None:
    """Five of a class are its Top-5, those from beyond the list its reserve."""
    found = published_candidates("norm_robust")
    assert found[["tier", "rank"]].value_counts().to_dict() == {
        ("top5", 1): 997, ("top5", 2): 994, ("top5", 3): 990, ("top5", 4): 988, ("top5", 5): 984,
        ("reserve", 6): 58, ("reserve", 7): 32, ("reserve", 8): 17,
    }  # fmt: skip
    assert found.loc[found["class_index"] == 0, ["image_id", "rank"]].to_numpy().tolist() == [
        ["ILSVRC2012_val_00024327", 1], ["ILSVRC2012_val_00017699", 2], ["ILSVRC2012_val_00029930", 3],
        ["ILSVRC2012_val_00016018", 4], ["ILSVRC2012_val_00017700", 5],
    ]  # fmt: skip
    assert set(published_candidates("standard")["tier"]) == {"top5"}


def test_top5(tmp_path: Path) -> None:
    table = read_top5(written(tmp_path, GOOD.replace("1.0\n", "0.9996748566627502\n")), LABELS)
    assert table.to_dict("list") == {
        "model": ["norm_robust"] * 2,
        "class_index": [5, 5],
        "rank": [1, 2],
        "image_id": [A, B],
        "confidence": [float(np.float32(0.9996748566627502))] * 2,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace(B, "ILSVRC2012_val_00000004"), "line 3: 'ILSVRC2012_val_00000004' is not in the index"),
        (
            GOOD.replace(B, A),
            f"line 3: model 'norm_robust', image_id '{A}' a second time, after line 2; expected it once",
        ),
        (GOOD.replace(B, C), f"line 3: {C} in the list of class 5, its labels: 6, 7; expected this class"),
        (GOOD.replace(",5,", ",6,"), f"line 2: {A} in the list of class 6, its labels: 5"),
        (GOOD.replace("5,2", "5,3"), "line 3: rank 3 out of order; expected ranks from 1"),
        (GOOD.replace("5,1", "5,2"), "line 2: rank 2 out of order"),
        (GOOD.replace(f"{A},1.0", f"{A},0.5"), f"line 3: {B} out of order; expected falling confidence"),
        (GOOD.replace(A, "?").replace(B, A).replace("?", B), f"line 3: {A} out of order; .* equal ones by image id"),
        (
            GOOD + f"standard,5,1,{A},1.0\nnorm_robust,5,1,{B},1.0\n",
            f"line 5: .*, image_id '{B}' a second time",
        ),
        (GOOD.replace("1.0\n", "nan\n"), "line 2, confidence: 'nan'; expected a probability from 0 to 1"),
        (GOOD.replace("1.0\n", "1.5\n"), "line 2, confidence: '1.5'; expected a probability"),
        *(
            (GOOD.replace("1.0\n", f"{text}\n"), "line 2, confidence: .*; expected a probability")
            for text in ("\uff11.0", "0.9_9", " 1.0", "\u0661", "+1", "1" * 50, "")
        ),
        *(
            (GOOD.replace("norm_robust", text), r"line 2, model: .*; expected a role, such as standard")
            for text in ("norm\u2028robust", "norm robust", "", "Norm", "\uff4eorm")
        ),
        (GOOD.replace("5,1", "1000,1"), "line 2, class_index: '1000'; expected a number from 0 to 999"),
        (GOOD.replace("5,1", "5,x"), "line 2, rank: 'x'; expected a number from 1 to 5"),
        (GOOD.replace("rank", "place"), "line 1: .*; expected the header model,class_index,rank"),
        (GOOD + "norm_robust,5\n", "line 4: 2 cells"),
    ],
)
def test_top5_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CleansetError, match=f"list.csv, {message}"):
        read_top5(written(tmp_path, text), LABELS)


def test_a_list_in_two_pieces(tmp_path: Path) -> None:
    labels = dict(LABELS) | {C: [6]}
    text = f"{HEADER}norm_robust,5,1,{A},1.0\nnorm_robust,6,1,{C},1.0\nnorm_robust,5,1,{B},1.0\n"
    with pytest.raises(CleansetError, match="line 4: rank 1 out of order"):
        read_top5(written(tmp_path, text), labels)


POOL = "class_index,correct,listed\n" + "".join(f"{index},9,5\n" for index in range(1000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (POOL.replace("\n7,9,5\n", "\n7,4,5\n"), "line 9: 5 images listed of 4 correct ones"),
        (POOL.replace("\n7,9,5\n", "\n"), "line 9: class 8; expected 7"),
        (POOL.replace("\n999,9,5\n", "\n"), "999 classes; expected 1000"),
        (POOL.replace("\n7,9,5\n", "\n7,9,6\n"), "line 9, listed: '6'; expected a number from 0 to 5"),
    ],
)
def test_pool_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        read_pool(written(tmp_path, text))


def test_pool_and_lists_together() -> None:
    pool = pd.DataFrame({"class_index": [0, 1], "correct": [3, 1], "listed": [2, 0]})
    listed = pd.DataFrame({"class_index": [0, 0], "image_id": ["a", "b"]})
    check_pool(pool, listed, {0: ["c"], 1: ["d"]})
    with pytest.raises(CleansetError, match=r"class 0: 2 images listed, top5\.csv has 1"):
        check_pool(pool, listed[:1], {})
    with pytest.raises(CleansetError, match=r"class 1: 2 images are listed or reviewed .* classifies 1 correctly"):
        check_pool(pool, listed, {1: ["d", "e"]})


@pytest.mark.slow
def test_the_published_lists(repository: Path) -> None:
    """The figures that go with them: the numbers of rows, of saturated confidences, of tied neighbours."""
    table = read_top5(repository / "imagenet" / "published" / "top5.csv", real_labels())
    assert table["model"].value_counts().to_dict() == {
        "standard": 4967, "norm_robust": 4951, "corruption_robust": 4965,
    }  # fmt: skip
    ties = {}
    for role, rows in table.groupby("model"):
        same = rows["confidence"].eq(rows["confidence"].shift()) & rows["class_index"].eq(rows["class_index"].shift())
        ties[str(role)] = int(same.sum()), rows.loc[same, "class_index"].nunique()
    assert ties == {"standard": (1349, 482), "norm_robust": (20, 12), "corruption_robust": (0, 0)}
    pool = read_pool(repository / "imagenet" / "published" / "pool.csv")
    mine = table[table["model"] == PUBLISHED_MODEL]
    check_pool(pool, mine, {})
    in_lists = pool[pool["listed"] > 0]
    assert len(in_lists) == 996
    assert (in_lists["listed"] == in_lists["correct"].clip(upper=5)).all()
