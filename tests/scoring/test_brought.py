"""Tables of scores that users bring."""

from pathlib import Path

import pytest

from cleanset.classes import ClassName, ClassTable
from cleanset.scoring.brought import read_scores

CLASSES = ClassTable(tuple(ClassName(class_index=index, key=f"{index:02d}", name="") for index in range(6)))
LABELS = {"a.png": [1], "b.png": [2]}
"""The labels of two images."""


@pytest.mark.parametrize("comma", [",", ", "])
def test_keys_of_classes_and_names_of_models_are_no_numbers(comma: str, tmp_path: Path) -> None:
    """Also where blanks follow the commas of the header."""
    path = tmp_path / "scores.csv"
    header = comma.join(["file", "model", "class", "confidence"])
    path.write_text(f"{header}\na.png,01,01,0.9\nb.png,01,03,0.8\n")
    scores = read_scores(path, "01", LABELS, CLASSES)
    assert [top5[0] for top5 in scores["top5_class"]] == [1, 3]
