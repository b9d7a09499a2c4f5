"""Numbers as the tables of `cleanset evaluate` show them."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from cleanset.evaluation.measured_models import MeasuredModel, by_accuracy, ranked_pairs
from cleanset.evaluation.notes import Note
from cleanset.evaluation.pairs import compare_pairwise
from cleanset.evaluation.prediction_measures import Accuracy, Confusion, Measures
from cleanset.evaluation.rendering import confusion_counts, hardest_classes, pairs_table
from cleanset.evaluation.table import Cell, MeasureTable, cell


def test_a_cell() -> None:
    assert cell(261 / 480, (261 / 480, 0.98765)) == Cell("54.38", "54.38", "98.77")
    assert cell(math.nan, (0, 1), problem="no images") == Cell(problem="no images")
    assert cell(-0.00001, (-0.25, 0.25)) == Cell("0.00", "-25.00", "25.00")


def test_an_interval_is_shown_with_the_digits_that_tell_its_ends_apart() -> None:
    assert cell(0.99987, (0.99971, 0.99993), factor=1) == Cell("0.9999", "0.9997", "0.9999")
    assert cell(0.5, (0.4999999, 0.5000001)) == Cell("50.00000", "49.99999", "50.00001")
    # nothing to tell apart
    assert cell(0.5, (0.5, 0.5)) == Cell("50.00", "50.00", "50.00")


TABLE = MeasureTable(
    ("model",), ("accuracy", "p"),
    [
        (("a_1|b",), [cell(0.5, (0.25, 0.75), unit=" %"), Cell(problem="not tested")]),
        (("c",), [cell(-0.5, (-0.75, 0.25)), Cell("< 0.0001")]),
    ],
    "2_images",
    (Note("set", "a_1"), Note("limits", "None, or 5 %.")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            "latex",
            "\\begin{table}\n\\centering\n\\caption{2\\_images}\n"
            "\\begin{tabular}{lrr}\n\\toprule\nmodel & accuracy & p \\\\\n\\midrule\n"
            "a\\_1|b & 50.00 {\\scriptsize [25.00, 75.00]} & -- (1) \\\\\n"
            "c & $-$50.00 {\\scriptsize [$-$75.00, 25.00]} & $<$ 0.0001 \\\\\n\\bottomrule\n\\end{tabular}\n"
            "\\par\\smallskip{\\footnotesize\\raggedright\n"
            "No value: (1) not tested\\par\nSet: a\\_1\\par\nLimits: None, or 5 \\%.\\par\n}\n"
            "\\end{table}\n",
        ),
        (
            "markdown",
            "| model | accuracy | p |\n| --- | ---: | ---: |\n| a_1\\|b | 50.00 (25.00–75.00) | – (1) |\n"
            "| c | -50.00 (-75.00 to 25.00) | < 0.0001 |\n\n2_images\n\n"
            "- No value: (1) not tested\n- Set: a_1\n- Limits: None, or 5 %.\n",
        ),
        (
            "csv",
            'model,accuracy,"accuracy, low","accuracy, high",p,no value,set,limits\n'
            'a_1|b,50.00,25.00,75.00,,p: not tested,a_1,"None, or 5 %."\n'
            'c,-50.00,-75.00,25.00,< 0.0001,,a_1,"None, or 5 %."\n',
        ),
    ],
)
def test_a_table_for_a_paper(form: str, text: str) -> None:
    assert TABLE.in_form(form) == text


def model(
    name: str, classes: dict[int, tuple[int, int]], confusions: Sequence[tuple[int, int, int]] = ()
) -> MeasuredModel:
    """A model by the images and the correct images of each class, and its confusions."""
    accuracies = {index: Accuracy(*counts) for index, counts in classes.items()}
    images = sum(each.images for each in accuracies.values())
    overall = Accuracy(images, sum(each.correct for each in accuracies.values()))
    measures = Measures(
        overall=overall,
        top5=None,
        mean_confidence=None,
        bins=None,
        tiers={},
        classes=accuracies,
        confusions=tuple(Confusion(*each) for each in confusions),
    )
    return MeasuredModel(name=name, measures=measures, record={}, path=None, correct={})


def test_the_hardest_classes_are_cut_after_they_are_ordered() -> None:
    """Lowest mean accuracy first, of equal ones the lower class index; classes without a mistake are left out."""
    one = model("a", {2: (4, 3), 5: (4, 0), 7: (4, 4), 8: (4, 2), 9: (4, 2), 11: (4, 1)})
    assert hardest_classes([one], 10) == [5, 11, 8, 9, 2]
    assert [hardest_classes([one], most) for most in (0, 1, 2, 3)] == [[], [5], [5, 11], [5, 11, 8]]
    other = model("b", {2: (4, 0), 5: (4, 4), 7: (4, 4), 8: (4, 2), 9: (4, 2), 11: (4, 4)})
    # means of .375, .5, 1, .5, .5 and .625
    assert hardest_classes([one, other], 10) == [2, 5, 8, 9, 11]
    assert hardest_classes([one, other], 2) == [2, 5]


def test_the_most_frequent_confusions_are_cut_after_they_are_ordered() -> None:
    """By the images of all models together, then by label and prediction."""
    one = model("a", {1: (9, 0)}, [(3, 4, 5), (1, 2, 2), (1, 0, 2)])
    other = model("b", {1: (9, 0)}, [(1, 2, 4), (9, 8, 2), (3, 5, 1)])
    counts = confusion_counts([one, other], 10)
    assert counts == [(1, 2, [2, 4]), (3, 4, [5, 0]), (1, 0, [2, 0]), (9, 8, [0, 2]), (3, 5, [0, 1])]
    assert [confusion_counts([one, other], most) for most in (1, 3)] == [counts[:1], counts[:3]]


def test_models_of_the_same_accuracy_keep_their_order() -> None:
    rows = [model(name, {0: (4, correct)}) for name, correct in (("a", 2), ("b", 3), ("c", 2), ("d", 3))]
    assert [row.name for row in by_accuracy(rows)] == ["b", "d", "a", "c"]


def test_the_pairs_of_the_best_model_come_first() -> None:
    correct = {"a": [1, 0, 0], "b": [1, 1, 1], "c": [1, 1, 0]}
    rows = [
        replace(model(name, {0: (3, sum(each))}), correct={str(place): bool(one) for place, one in enumerate(each)})
        for name, each in correct.items()
    ]
    assert [(pair.model, pair.other) for pair in ranked_pairs(rows)] == [("b", "c"), ("b", "a"), ("c", "a")]


def printed(table: MeasureTable, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(table.in_terminal("\n", first=" "), highlight=False)
    return captured.get().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_column_is_cut_whatever_the_width(width: int) -> None:
    """Seven measures of two models: those that do not fit are in further blocks, each with the models again."""
    titles = ["accuracy", "macro accuracy", "top-5", "confidence", "ECE", "a further measure", "p"]
    names = ("one", "two")
    rows = [
        (("12", name), [cell((10 * row + place) / 40, (0.001, 0.999), unit=" %") for place in range(7)])
        for row, name in enumerate(names)
    ]
    lines = printed(MeasureTable(("#", "model"), titles, rows), width)
    assert max(map(len, lines)) <= width
    blocks = [block.splitlines() for block in "\n".join(lines).split("\n\n")]
    assert (len(blocks) == 1) == (width == 200)
    shown = [re.split(" {2,}", block[0].strip()) for block in blocks]
    assert [title for block in shown for title in block[2:]] == titles
    assert [block[:2] for block in shown] == [["#", "model"]] * len(blocks)
    assert all([line.split()[1] for line in block if "12 " in line] == list(names) for block in blocks)
    text = "\n".join(lines)
    for share in range(7):
        assert f" {2.5 * share:.2f} %" in text
    assert text.count("(0.10–99.90)") == 14


def test_a_table_without_measures_has_its_texts() -> None:
    lines = printed(MeasureTable(("#", "model"), (), [(("1", "one"), ())]), 80)
    assert [line.split() for line in lines] == [["#", "model"], ["1", "one"]]


@pytest.mark.parametrize(("names", "is_corrected"), [("ab", False), ("abc", True)])
def test_a_correction_is_named_where_there_are_several_pairs(names: str, is_corrected: bool) -> None:
    correct = {"a": [True, True, True], "b": [True, True, False], "c": [True, False, False]}
    pairs = compare_pairwise([(name, np.array(correct[name])) for name in names], ["1", "2", "3"])
    caption = pairs_table(list(names), pairs).caption
    assert ("p: McNemar's exact test, corrected by Holm's method." in caption) == is_corrected
    assert caption.endswith(".")
