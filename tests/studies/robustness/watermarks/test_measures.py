"""The measures of watermarked images, against counts written out."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from cleanset.classes import ClassTable, class_table, imagenet
from cleanset.evaluation.measures import Measure
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness.results import ALL, StudiedImages
from cleanset.studies.robustness.watermarks.measures import WatermarkStudy, by_class

CARTON = 478
CLASSES = [1, 1, 7, 7, CARTON, CARTON, CARTON, CARTON]
CLEAN_ANSWERS = [1, 1, 7, 3, CARTON, 2, 2, 2]
ANSWERS = {
    # five of eight correct, and one of the four that are not carton is taken for one
    "unchanged": [1, 1, 7, CARTON, CARTON, CARTON, 2, 2],
    # four of eight: three cartons and one other; two others are taken for one
    "watermark": [1, CARTON, CARTON, 3, CARTON, CARTON, CARTON, 2],
}


def study(
    answers: Mapping[str, Sequence[int]], classes: Sequence[int] = CLASSES, table: ClassTable | None = None
) -> WatermarkStudy:
    images = StudiedImages(
        class_indices=np.array(classes),
        sets=[[] for _ in classes],
        roles=["a"],
        bootstrap=Bootstrap(resamples=200),
        classes=table or imagenet(),
        selections=[ALL],
    )
    both = {"clean": CLEAN_ANSWERS[: len(classes)], **answers}
    return WatermarkStudy(images, {"a": {name: np.array(each)[:, np.newaxis] for name, each in both.items()}})


def measured(found: WatermarkStudy) -> dict[str, Measure]:
    return {line.measure: line for line in found.lines()}


def test_gaps_by_hand() -> None:
    lines = measured(study(ANSWERS))
    assert {name: line.value for name, line in lines.items()} == {
        "accuracy_clean": 4 / 8,
        "accuracy_unchanged": 5 / 8,
        "accuracy": 4 / 8,
        "in_w_gap": -1 / 8,
        # of the four cartons: 3 / 4 - 2 / 4
        "carton_gap": 1 / 4,
        # of the four others: 2 / 4 - 1 / 4
        "to_carton": 1 / 4,
    }
    for line in lines.values():
        assert line.low < line.value < line.high
        assert line.images == 8
        assert not line.problem


def test_a_model_that_sees_no_watermark_has_no_gap() -> None:
    lines = measured(study(dict.fromkeys(ANSWERS, CLASSES)))
    assert (lines["in_w_gap"].value, lines["carton_gap"].value, lines["to_carton"].value) == (0, 0, 0)
    # pseudo-images widen it: eight images prove no gap of exactly 0
    assert lines["in_w_gap"].low < 0 < lines["in_w_gap"].high


def test_one_carton_has_no_gap() -> None:
    kept = {name: each[:5] for name, each in ANSWERS.items()}
    lines = measured(study(kept, CLASSES[:5]))
    assert np.isnan(lines["carton_gap"].value)
    assert lines["carton_gap"].problem == "1 image of carton; intervals need 2 or more"
    assert lines["to_carton"].value == pytest.approx(1 / 4)


def test_other_classes_have_no_carton() -> None:
    table = class_table([(f"n{number:08}", f"class {number}") for number in range(8)], "here")
    kept = {name: each[:4] for name, each in ANSWERS.items()}
    lines = measured(study(kept, CLASSES[:4], table))
    assert lines["in_w_gap"].value == -2 / 4
    for name in ("carton_gap", "to_carton"):
        assert np.isnan(lines[name].value)
        assert lines[name].problem == "the classes have no carton (n02971356)"


def test_correct_ones_by_class() -> None:
    found = by_class(study(ANSWERS))
    assert found.values.tolist() == [
        ["a", "unchanged", 1, 2, 2],
        ["a", "unchanged", 7, 2, 1],
        ["a", "unchanged", CARTON, 4, 2],
        ["a", "watermark", 1, 2, 1],
        ["a", "watermark", 7, 2, 0],
        ["a", "watermark", CARTON, 4, 3],
    ]
