"""EX1 beside EX2: networks trained on originals and tested on all scenarios, and trained on each scenario."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.statistics.bootstrap import Interval
from cleanset.statistics.folds import fold_interval, unpaired_difference
from cleanset.studies.training.experiments.accuracies import (
    in_order,
    mean_accuracies,
    paired_folds,
    tested_to_trained,
)
from cleanset.studies.training.params import ORIGINAL


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run of classification, with all that it is compared by.

    `settings`: all other settings, with which two runs are the same but for the scenario. `parameters`: in millions.
    """

    name: str
    network: str
    recipe: str
    scenario: str
    protocol: str
    parameters: float
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pair:
    """A network's runs that differ in the scenario alone: EX1 is trained on originals, EX2 on the scenario."""

    ex1: ComparedRun
    ex2: Mapping[str, ComparedRun]


def pairs(runs: Iterable[ComparedRun]) -> list[Pair]:
    """The standard runs on originals that have at least one sibling trained on a scenario, in the order of the runs.

    Raises CleansetError for two runs that differ in nothing but their names.
    """
    groups: dict[str, dict[str, ComparedRun]] = {}
    for run in runs:
        if run.recipe != "standard":
            continue
        siblings = groups.setdefault(repr((run.network, run.protocol, sorted(run.settings.items()))), {})
        if run.scenario in siblings:
            raise CleansetError(
                f"runs {siblings[run.scenario].name} and {run.name}: the same settings; expected one of "
                "them: remove one"
            )
        siblings[run.scenario] = run
    found = []
    for siblings in groups.values():
        ex2 = {name: siblings[name] for name in in_order(siblings) if name != ORIGINAL}
        if ORIGINAL in siblings and ex2:
            found.append(Pair(siblings[ORIGINAL], ex2))
    return found


def gains(found: Iterable[Pair], by_fold: pd.DataFrame) -> pd.DataFrame:
    """EX2's accuracy on its scenario minus EX1's, by network and scenario, as mean over the folds that both have.

    The interval is over folds, or over images for one fold and for folds that agree. `by_fold`: of `fold_accuracies`.
    """
    rows = []
    for pair in found:
        for scenario, ex2 in pair.ex2.items():
            both = paired_folds(by_fold, ex2.name, scenario, pair.ex1.name, scenario)
            if both.empty:
                raise CleansetError(
                    f"runs {pair.ex1.name} and {ex2.name}: no fold in common that is tested on {scenario}; expected "
                    "the same folds: train them again"
                )
            differences = (both["accuracy"] - both["accuracy_other"]).to_numpy("float64")
            ends, kind = _interval(both, differences)
            shares = float(both["accuracy_other"].mean()), float(both["accuracy"].mean())
            names = pair.ex1.network, pair.ex1.protocol, scenario, pair.ex1.name, ex2.name, len(both)
            rows.append((*names, *shares, float(differences.mean()), ends.low, ends.high, kind))
    columns = ["network", "protocol", "scenario", "ex1", "ex2", "folds", "ex1_accuracy", "ex2_accuracy"]
    return pd.DataFrame(rows, columns=[*columns, "gain", "low", "high", "interval"])


def _interval(both: pd.DataFrame, differences: np.ndarray) -> tuple[Interval, str]:
    """The interval of a mean difference within -1 to 1, and what it is over."""
    # folds that agree by chance would have an interval without a width
    if len(differences) > 1 and np.ptp(differences) > 0:
        found = fold_interval(differences, tested_to_trained(len(differences)))
        return Interval(max(-1.0, found.low), min(1.0, found.high)), "folds"
    sums = both[["correct", "images", "correct_other", "images_other"]].sum()
    return unpaired_difference(*sums.astype(int).tolist()), "images"


def table_2(found: Iterable[Pair], by_fold: pd.DataFrame) -> pd.DataFrame:
    """Accuracies in the form of source 002's table 2, its upper half trained on originals, its lower on each scenario.

    `trained_on`: `original`, or `scenario` where each accuracy is that of another run.
    """
    cells = {(row["run"], row["scenario"]): row for row in mean_accuracies(by_fold).to_dict("records")}
    rows = []
    for pair in found:
        tested = [name for name in in_order(name for run, name in cells if run == pair.ex1.name) if name != ORIGINAL]
        sources = [(ORIGINAL, pair.ex1, name) for name in tested]
        sources += [("scenario", run, name) for name, run in pair.ex2.items()]
        for trained_on, run, name in sources:
            numbers = [cells[run.name, name][key] for key in ("folds", "accuracy", "spread", "low", "high")]
            rows.append((trained_on, run.network, run.protocol, run.parameters, run.name, name, *numbers))
    names = ["trained_on", "network", "protocol", "parameters_in_millions", "run", "scenario"]
    found_rows = pd.DataFrame(rows, columns=[*names, "folds", "accuracy", "spread", "low", "high"])
    # the upper half of all networks first, as in the paper
    return found_rows.sort_values("trained_on", kind="stable", ignore_index=True)
