"""Fewer than five classes have no top-5 accuracy: not in tables, on pages, or among the metrics."""

from pathlib import Path

import pandas as pd
import pytest

import cleanset as package
from cleanset.edition.paths import Edition
from cleanset.evaluation.prediction_measures import measure_predictions
from cleanset.selection.metrics import accuracy
from cleanset.tables import INDEX, SCORES, read_table
from tests.evaluation.compare.command import cleanset, says

ANSWER = {
    "class_index": [1], "tier": ["top5"], "prediction": [1], "correct": [True], "top5_class": [[1, 0, 2, -1, -1]],
}  # fmt: skip


@pytest.mark.slow
def test_no_table_or_page_has_it(own: Edition, tmp_path: Path) -> None:
    assert measure_predictions(pd.DataFrame(ANSWER), 3).top5 is None
    images = package.load("images", own.folder)
    rows = ["image,class_index,probability", *(f"{record['file']},{index},0.5" for _, index, record in images)]
    (tmp_path / "predictions.csv").write_text("\n".join(rows) + "\n")
    asked = ("evaluate", str(own.export("images")), "--predictions", "predictions.csv", "--report", "page")
    code, shown, errors = says(cleanset(*asked, cwd=tmp_path))
    assert (code, errors) == (0, "")
    page = next((tmp_path / "page").rglob("*.html")).read_text()
    assert ("100.00 %" in shown, "top-5" in shown, "top-5" in page) == (True, False, False)


def test_no_metric_is_it(own: Edition) -> None:
    classes = own.read_classes()
    index = read_table(own.index, INDEX, classes)
    scores = read_table(own.scores("images"), SCORES, classes)
    assert list(accuracy(index, scores)) == ["accuracy_top1", "accuracy_real", "correct_of_one_label"]
    five = scores.assign(
        top5_class=pd.Series([[0, 1, 2, 3, 4]] * len(scores), dtype=object),
        top5_probability=pd.Series([[0.6, 0.1, 0.1, 0.1, 0.1]] * len(scores), dtype=object),
    )
    assert "accuracy_top5" in accuracy(index, five)
