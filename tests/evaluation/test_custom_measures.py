"""Measures of users: each form of result, and what is refused."""

from pathlib import Path

import pandas as pd
import pytest

from cleanset.errors import CleansetError
from cleanset.evaluation.custom_measures import check_names, custom_measures

MODULE = """
def alone(predictions):
    return len(predictions) / 4

def with_interval(predictions):
    return 0.5, (0.25, 0.75)

def half(predictions):
    return 0.5, (0.25,)

def infinite(predictions):
    return float("inf")

def words(predictions):
    return "many"

def raising(predictions):
    return predictions["weight"]
"""
PREDICTIONS = pd.DataFrame({"class_index": [0, 1, 2]})
EXPECTED = "expected a finite number, or one with the two ends of its interval: value, (low, high)"


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_a_value_has_an_interval_where_the_function_gives_one() -> None:
    alone, whole = custom_measures(["mine:alone", "mine:with_interval"], PREDICTIONS, "net")
    assert (alone.name, alone.found.value, alone.found.interval) == ("mine:alone", 0.75, None)
    assert (whole.found.value, whole.found.low, whole.found.high) == (0.5, 0.25, 0.75)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("half", f"mine:half: gives (0.5, (0.25,)) for net; {EXPECTED}"),
        ("infinite", f"mine:infinite: gives inf for net; {EXPECTED}"),
        ("words", f"mine:words: gives 'many' for net; {EXPECTED}"),
        ("raising", f"mine:raising: raises KeyError ('weight') for the predictions of net; {EXPECTED}"),
    ],
)
def test_another_result_is_refused(name: str, words: str) -> None:
    with pytest.raises(CleansetError) as raised:
        custom_measures([f"mine:{name}"], PREDICTIONS, "net")
    assert str(raised.value) == words


def test_names() -> None:
    check_names(["mine:alone", "mine:half"])
    with pytest.raises(CleansetError, match="mine:alone: given twice; expected each measure once"):
        check_names(["mine:alone", "mine:alone"])
    with pytest.raises(CleansetError, match="'alone': expected MODULE:NAME of a function of the predictions"):
        check_names(["alone"])
