"""Measures of users on predictions, by MODULE:NAME: a value, perhaps with an interval that `evaluate` adds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from cleanset.errors import CleansetError, raised
from cleanset.evaluation.measures import Measure
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.validation import is_callable_name, shown
from cleanset.scoring.own_code import code_digests, imported_callable

WHERE = "--custom-measure"
EXPECTED = "expected a finite number, or one with the two ends of its interval: value, (low, high)"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomMeasure:
    """A user's measure of a model."""

    name: str
    """MODULE:NAME of its function."""
    code: str
    """A digest of the function's module and of what it imports from its folder."""
    found: Measure
    """Value and interval."""

    def as_json(self) -> JsonObject:
        """For a result file."""
        return {**self.found.as_json(), "code": self.code}


def check_names(names: Sequence[str]) -> None:
    """Raise CleansetError unless each name is that of a callable, and given once."""
    for place, name in enumerate(names):
        if not is_callable_name(name):
            raise CleansetError(f"{WHERE} {shown(name)}: expected MODULE:NAME of a function of the predictions")
        if name in names[:place]:
            raise CleansetError(f"{WHERE} {name}: given twice; expected each measure once")
        imported_callable(name, f"{WHERE} {name}")


def custom_measures(names: Sequence[str], predictions: pd.DataFrame, model: str) -> list[CustomMeasure]:
    """The measures of a model's predictions, in the order of their names. Raises CleansetError for another result."""
    codes = code_digests(list(names), WHERE)
    return [
        CustomMeasure(name=name, code=codes[name], found=_measured(name, predictions.copy(), model)) for name in names
    ]


def _measured(name: str, predictions: pd.DataFrame, model: str) -> Measure:
    function = imported_callable(name, f"{WHERE} {name}")
    try:
        found = function(predictions)
    except (Exception, SystemExit) as error:  # whatever its code raises
        raise CleansetError(f"{name}: raises {raised(error)} for the predictions of {model}; {EXPECTED}") from None
    try:
        value, ends = found if isinstance(found, tuple) else (found, None)
        numbers = [float(each) for each in (value, *(ends or ()))]
    except (TypeError, ValueError):
        raise CleansetError(f"{name}: gives {shown(found)} for {model}; {EXPECTED}") from None
    if not all(map(math.isfinite, numbers)) or len(numbers) not in (1, 3):
        raise CleansetError(f"{name}: gives {shown(found)} for {model}; {EXPECTED}")
    return Measure.of(numbers[0], (numbers[1], numbers[2]) if len(numbers) == 3 else None)
