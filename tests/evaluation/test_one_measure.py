"""One number with its interval: its rows, its JSON, Holm's correction; and that no other record is one."""

import ast
import json
import math
from pathlib import Path

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

SOURCE = Path(__file__).parents[2] / "src" / "cleanset"
OTHERS = {
    "Cell": "texts",
    "ConfidenceBin": "the edges of a bin",
    "Interval": "the ends alone, in statistics",
    "Term": "an estimate of a regression",
}
"""The classes that have `low` and `high`, too, and what these are there."""
COLUMNS = columns_of("model", "value", "low", "high", attack="change")


def test_a_measure_may_lack_interval_and_value() -> None:
    whole = Measure.of(0.5, (0.25, 0.75), measure="accuracy")
    assert (whole.value, whole.interval, whole.measure, whole.is_defined) == (0.5, (0.25, 0.75), "accuracy", True)
    assert json.dumps(whole.as_json()) == '{"value": 0.5, "interval": [0.25, 0.75]}'
    assert json.dumps(Measure.of(0.5).as_json()) == '{"value": 0.5, "interval": null}'
    undefined = Measure.of(None, problem="no images")
    assert json.dumps(undefined.as_json()) == '{"value": null, "interval": null}'
    assert (undefined.is_defined, undefined.interval, math.isnan(undefined.value)) == (False, None, True)


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
        Difference(measure="error", model="a", other="b", p=0.01),
        Difference(measure="mce", model="a", other="b", p=0.5),
        Difference(measure="error", model="a", other="c", p=0.04),
        Difference(measure="error", model="b", other="c"),
        Difference(measure="error", model="b", other="d", p=0.02),
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
