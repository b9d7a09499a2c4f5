"""The experiments EX1 and EX2 of XIMAGENET-12: their runs next to each other, table 2, and table 3 with Score.

EX1 trains on originals and tests on every scenario, EX2 trains on one scenario and tests on it.

Table 3 has deviations from the accuracy on originals by scenario: external of a network trained on originals, internal
of the networks trained on each scenario. The published table compares each half with a mean of its own, the accuracy on
originals of a network trained like the networks of that half; the text uses the external mean for both. Published are
squares, their sum over n - 1, and 1 minus both variances.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.evaluation.measures import NAN, Difference, columns_of
from cleanset.statistics.basics import Floats, Interval
from cleanset.statistics.differences import fold_interval, unpaired_difference
from cleanset.statistics.formats import rounded
from cleanset.studies.robustness.results import DEFINITIONS
from cleanset.studies.robustness.scenarios.measures import score_of_squares, spread, squared_deviations
from cleanset.studies.robustness.scenarios.params import ORIGINAL
from cleanset.studies.training.accuracies import Means, in_order, tested_to_trained
from cleanset.studies.training.finished import FinishedRun

NOT_COMPARED = {"scenario", "test", "trained_on"}
"""Settings that may differ between EX1 and EX2 of the same network."""
OF_EX2 = {"early_stopping"}
"""Settings that XIMAGENET-12 names for EX2 alone."""


class RunPair(NamedTuple):
    """A network's runs that differ in the scenario alone."""

    ex1: FinishedRun
    """The run on originals that is tested on scenarios."""
    ex2: Mapping[str, FinishedRun]
    """By scenario the run that is trained on it."""
    baseline: FinishedRun
    """The run on originals with EX2's settings, if there is one; otherwise EX1."""
    name: str
    """EX1's name; where several pairs have one EX1, with that of the first run of EX2."""

    @property
    def names(self) -> dict[str, str]:
        """The first columns of its rows in tables."""
        return {"pair": self.name, "network": self.ex1.network, "protocol": self.ex1.run.protocol}

    @property
    def parts(self) -> dict[str, tuple[FinishedRun, Mapping[str, FinishedRun]]]:
        """The halves of table 3: the run whose accuracy on originals is the mean, and the run of each scenario."""
        external = dict.fromkeys(self.ex2, self.ex1)
        return {"external": (self.ex1, external), "internal": (self.baseline, self.ex2)}


def pairs(runs: Iterable[FinishedRun]) -> list[RunPair]:
    """The standard runs on originals that have at least one sibling trained on a scenario, in the order of the runs.

    EX1 may differ in settings of EX2, too; it is the one that is tested on scenarios. Raises CleansetError for two runs
    that differ in nothing but their names.
    """
    groups: dict[str, dict[str, FinishedRun]] = {}
    tested: dict[str, FinishedRun] = {}
    for each in runs:
        if each.run.recipe != "standard":
            continue
        if each.run.scenario == ORIGINAL and each.run.tests != [ORIGINAL]:
            tested.setdefault(each.run.model_dump_json(exclude=NOT_COMPARED | OF_EX2), each)
        siblings = groups.setdefault(each.run.model_dump_json(exclude=NOT_COMPARED), {})
        if (other := siblings.setdefault(each.run.scenario, each)) is not each:
            raise CleansetError(
                f"runs {other.name} and {each.name}: the same settings; expected one of them: remove one"
            )
    found = []
    for siblings in groups.values():
        ex2 = {name: siblings[name] for name in in_order(siblings) if name != ORIGINAL}
        ex1 = own = siblings.get(ORIGINAL)
        if own is None or own.run.tests == [ORIGINAL]:
            any_of_group = next(iter(siblings.values())).run
            ex1 = tested.get(any_of_group.model_dump_json(exclude=NOT_COMPARED | OF_EX2), own)
        if ex1 and ex2:
            found.append(RunPair(ex1, ex2, own or ex1, ex1.name))
    shared = Counter(pair.name for pair in found)
    return [pair if shared[pair.name] == 1 else _with_ex2_in_name(pair) for pair in found]


def _with_ex2_in_name(pair: RunPair) -> RunPair:
    first = next(iter(pair.ex2.values()))
    return pair._replace(name=f"{pair.ex1.name}, {first.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain(Difference):
    """EX2's accuracy on its scenario, the `change`, minus EX1's: as mean over the folds that both have."""

    pair: str
    """The name of the pair of runs."""
    network: str
    """The network of both."""
    protocol: str
    """The protocol of both."""
    folds: int
    """The number of folds that both have."""
    ex1_accuracy: float
    """The mean accuracy of EX1, which is `other`."""
    ex2_accuracy: float
    """The mean accuracy of EX2, which is `model`."""
    over: str
    """What the interval is over: folds, or images for one fold and for folds that agree."""


GAIN_COLUMNS = {
    **columns_of("pair", "network", "protocol"),
    **columns_of("folds", "ex1_accuracy", "ex2_accuracy", scenario="change", ex1="other", ex2="model"),
    **columns_of("low", "high", gain="value"),
    **columns_of(interval="over"),
}
"""The columns of gains.csv."""


def gains(found: Iterable[RunPair], by_fold: pd.DataFrame, parts: int) -> list[Gain]:
    """The gain of each network in each scenario that a run of its pair is trained on.

    `by_fold`: from `fold_accuracies`. `parts`: those that the images are divided into; a fold tests one. Raises
    CleansetError for runs without a fold in common.
    """
    rows = []
    for pair in found:
        for scenario, ex2 in pair.ex2.items():
            # by the folds that both have; the columns of EX1 end in _other
            one, other = (
                by_fold[(by_fold["run"] == run) & (by_fold["scenario"] == scenario)]
                for run in (ex2.name, pair.ex1.name)
            )
            both = one.merge(other, on="fold", suffixes=("", "_other"))
            if both.empty:
                raise CleansetError(
                    f"runs {pair.ex1.name} and {ex2.name}: no fold in common that is tested on {scenario}; expected "
                    "the same folds: train them again"
                )
            differences = (both["accuracy"] - both["accuracy_other"]).to_numpy("float64")
            interval, over = _interval(both, differences, parts)
            rows.append(
                Gain.of(
                    float(differences.mean()),
                    interval,
                    **pair.names,
                    measure="accuracy",
                    change=scenario,
                    model=ex2.name,
                    other=pair.ex1.name,
                    folds=len(both),
                    ex1_accuracy=float(both["accuracy_other"].mean()),
                    ex2_accuracy=float(both["accuracy"].mean()),
                    over=over,
                )
            )
    return rows


def _interval(both: pd.DataFrame, differences: Floats, parts: int) -> tuple[Interval, str]:
    """The interval of a mean difference within -1 to 1, and what it is over."""
    # folds that agree by chance would have an interval without a width
    if len(differences) > 1 and np.ptp(differences) > 0:
        found = fold_interval(differences, tested_to_trained(parts))
        return Interval(max(-1.0, found.low), min(1.0, found.high)), "folds"
    sums = both[["correct", "images", "correct_other", "images_other"]].sum()
    return unpaired_difference(*sums.astype(int).tolist()), "images"


CELL_COLUMNS = {**columns_of("folds"), **columns_of("spread", "low", "high", accuracy="value")}
"""The numbers of a cell of table 2."""


def table_2(found: Iterable[RunPair], means: Means) -> pd.DataFrame:
    """Accuracies as in XIMAGENET-12's table 2, its upper half trained on originals, its lower on each scenario.

    `trained_on`: `original`, or `scenario` if each accuracy comes from another run. `pair`: EX1's name in the upper
    half, whose rows two pairs may share.
    """
    rows = []
    for pair in found:
        tested = [name for name in in_order(name for run, name in means if run == pair.ex1.name) if name != ORIGINAL]
        sources = [(ORIGINAL, pair.ex1, name) for name in tested]
        sources += [("scenario", run, name) for name, run in pair.ex2.items()]
        for trained_on, run, scenario in sources:
            cell = means[run.name, scenario]
            rows.append(
                {
                    "trained_on": trained_on,
                    "pair": pair.ex1.name if trained_on == ORIGINAL else pair.name,
                    "network": run.network,
                    "protocol": run.run.protocol,
                    "parameters_in_millions": run.parameters,
                    "run": run.name,
                    "scenario": scenario,
                    **{column: getattr(cell, field) for column, field in CELL_COLUMNS.items()},
                }
            )
    # two pairs may have one EX1, whose rows are listed once
    table = pd.DataFrame(rows).drop_duplicates()
    # the upper half of all networks first, as in the paper
    return table.sort_values("trained_on", kind="stable", ignore_index=True)


MIN_SCENARIOS = 2
"""Scenarios that a variance needs."""


def deviations(found: Iterable[RunPair], means: Means) -> pd.DataFrame:
    """Accuracy and its squared deviation by network, part and scenario, of the scenarios that EX2 was trained on.

    `mu`: the accuracy on originals of EX1 for the external part, of the baseline for the internal one. `run`: the one
    that the accuracy is of.
    """
    rows = []
    for pair in found:
        for part, (original, runs) in pair.parts.items():
            mu = means[original.name, ORIGINAL].value
            for name, run in runs.items():
                accuracy = means[run.name, name].value
                rows.append(
                    {
                        **pair.names,
                        "part": part,
                        "scenario": name,
                        "run": run.name,
                        "accuracy": accuracy,
                        "mu": mu,
                        "squared_deviation": float(squared_deviations(np.array([accuracy]), mu)[0]),
                    }
                )
    return pd.DataFrame(rows)


def trained_scores(found: Iterable[RunPair], means: Means) -> pd.DataFrame:
    """Score by both definitions of each network and its parts, from the squared deviations of each pair.

    NaN, with the problem, for fewer than two scenarios.
    """
    scores = []
    for pair in found:
        outer, inner = (
            np.array([means[run.name, name].value for name, run in runs.items()]) for _, runs in pair.parts.values()
        )
        outer_mu, inner_mu = (means[original.name, ORIGINAL].value for original, _ in pair.parts.values())
        outer_squares = squared_deviations(outer, outer_mu)
        for definition in DEFINITIONS:
            row = {
                **pair.names,
                "run": pair.ex1.name,
                "definition": definition,
                "scenarios": len(pair.ex2),
                "external": NAN,
                "internal": NAN,
                "score": NAN,
                "problem": "",
            }
            scores.append(row)
            if len(pair.ex2) < MIN_SCENARIOS:
                row["problem"] = f"{len(pair.ex2)} scenario; a variance needs {MIN_SCENARIOS} or more"
                continue
            inner_squares = squared_deviations(inner, outer_mu if definition == "as_written" else inner_mu)
            row["external"] = float(spread(outer_squares, definition))
            row["internal"] = float(spread(inner_squares, definition))
            row["score"] = float(score_of_squares(outer_squares, inner_squares, definition))
    return pd.DataFrame(scores)


def inner_section(found: Iterable[RunPair], means: Means) -> dict[str, dict[str, float]]:
    """By the name of a pair, the values for `measures.scenarios.trained`."""
    section = {}
    for pair in found:
        runs = {ORIGINAL: pair.baseline, **pair.ex2}
        section[pair.name] = {name: rounded(means[run.name, name].value, 6) for name, run in runs.items()}
    return section
