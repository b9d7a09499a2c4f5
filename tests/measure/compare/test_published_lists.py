"""A score table beside a published list of a model's most confident images."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.dataset.ilsvrc import image_id, timm_info
from cleanset.dataset.labels import read_reassessed
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.tables import SCORES
from published_lists import ListAgreement, compare_with_list, list_of, run
from tests.properties import examples
from tests.stages.test_stages import SCORE_ROWS, Row, answer, edition_in, put

HEADER = "model,class_index,rank,image_id,confidence\n"


def listed(*rows: tuple[int, int, str, float]) -> pd.DataFrame:
    """A published list: class index, rank, image id, confidence."""
    table = pd.DataFrame(rows, columns=["class_index", "rank", "image_id", "confidence"])
    return table.astype({"confidence": "float32"})


def index_of(labels: dict[str, list[int]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "image_id": list(labels),
            "ilsvrc_class": 0,
            "real_classes": list(labels.values()),
            "single": [len(each) == 1 for each in labels.values()],
        }
    )


def scores_of(answers: dict[str, tuple[int, float, float]]) -> pd.DataFrame:
    """By image id: top-1 class, its confidence, its log-odds."""
    return pd.DataFrame(
        {
            "image_id": list(answers),
            "top5_class": [np.arange(top1, top1 + 5, dtype=np.int16) for top1, _, _ in answers.values()],
            "top5_probability": [np.array([each, 0, 0, 0, 0], np.float32) for _, each, _ in answers.values()],
            "log_odds": np.array([each for _, _, each in answers.values()], np.float32),
        }
    )


@pytest.mark.parametrize(
    ("order", "by_log_odds", "by_float32"),
    [
        ("abcde", ListAgreement([], [], [3]), ListAgreement([3], [], [])),
        ("fedcb", ListAgreement([3], [], []), ListAgreement([], [], [3])),
        ("edcab", ListAgreement([], [], [3]), ListAgreement([], [3], [])),
    ],
)
def test_saturated_confidences(order: str, by_log_odds: ListAgreement, by_float32: ListAgreement) -> None:
    """Six images of class 3 with a confidence of 1 in float32; by image id a to f, by log-odds f to a."""
    scores = scores_of({name: (3, 1.0, 20.0 + place) for place, name in enumerate("abcdef")})
    published = listed(*((3, rank, name, 1.0) for rank, name in enumerate(order, start=1)))
    found = compare_with_list(index_of({name: [3] for name in "abcdef"}), scores, published)
    assert found.by_order == {"log_odds": by_log_odds, "float32": by_float32}
    assert found.same == (order != "edcab")


def test_confidences_of_the_images_that_are_classified_as_listed() -> None:
    index = index_of({"a": [3], "b": [3], "c": [4], "d": [3, 4], "e": [5]})
    scores = scores_of({"a": (3, 0.5, 0), "b": (9, 0.75, 1), "c": (4, 0.75, 1), "d": (3, 0.9, 2), "e": (5, 0.5, 0)})
    found = compare_with_list(index, scores, listed((3, 1, "b", 0.875), (3, 2, "a", 0.75), (4, 1, "c", 0.625)))
    assert found.confidences.misclassified == ["b"]
    assert found.confidences.differences.to_dict("records") == [
        {"image_id": "a", "class_index": 3, "rank": 2, "published": 0.75, "found": 0.5, "difference": 0.25},
        {"image_id": "c", "class_index": 4, "rank": 1, "published": 0.625, "found": 0.75, "difference": 0.125},
    ]
    assert (found.confidences.largest, found.confidences.mean) == (0.25, 0.1875)
    assert found.by_order["log_odds"] == ListAgreement([4], [], [3])
    assert found.not_listed == [5]  # image e; d has two labels


def test_every_image_misclassified() -> None:
    found = compare_with_list(index_of({"a": [3]}), scores_of({"a": (4, 0.5, 0)}), listed((3, 1, "a", 0.5)))
    assert (found.confidences.misclassified, found.confidences.largest, found.confidences.mean) == (["a"], None, None)


@pytest.mark.long
@examples(50, fast=10)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from([0.25, 0.5, 1.0])), min_size=1, max_size=24
    )
)
@pytest.mark.slow
def test_a_list_made_from_the_scores_agrees_with_them(images: list[tuple[int, int, float]]) -> None:
    """Label, top-1 class and confidence of each image; the list is made by plain sorting."""
    names = [f"{number:02d}" for number in range(len(images))]
    rows = []
    for class_index in range(3):
        own = [
            (-confidence, name)
            for name, (label, top1, confidence) in zip(names, images, strict=True)
            if label == top1 == class_index
        ]
        rows += [(class_index, rank, name, -key) for rank, (key, name) in enumerate(sorted(own)[:5], start=1)]
    index = index_of({name: [label] for name, (label, _, _) in zip(names, images, strict=True)})
    scores = scores_of({name: (top1, each, 0.0) for name, (_, top1, each) in zip(names, images, strict=True)})
    found = compare_with_list(index, scores, listed(*rows))
    assert found.same
    assert found.by_order["float32"].same_order == sorted({class_index for class_index, *_ in rows})
    assert found.confidences.largest in (None, 0.0)


# The command

LISTS = (
    HEADER
    + """\
standard,0,1,ILSVRC2012_val_00000001,0.875
standard,0,2,ILSVRC2012_val_00000002,0.8125
standard,0,3,ILSVRC2012_val_00000003,0.625
standard,0,4,ILSVRC2012_val_00000004,0.5
standard,1,1,ILSVRC2012_val_00000008,0.75
standard,1,2,ILSVRC2012_val_00000005,0.5
norm_robust,1,1,ILSVRC2012_val_00000008,0.75
norm_robust,1,2,ILSVRC2012_val_00000005,0.5
"""
)

LINES = """\
A  data/scores/standard.parquet
B  top5.csv, standard

classes listed               2
  the same images            1
  in the same order          0
images listed                6
  misclassified              1
  largest difference     0.125 in probability, of the others
  mean difference       0.0625

most different          difference  class      rank  A         B
ILSVRC2012_val_00000003      0.125  n01440764     3  0.500000  0.625000
ILSVRC2012_val_00000004      0.125  n01440764     4  0.625000  0.500000
"""
TABLE, TOP5 = Path("data/scores/standard.parquet"), Path("top5.csv")


@pytest.fixture
def edition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Edition:
    """The tiny edition of the stages' tests, and published lists; it is the current folder."""
    edition = edition_in(tmp_path / "edition")
    (edition.folder / "top5.csv").write_text(LISTS)
    monkeypatch.chdir(edition.folder)
    return edition


def test_lines(edition: Edition, capsys: pytest.CaptureFixture[str]) -> None:
    """Class 0 in another order; in class 1 image 8 is misclassified."""
    assert not run(TABLE, TOP5, None, "standard", 2, False)
    assert capsys.readouterr().out == LINES
    assert max(map(len, LINES.splitlines())) <= 80


def test_json_and_another_role(edition: Edition, capsys: pytest.CaptureFixture[str]) -> None:
    assert not run(TABLE, TOP5, None, "norm_robust", 1, True)
    same = {"listed": 1, "same_images": 0, "same_order": 0, "other_images": ["n01443537"]}
    assert json.loads(capsys.readouterr().out) == {
        "kind": "published list",
        "a": "data/scores/standard.parquet",
        "b": "top5.csv",
        "model": "norm_robust",
        "same": False,
        "classes": {"log_odds": same, "float32": same},
        "not_listed": ["n01440764"],
        "images": 2,
        "classified": 1,
        "misclassified": 1,
        "largest_difference": 0.0,
        "mean_difference": 0.0,
        "misclassified_images": ["ILSVRC2012_val_00000008"],
        "most_different": [
            {
                "wnid": "n01443537", "image_id": "ILSVRC2012_val_00000005", "rank": 2, "published": 0.5, "found": 0.5,
                "difference": 0.0,
            }
        ],
    }  # fmt: skip


def test_the_same_images_in_the_same_order(edition: Edition, capsys: pytest.CaptureFixture[str]) -> None:
    """The scores are elsewhere."""
    rows: list[Row] = [*SCORE_ROWS["standard"]]
    rows[7] = answer(8, 1, 0.625)
    put(edition.folder / "standard.parquet", rows, SCORES)
    published = [(0, 1, 1, 0.875), (0, 2, 2, 0.75), (0, 3, 4, 0.625), (0, 4, 3, 0.5), (1, 1, 8, 0.625), (1, 2, 5, 0.5)]
    lines = [f"standard,{index},{rank},ILSVRC2012_val_{n:08d},{each}\n" for index, rank, n, each in published]
    TOP5.write_text(HEADER + "".join(lines))
    assert run(Path("standard.parquet"), TOP5, Path(), "standard", 0, False)
    assert "  in the same order          2\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "role", "message"),
    [
        ("", "", "vit", "top5.csv: no list of model 'vit'; expected one of standard, norm_robust; or, if these lists"),
        ("00000008", "00000009", "standard", "top5.csv, line 6: 'ILSVRC2012_val_00000009' is not in the index; .*"
         "or, if these lists are of other images than the 8 of data/index.parquet, give their --edition"),
        ("standard,1,1", "standard,0,5", "standard", "top5.csv, line 6: ILSVRC2012_val_00000008 in the list of"),
    ],
)  # fmt: skip
def test_lists_that_do_not_fit(edition: Edition, before: str, after: str, role: str, message: str) -> None:
    TOP5.write_text(LISTS.replace(before, after))
    with pytest.raises(CleansetError, match=f"^{message}"):
        run(TABLE, TOP5, None, role, 1, False)


def test_scores_that_do_not_fit(edition: Edition) -> None:
    put(edition.scores("standard"), SCORE_ROWS["standard"][1:], SCORES)
    with pytest.raises(CleansetError, match=r"scores: no row for ILSVRC2012_val_00000001; expected one for each"):
        run(TABLE, TOP5, None, "standard", 1, False)
    edition.index.unlink()
    with pytest.raises(CleansetError, match=r"data/index.parquet: missing; expected the index beside the folder of"):
        run(TABLE, TOP5, None, "standard", 1, False)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("role", ["standard", "norm_robust", "corruption_robust"])
def test_scores_that_say_what_the_published_list_says(repository: Path, role: str) -> None:
    """With the real labels: every listed image with its confidence, every other one misclassified."""
    labels = read_reassessed(timm_info("imagenet_real_labels.json").read_text(encoding="utf-8"), "timm")
    index = index_of({image_id(number): each for number, each in enumerate(labels, start=1)})
    list_of_role = list_of(repository / "imagenet" / "published" / "top5.csv", role, index)
    known = {name: (top1, each) for name, top1, each in list_of_role[["image_id", "class_index", "confidence"]].values}
    wrong = {name: (each[0] + 1) % 995 if each else 0 for name, each in zip(index["image_id"], labels, strict=True)}
    scores = scores_of({name: (*known.get(name, (other, 0.5)), 0.0) for name, other in wrong.items()})
    found = compare_with_list(index, scores, list_of_role)
    assert found.same
    assert [len(each.same_order) for each in found.by_order.values()] == [996, 996]  # all log-odds are the same here
    assert (found.not_listed, found.confidences.misclassified, found.confidences.largest) == ([], [], 0.0)
    assert found.confidences.listed == {"standard": 4967, "norm_robust": 4951, "corruption_robust": 4965}[role]
