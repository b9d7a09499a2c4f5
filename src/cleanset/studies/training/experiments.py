"""The experiments of source 002: accuracies by scenario, grids of runs, EX1 beside EX2, and table 3 with Score.

Accuracies are the mean and spread over folds, from counts on held-out images. Grids are runs of a study's params by
name, so that a laboratory runs those that it can pay for.

Table 3 has deviations from the accuracy on originals by scenario: external of a network trained on originals, internal
of the networks trained on each scenario. The published table compares each half with a mean of its own, the accuracy on
originals of a network trained like the networks of that half; the text uses the external mean for both. Published are
squares, their sum over n - 1, and 1 minus both variances.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.statistics.bootstrap import Interval
from cleanset.statistics.paired import fold_interval, unpaired_difference, wilson
from cleanset.studies.robustness.results import DEFINITIONS, records
from cleanset.studies.robustness.scenarios.measures import score_of_squares, spread, squared_deviations
from cleanset.studies.robustness.scenarios.params import ORIGINAL, SCENARIOS
from cleanset.studies.training.finished import FinishedRun, final_values, history_rows
from cleanset.studies.training.params import SegmentationMeasures
from cleanset.studies.training.segmentation.measures import tables as segmentation_tables
from cleanset.validation import check_known, join_names, shown

CELL = ["run", "fold", "scenario", "class_index"]
COUNTED = ["images", "correct"]
# images tested by images trained on, of one split of 80 and 20, as Nadeau and Bengio's variance takes it
SPLIT_TESTED_TO_TRAINED = 0.25


def in_order(scenarios: Iterable[str]) -> list[str]:
    """The scenarios, each once: originals, then the benchmark's in its order, then others by name."""
    wanted = set(scenarios)
    known = [name for name in (ORIGINAL, *SCENARIOS) if name in wanted]
    return known + sorted(wanted.difference(known))


def tested_to_trained(folds: int) -> float:
    """Images tested by images trained on: of a cross-validation, or of one split of 80 and 20."""
    return SPLIT_TESTED_TO_TRAINED if folds == 1 else 1 / (folds - 1)


def fold_accuracies(tests: pd.DataFrame) -> pd.DataFrame:
    """Images, correct ones, accuracy and mean loss by run, fold and scenario, from rows by class index besides.

    Raises CleansetError for a cell that is there twice, or has no images or more correct ones than images.
    """
    twice = tests[tests.duplicated(CELL)]
    if len(twice):
        raise CleansetError(f"{cell_name(twice.iloc[0])}: counted twice; expected one row: train the run again")
    wrong = tests[(tests["images"] < 1) | (tests["correct"] < 0) | (tests["correct"] > tests["images"])]
    if len(wrong):
        first = wrong.iloc[0]
        raise CleansetError(
            f"{cell_name(first)}: {first['correct']} of {first['images']} images correct; expected a share of at least "
            "one image: train the run again"
        )
    sums = tests.assign(weighted=tests["loss"] * tests["images"])
    found = sums.groupby(CELL[:3], sort=False)[[*COUNTED, "weighted"]].sum().reset_index()
    found["accuracy"] = found["correct"] / found["images"]
    found["loss"] = found["weighted"] / found["images"]
    return found.drop(columns="weighted")


def cell_name(row: pd.Series) -> str:
    """A row of a test table in a message."""
    return f"run {row['run']}, {row['fold']}, {row['scenario']}, class {row['class_index']}"


def mean_accuracies(by_fold: pd.DataFrame) -> pd.DataFrame:
    """By run and scenario: folds, images, correct ones, the mean accuracy over folds, its spread and interval, loss.

    `spread`: the standard deviation over folds with n - 1, NaN for one. Rows of `fold_accuracies`.
    """
    rows = []
    for (run, scenario), found in by_fold.groupby(["run", "scenario"], sort=False):
        accuracies = found["accuracy"].to_numpy("float64")
        images, correct = int(found["images"].sum()), int(found["correct"].sum())
        ends = share_interval(accuracies, correct, images)
        spread = float(accuracies.std(ddof=1)) if len(found) > 1 else math.nan
        mean, loss = accuracies.mean(), found["loss"].mean()
        rows.append((run, scenario, len(found), images, correct, mean, spread, *ends, loss))
    names = ["run", "scenario", "folds", *COUNTED, "accuracy", "spread", "low", "high", "loss"]
    return pd.DataFrame(rows, columns=names)


def share_interval(by_fold: np.ndarray, correct: int, images: int) -> Interval:
    """The interval of a mean share: over folds and over images, whichever end lies further out, within 0 to 1.

    Folds that agree by chance would have an interval without a width; images alone leave out how trainings differ.
    """
    low, high = wilson(correct, images)
    over_folds = fold_interval(by_fold, tested_to_trained(len(by_fold)))
    # one fold has no interval over folds: fmin and fmax leave NaN out
    return Interval(max(0.0, float(np.fmin(low, over_folds.low))), min(1.0, float(np.fmax(high, over_folds.high))))


def grid_runs(grids: Mapping[str, Sequence[str]], runs: Iterable[str], name: str) -> list[str]:
    """The runs of a grid, in the order of the runs; a grid is of names, and of patterns such as `ex2_*`.

    Raises CleansetError for an unknown grid, and for a name or pattern that fits no run.
    """
    known = list(runs)
    if not grids:
        raise CleansetError(f"grids: missing in params.yaml; expected {shown(name)} as a list of runs: add it")
    check_known("grid", name, grids)
    found = set[str]()
    for pattern in grids[name]:
        fitting = {run for run in known if fnmatchcase(run, pattern)}
        if not fitting:
            raise CleansetError(
                f"grids.{name}: {shown(pattern)} fits no run; expected names or patterns of {join_names(known)}"
            )
        found |= fitting
    return [run for run in known if run in found]


NOT_COMPARED = {"scenario", "test", "trained_on"}
"""Settings that may differ between EX1 and EX2 of the same network."""
OF_EX2 = {"early_stopping"}
"""Settings that source 002 names for EX2 alone."""


class RunPair(NamedTuple):
    """A network's runs that differ in the scenario alone: EX1 is trained on originals, EX2 on the scenario.

    `baseline`: trained on originals with EX2's settings, if run; otherwise EX1.
    """

    ex1: FinishedRun
    ex2: Mapping[str, FinishedRun]
    baseline: FinishedRun


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
            found.append(RunPair(ex1, ex2, own or ex1))
    return found


def gains(found: Iterable[RunPair], by_fold: pd.DataFrame) -> pd.DataFrame:
    """EX2's accuracy on its scenario minus EX1's, by network and scenario, as mean over the folds that both have.

    The interval is over folds, or over images for one fold and for folds that agree. `by_fold`: of `fold_accuracies`.
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
            ends, kind = _interval(both, differences)
            shares = float(both["accuracy_other"].mean()), float(both["accuracy"].mean())
            names = pair.ex1.network, pair.ex1.run.protocol, scenario, pair.ex1.name, ex2.name, len(both)
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


def table_2(found: Iterable[RunPair], means: pd.DataFrame) -> pd.DataFrame:
    """Accuracies in the form of source 002's table 2, its upper half trained on originals, its lower on each scenario.

    `trained_on`: `original`, or `scenario` if each accuracy comes from another run. `means`: of `mean_accuracies`.
    """
    cells = {(row["run"], row["scenario"]): row for row in means.to_dict("records")}
    rows = []
    for pair in found:
        tested = [name for name in in_order(name for run, name in cells if run == pair.ex1.name) if name != ORIGINAL]
        sources = [(ORIGINAL, pair.ex1, name) for name in tested]
        sources += [("scenario", run, name) for name, run in pair.ex2.items()]
        for trained_on, run, name in sources:
            numbers = [cells[run.name, name][key] for key in ("folds", "accuracy", "spread", "low", "high")]
            rows.append((trained_on, run.network, run.run.protocol, run.parameters, run.name, name, *numbers))
    names = ["trained_on", "network", "protocol", "parameters_in_millions", "run", "scenario"]
    found_rows = pd.DataFrame(rows, columns=[*names, "folds", "accuracy", "spread", "low", "high"])
    # the upper half of all networks first, as in the paper
    return found_rows.sort_values("trained_on", kind="stable", ignore_index=True)


MIN_SCENARIOS = 2
"""Scenarios that a variance needs."""


def deviations(found: Iterable[RunPair], means: pd.DataFrame) -> pd.DataFrame:
    """Accuracy and its squared deviation by network, part and scenario, of the scenarios that EX2 was trained on.

    `mu`: the accuracy on originals of EX1 for the external part, of the baseline for the internal one. `run`: the one
    that the accuracy is of. `means`: of `mean_accuracies`.
    """
    accuracies = means.set_index(["run", "scenario"])["accuracy"]
    rows = []
    for pair in found:
        for part, original in (("external", pair.ex1), ("internal", pair.baseline)):
            mu = float(accuracies[original.name, ORIGINAL])
            for name, ex2 in pair.ex2.items():
                run = pair.ex1 if part == "external" else ex2
                accuracy = float(accuracies[run.name, name])
                square = float(squared_deviations(np.array([accuracy]), mu)[0])
                rows.append((pair.ex1.network, pair.ex1.run.protocol, part, name, run.name, accuracy, mu, square))
    columns = ["network", "protocol", "part", "scenario", "run", "accuracy", "mu", "squared_deviation"]
    return pd.DataFrame(rows, columns=columns)


def trained_scores(found: Iterable[RunPair], table: pd.DataFrame) -> pd.DataFrame:
    """Score by both definitions of each network and its parts, from `deviations` of the same pairs.

    NaN, with the problem, for fewer than two scenarios.
    """
    scores = []
    for pair in found:
        runs = {pair.ex1.name, *(each.name for each in pair.ex2.values())}
        rows = table[table["run"].isin(runs) & (table["network"] == pair.ex1.network)]
        outer, inner = (rows[rows["part"] == part] for part in ("external", "internal"))
        outer_squares = outer["squared_deviation"].to_numpy("float64")
        for definition in DEFINITIONS:
            names = pair.ex1.network, pair.ex1.run.protocol, pair.ex1.name, definition, len(pair.ex2)
            if len(pair.ex2) < MIN_SCENARIOS:
                problem = f"{len(pair.ex2)} scenario; a variance needs {MIN_SCENARIOS} or more"
                scores.append((*names, np.nan, np.nan, np.nan, problem))
                continue
            mu = float((outer if definition == "as_written" else inner)["mu"].iloc[0])
            inner_squares = squared_deviations(inner["accuracy"].to_numpy("float64"), mu)
            external, internal = (float(spread(each, definition)) for each in (outer_squares, inner_squares))
            score = float(score_of_squares(outer_squares, inner_squares, definition))
            scores.append((*names, external, internal, score, ""))
    columns = ["network", "protocol", "run", "definition", "scenarios", "external", "internal", "score", "problem"]
    return pd.DataFrame(scores, columns=columns)


def inner_section(found: Iterable[RunPair], means: pd.DataFrame) -> dict[str, dict[str, float]]:
    """By network trained on originals, the values for `measures.scenarios.trained`, from `mean_accuracies`."""
    accuracies = means.set_index(["run", "scenario"])["accuracy"]
    section = {}
    for pair in found:
        runs = {ORIGINAL: pair.baseline, **pair.ex2}
        section[pair.ex1.name] = {name: round(float(accuracies[run.name, name]), 6) for name, run in runs.items()}
    return section


# decimals of numbers in tables and metrics: processors differ in the last digits of sums
DIGITS = 6


class Summary(NamedTuple):
    """The tables by the stem of their CSV file, and EX1 beside EX2 for the robustness study."""

    tables: Mapping[str, pd.DataFrame]
    trained: Mapping[str, Mapping[str, float]]

    def records(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table, NaN as None; empty without the table."""
        return records(self.tables[name]) if name in self.tables else []


def summarise(runs: Sequence[FinishedRun], measures: SegmentationMeasures) -> Summary:
    """All tables of finished runs."""
    rows = history_rows(runs)
    tables = {"runs": pd.DataFrame(map(_run_row, runs)), "histories": rows, "final_values": final_values(runs, rows)}
    trained = dict[str, dict[str, float]]()
    tested = [(each, tests) for each in runs if len(tests := each.tests())]
    classified = [(each, tests) for each, tests in tested if each.run.task == "classification"]
    if classified:
        of_class = pd.concat([tests for _, tests in classified], ignore_index=True)
        by_fold = fold_accuracies(of_class)
        means = mean_accuracies(by_fold)
        tables |= {"class_accuracies": of_class, "fold_accuracies": by_fold, "accuracies": means}
        if found := pairs(each for each, _ in classified):
            deviating = deviations(found, means)
            tables |= {"gains": gains(found, by_fold), "table_2": table_2(found, means), "deviations": deviating}
            tables["trained_scores"] = trained_scores(found, deviating)
            trained = inner_section(found, means)
    segmented = [tests for each, tests in tested if each.run.task == "segmentation"]
    if segmented:
        tables |= segmentation_tables(pd.concat(segmented, ignore_index=True), measures)
    return Summary({name: table.round(DIGITS) for name, table in tables.items()}, trained)


def _run_row(each: FinishedRun) -> dict[str, Any]:
    run, records = each.run, [fold.record for fold in each.folds]
    return {
        "run": each.name,
        "task": run.task,
        "recipe": run.recipe,
        "settings": run.training_recipe.settings_text(),
        "network": each.network,
        "parameters_in_millions": each.parameters,
        "scenario": run.scenario,
        "protocol": run.protocol,
        "size": run.size,
        "folds": len(records),
        "training_images": max(record.get("training_images", 0) for record in records),
        "epochs": round(float(np.mean([record["epochs"] for record in records])), 1),
        "kept_epochs": " ".join(str(int(record["epoch"])) for record in records),
        "kept": records[0].get("kept", "trained by an earlier version"),
        "trained_on": " ".join(run.trained_on or []),
    }
