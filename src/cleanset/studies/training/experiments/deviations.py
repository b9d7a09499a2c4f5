"""Table 3 of source 002: deviations from the accuracy on originals by scenario, external and internal, and Score.

External is a network trained on originals; internal are the networks trained on each scenario, against the accuracy on
originals of the one trained on them. Published are squares, their sum over n - 1, and 1 minus both variances.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from cleanset.studies.robustness.sampled import Definition
from cleanset.studies.robustness.scenarios.measures import score_of_squares, spread, squared_deviations
from cleanset.studies.training.experiments.accuracies import in_order, mean_accuracies
from cleanset.studies.training.experiments.pairs import Pair
from cleanset.studies.training.params import ORIGINAL

DEFINITIONS: tuple[Definition, ...] = ("as_published", "as_written")
MIN_SCENARIOS = 2
"""Scenarios that a variance needs."""


class TrainedScore(NamedTuple):
    """Score of a network and its parts; NaN, with the problem, for fewer than two scenarios."""

    network: str
    protocol: str
    run: str
    definition: Definition
    scenarios: int
    external: float
    internal: float
    score: float
    problem: str = ""


def deviations(found: Iterable[Pair], by_fold: pd.DataFrame) -> pd.DataFrame:
    """Accuracy and its squared deviation by network, part and scenario, of the scenarios that EX2 was trained on.

    `mu`: the accuracy on originals of the network trained on them. `run`: the one that the accuracy is of.
    """
    means = mean_accuracies(by_fold).set_index(["run", "scenario"])["accuracy"]
    rows = []
    for pair in found:
        mu = float(means[pair.ex1.name, ORIGINAL])
        for part in ("external", "internal"):
            for name, ex2 in pair.ex2.items():
                run = pair.ex1 if part == "external" else ex2
                accuracy = float(means[run.name, name])
                square = float(squared_deviations(np.array([accuracy]), mu)[0])
                rows.append((pair.ex1.network, pair.ex1.protocol, part, name, run.name, accuracy, mu, square))
    columns = ["network", "protocol", "part", "scenario", "run", "accuracy", "mu", "squared_deviation"]
    return pd.DataFrame(rows, columns=columns)


def trained_scores(found: Iterable[Pair], table: pd.DataFrame) -> list[TrainedScore]:
    """Score by both definitions of each network, from `deviations` of the same pairs."""
    scores = []
    for pair in found:
        runs = {pair.ex1.name, *(each.name for each in pair.ex2.values())}
        rows = table[table["run"].isin(runs) & (table["network"] == pair.ex1.network)]
        squares = {part: each["squared_deviation"].to_numpy("float64") for part, each in rows.groupby("part")}
        for definition in DEFINITIONS:
            names = pair.ex1.network, pair.ex1.protocol, pair.ex1.name, definition, len(pair.ex2)
            if len(pair.ex2) < MIN_SCENARIOS:
                problem = f"{len(pair.ex2)} scenario; a variance needs {MIN_SCENARIOS} or more"
                scores.append(TrainedScore(*names, np.nan, np.nan, np.nan, problem))
                continue
            external, internal = (float(spread(squares[part], definition)) for part in ("external", "internal"))
            score = float(score_of_squares(squares["external"], squares["internal"], definition))
            scores.append(TrainedScore(*names, external, internal, score))
    return scores


def inner_section(found: Iterable[Pair], by_fold: pd.DataFrame) -> dict[str, dict[str, float]]:
    """By network trained on originals, what the robustness study takes as `measures.scenarios.trained`."""
    means = mean_accuracies(by_fold).set_index(["run", "scenario"])["accuracy"]
    section = {}
    for pair in found:
        accuracies = {name: float(means[run.name, name]) for name, run in pair.ex2.items()}
        accuracies[ORIGINAL] = float(means[pair.ex1.name, ORIGINAL])
        section[pair.ex1.name] = {name: round(accuracies[name], 6) for name in in_order(accuracies)}
    return section
