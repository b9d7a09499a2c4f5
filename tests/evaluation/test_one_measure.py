"""One number with its interval: its rows, its JSON, Holm's correction; and that no other record is one."""

import ast
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cleanset.evaluation.measures import (
    Difference,
    Measure,
    columns_of,
    corrected,
    images_text,
    measures_frame,
    metrics_of,
    read_measures,
)
from cleanset.evaluation.table import Cell, cell

SOURCE = Path(__file__).parents[2] / "src" / "cleanset"
OTHERS = {
    "Cell": "texts",
    "ConfidenceBin": "the edges of a bin",
    "Interval": "the ends alone, in statistics",
    "Term": "an estimate of a regression",
}
"""The classes that have `low` and `high`, too, and what these are there."""
MISSING = {
    "evaluation/factors.py": "the ratio in a resample without the factor, in an array",
    "evaluation/measures.py": "the record itself",
    "evaluation/predictions.py": "a field of a file that is not a number, which is refused",
    "sets/image_set.py": "a missing probability in a data frame",
    "statistics/bootstrap.py": "no level of an interval",
    "statistics/differences.py": "no interval",
    "statistics/groups.py": "no interval",
    "statistics/raters.py": "resamples in an array, which are left out",
    "studies/attacks/probing.py": "images in an array, which are left out",
    "studies/attacks/results.py": "numbers of a Measure, which has the reason",
    "studies/robustness/corruptions/measures.py": "resamples in an array, of a Sampled with a reason",
    "studies/robustness/evaluation.py": "an interval that is not shown",
    "studies/robustness/results.py": "no p-value",
    "studies/robustness/sampled.py": "a Sampled, whose reason is next to it",
    "studies/robustness/scenarios/by_image.py": "terms of a test that has no variation, in a file",
    "studies/robustness/scenarios/family.py": "the spread of one level, in a file",
    "studies/robustness/scenarios/regression.py": "terms of a test that has none, in a file",
    "studies/training/accuracies.py": "the spread of one fold, in a file",
    "studies/training/experiments.py": "Score, whose reason is next to it in the file",
    "studies/training/segmentation/task.py": "labels in no image, which are left out of the mean",
}
"""The places where NaN is allowed, and why."""
COLUMNS = columns_of("model", "value", "low", "high", attack="change")


def test_a_measure_may_lack_interval_and_value() -> None:
    whole = Measure.of(0.5, (0.25, 0.75), measure="accuracy")
    assert (whole.value, whole.interval, whole.measure, whole.is_defined) == (0.5, (0.25, 0.75), "accuracy", True)
    assert json.dumps(whole.as_json()) == '{"value": 0.5, "interval": [0.25, 0.75]}'
    assert json.dumps(Measure.of(0.5).as_json()) == '{"value": 0.5, "interval": null}'
    undefined = Measure.of(None, problem="no images")
    assert json.dumps(undefined.as_json()) == '{"value": null, "interval": null, "problem": "no images"}'
    assert (undefined.is_defined, undefined.interval, math.isnan(undefined.value)) == (False, None, True)


@pytest.mark.parametrize("numbers", [{}, {"value": math.inf}, {"value": 0.5, "problem": "no images"}])
def test_no_value_has_a_reason_and_a_value_has_none(numbers: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"^error: value .*; expected a finite value, or the reason why there is none$"
    ):
        Measure(measure="error", **numbers)
    with pytest.raises(ValueError, match="expected the reason"):
        cell(numbers.get("value") if "problem" not in numbers else None)
    with pytest.raises(ValueError, match="expected the reason"):
        Cell("–")


def missing_numbers(path: Path) -> Iterator[str]:
    """NaN in the code: its constants, and functions that leave it out."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.expr):
            continue
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if isinstance(node, ast.Call) and ast.unparse(node).strip() in ("float('nan')", 'float("nan")'):
            name = "nan"
        if name in ("nan", "NAN") or re.fullmatch("nan(mean|median|std|var|sum|min|max|quantile|percentile)", name):
            yield f"line {node.lineno}: {name}"


def test_a_missing_number_is_a_measure_with_its_reason() -> None:
    """NaN only in arrays and statistics, from which measures are made, and for ends of intervals."""
    found = {
        path.relative_to(SOURCE).as_posix(): names
        for path in sorted(SOURCE.rglob("*.py"))
        if (names := list(missing_numbers(path)))
    }
    assert {name: names for name, names in found.items() if name not in MISSING} == {}
    # what needs no exception any more has none
    assert MISSING.keys() == found.keys()


def test_a_file_has_the_declared_columns_in_their_order() -> None:
    measures = [
        Measure(change="pgd", model="a", value=0.5),
        Measure(change="fgsm", model="b", value=0.25, low=0, high=1),
    ]
    table = measures_frame(measures, COLUMNS)
    assert table.columns.tolist() == ["attack", "model", "value", "low", "high"]
    assert table.iloc[1].tolist() == ["fgsm", "b", 0.25, 0, 1]
    # further columns, and another order of these, do not matter
    again = read_measures(table.assign(official="no")[["official", *reversed(table.columns)]], COLUMNS)
    assert again[1] == measures[1]
    assert math.isnan(again[0].low)
    empty = measures_frame([Measure(change="", model="a", value=0.5)], COLUMNS).replace("", math.nan)
    assert (read_measures(empty, COLUMNS)[0].change, read_measures(empty, COLUMNS)[0].value) == ("", 0.5)
    assert measures_frame([], COLUMNS).columns.tolist() == list(COLUMNS)
    assert isinstance(table, pd.DataFrame)


def test_holms_correction_is_over_those_tested_together() -> None:
    differences = [
        Difference(value=0, measure="error", model="a", other="b", p=0.01),
        Difference(value=0, measure="mce", model="a", other="b", p=0.5),
        Difference(value=0, measure="error", model="a", other="c", p=0.04),
        Difference(value=0, measure="error", model="b", other="c"),
        Difference(value=0, measure="error", model="b", other="d", p=0.02),
    ]
    found = corrected(differences, lambda each: each.measure)
    assert [each.p_holm for each in found[:3]] == [0.03, 0.5, 0.04]
    assert math.isnan(found[3].p_holm)
    assert found[4].p_holm == 0.04
    assert [(each.model, each.other) for each in found] == [(each.model, each.other) for each in differences]


def test_metrics_have_the_ends_of_some_measures() -> None:
    measures = [
        Measure(measure=measure, change="fog", model="a", value=0.12345678, low=0.1, high=math.nan)
        for measure in ("error", "ece")
    ]
    assert metrics_of(measures, lambda each: f"{each.change}/{each.measure}", ["error"]) == {
        "fog/error": {"a": 0.123457},
        "fog/error_low": {"a": 0.1},
        "fog/error_high": {"a": None},
        "fog/ece": {"a": 0.123457},
    }


@pytest.mark.parametrize(
    ("images", "text"), [({"a": 1200, "b": 1200}, "1,200"), ({"a": 1200, "b": 3}, "a 1,200, b 3"), ({"a": 3}, "3")]
)
def test_the_number_of_images(images: dict[str, int], text: str) -> None:
    assert images_text(images) == text


def test_no_other_class_is_a_number_with_its_interval() -> None:
    found = set()
    for path in SOURCE.rglob("*.py"):
        for each in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(each, ast.ClassDef):
                names = {ast.unparse(line.target) for line in each.body if isinstance(line, ast.AnnAssign)}
                if {"low", "high"} <= names:
                    found.add(each.name)
    assert found == {"Measure", *OTHERS}
