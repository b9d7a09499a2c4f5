"""A score table beside a published list of a model's most confident images."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.tables import SCORES
from published_lists import ListAgreement, compare_with_list, run
from tests.selection.by_hand import index_of, scores_of
from tests.stages.test_stages import SCORE_ROWS, edition_in, put

HEADER = "model,class_index,rank,image_id,confidence\n"


def listed(*rows: tuple[int, int, str, float]) -> pd.DataFrame:
    """A published list: class index, rank, image id, confidence."""
    table = pd.DataFrame(rows, columns=["class_index", "rank", "image_id", "confidence"])
    return table.astype({"confidence": "float32"})


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
    scores = scores_of(dict.fromkeys("abcdef", (3, 1.0))).assign(log_odds=np.arange(20, 26, dtype=np.float32))
    published = listed(*((3, rank, name, 1.0) for rank, name in enumerate(order, start=1)))
    found = compare_with_list(index_of({name: [3] for name in "abcdef"}), scores, published)
    assert found.by_order == {"log_odds": by_log_odds, "float32": by_float32}
    assert found.same == (order != "edcab")


def test_confidences_of_the_images_that_are_classified_as_listed() -> None:
    index = index_of({"a": [3], "b": [3], "c": [4], "d": [3, 4], "e": [5]})
    scores = scores_of({"a": (3, 0.5), "b": (9, 0.75), "c": (4, 0.75), "d": (3, 0.9), "e": (5, 0.5)})
    found = compare_with_list(index, scores, listed((3, 1, "b", 0.875), (3, 2, "a", 0.75), (4, 1, "c", 0.625)))
    assert found.confidences.misclassified == ["b"]
    assert found.confidences.differences.to_dict("records") == [
        {"image_id": "a", "class_index": 3, "rank": 2, "published": 0.75, "found": 0.5, "difference": 0.25},
        {"image_id": "c", "class_index": 4, "rank": 1, "published": 0.625, "found": 0.75, "difference": 0.125},
    ]
    assert (found.confidences.largest, found.confidences.mean) == (0.25, 0.1875)
    assert found.by_order["log_odds"] == ListAgreement([4], [], [3])
    assert found.not_listed == [5]  # image e; d has two labels


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
