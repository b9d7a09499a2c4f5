"""What the metrics count, on tables written by hand."""

import numpy as np
import pandas as pd
import pytest

from cleanset.selection.metrics import accuracy, per_class, short_classes, totals
from cleanset.vocabulary import EXCLUSION_REASONS, REASONS
from tests.selection.by_hand import index_of, scores_of

KEPT_COLUMNS = ["image_id", "class_index", "tier", "crop", "box_unknown"]
NOT_KEPT_COLUMNS = ["image_id", "class_index", "tier", "reason", "open"]

SELECTION = pd.DataFrame(
    [
        ["a", 0, "top5", None, False],
        ["b", 0, "top5", (0, 0, 9, 9), False],
        ["c", 0, "reserve", None, True],
        ["d", 2, "relaxed", (0, 0, 9, 9), False],
    ],
    columns=KEPT_COLUMNS,
)
REJECTED = pd.DataFrame(
    [
        ["e", 0, "reserve", "not_needed", False],
        ["f", 1, "reserve", "watermark", False],
        ["g", 1, "reserve", "blur", False],
        ["h", 1, "reserve", "watermark", False],
        ["i", 2, "reserve", "unreviewed", True],
        ["j", 2, "reserve", "conflict", True],
        ["k", 2, "reserve", "unsure", False],
    ],
    columns=NOT_KEPT_COLUMNS,
)
NONE_KEPT, NONE_REJECTED = (
    pd.DataFrame(columns=KEPT_COLUMNS).astype({"box_unknown": bool}),
    pd.DataFrame(columns=NOT_KEPT_COLUMNS).astype({"open": bool}),
)


def test_images_of_each_class_also_of_an_empty_one() -> None:
    assert per_class(SELECTION, [0, 1, 2]) == {0: 3, 1: 0, 2: 1}


def test_only_the_classes_asked_for() -> None:
    assert per_class(SELECTION, [2]) == {2: 1}


def test_totals() -> None:
    numbers = totals(SELECTION, REJECTED, [0, 1, 2], 3)
    assert {name: number for name, number in numbers.items() if number} == {
        "images": 4,
        "images_cropped": 3,
        "images_box_unknown": 1,
        "images_top5": 2,
        "images_reserve": 1,
        "images_relaxed": 1,
        "classes_full": 1,
        "classes_short": 2,
        "classes_unsettled": 1,
        "rejected_watermark": 2,
        "rejected_blur": 1,
        "rejected_unsure": 1,
        "rejected_conflict": 1,
        "rejected_unreviewed": 1,
        "rejected_not_needed": 1,
    }


def test_a_line_for_each_reason_even_at_zero() -> None:
    numbers = totals(NONE_KEPT, NONE_REJECTED, [0, 1], 3)
    rejected = {name.removeprefix("rejected_") for name in numbers if name.startswith("rejected_")}
    assert rejected == set(EXCLUSION_REASONS)
    assert {name: number for name, number in numbers.items() if number} == {"classes_short": 2}


def test_the_reasons() -> None:
    """Those of a reviewer as released, in their order, whatever came between them; then the others."""
    count = len(REASONS)
    released = (
        "watermark", "text", "border", "collage", "filter", "noise", "blur", "drawing", "too_small",
        "artificial_background", "modification", "wrong_class", "several_objects", "duplicate", "other",
    )  # fmt: skip
    assert EXCLUSION_REASONS[:count] == REASONS
    assert tuple(reason for reason in REASONS if reason in released) == released
    assert EXCLUSION_REASONS[count:] == (
        "unsure", "wrong_after_crop", "conflict", "too_few_reviewers", "box_unknown", "unreviewed", "not_needed",
    )  # fmt: skip


def test_short_classes() -> None:
    assert short_classes(SELECTION, REJECTED, [0, 1, 2], 3).to_dict("records") == [
        {"class_index": 1, "kept": 0, "candidates": 3, "rejected": "watermark 2, blur 1"},
        {"class_index": 2, "kept": 1, "candidates": 4, "rejected": "conflict 1, unreviewed 1, unsure 1"},
    ]


def test_no_short_classes() -> None:
    table = short_classes(SELECTION, REJECTED, [0], 3)
    assert table.empty
    assert list(table.columns) == ["class_index", "kept", "candidates", "rejected"]


# Accuracy


def test_accuracy_on_original_and_reassessed_labels() -> None:
    index = index_of({"correct": [5], "moved": [6], "either": [5, 7], "none": [], "misclassified": [5], "third": [5]})
    index = index.assign(ilsvrc_class=np.array([5, 5, 5, 5, 5, 5], dtype=np.int16))
    scores = scores_of(
        {
            "correct": (5, 0.9),  # correct by every measure
            "moved": (6, 0.9),  # original label 5 is not even among 6..10; the reassessed one is met
            "either": (7, 0.9),  # one of two reassessed labels
            "none": (5, 0.9),  # the original label, but no reassessed one: not in the share of ReaL
            "misclassified": (900, 0.9),
            "third": (3, 0.9),  # 3, 4, 5, 6, 7: the original label is among the five
        },
        others=0.02,
    )
    assert accuracy(index, scores) == {
        "accuracy_top1": 33.33,  # correct, none: 2 of 6
        "accuracy_top5": 50.0,  # correct, none, third: 3 of 6
        "accuracy_real": 60.0,  # correct, moved, either: 3 of 5
        "correct_of_one_label": 2,  # correct, moved
    }


@pytest.mark.parametrize(("top1", "percent"), [(5, 100.0), (4, 0.0)])
def test_accuracy_joins_by_id_not_by_row(top1: int, percent: float) -> None:
    index = index_of({"a": [5], "b": [9]}).assign(ilsvrc_class=np.array([5, 9], dtype=np.int16))
    scores = scores_of({"b": (top1 + 4, 0.9), "a": (top1, 0.9)})
    assert accuracy(index, scores)["accuracy_top1"] == percent


def test_half_a_hundredth_of_a_percent_is_rounded_as_it_is() -> None:
    """261 of 480 is 54.375 %, although 100 * (261 / 480) is 54.37499999999999."""
    names = [f"{number:03d}" for number in range(480)]
    index = index_of({name: [5] for name in names}).assign(ilsvrc_class=np.full(480, 5, dtype=np.int16))
    scores = scores_of({name: (5 if number < 261 else 900, 0.9) for number, name in enumerate(names)})
    assert accuracy(index, scores)["accuracy_top1"] == 54.38


def test_the_top_five_are_unknown_where_the_top_1_class_alone_is() -> None:
    """A table of scores with class and confidence: the classes after the first stand for any."""
    index = index_of({"a": [2], "b": [3]}).assign(ilsvrc_class=np.array([2, 3], dtype=np.int16))
    predictions = {"a": (0, 0.9), "b": (3, 0.9)}
    assert accuracy(index, scores_of(predictions, others=0.02))["accuracy_top5"] == 100.0
    assert accuracy(index, scores_of(predictions)) == {
        "accuracy_top1": 50.0,
        "accuracy_real": 50.0,
        "correct_of_one_label": 1,
    }


def test_accuracy_if_no_image_has_a_label() -> None:
    index = index_of({"a": [], "b": []}).assign(ilsvrc_class=np.array([5, 9], dtype=np.int16))
    numbers = accuracy(index, scores_of({"a": (5, 0.9), "b": (1, 0.9)}, others=0.02))
    assert numbers == {"accuracy_top1": 50.0, "accuracy_top5": 50.0, "correct_of_one_label": 0}
