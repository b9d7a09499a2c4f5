"""XIMAGENET-12 (arXiv:2310.08182): table 3 from tables 2 and 5, tables 1, 4 and 6 from their estimates.

No answer of a network was published, so the tables are computed from one another. A regression is known by its
estimates and its residual sum of squares: any residuals will do that are orthogonal to the factors and have this sum.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cleanset.plumbing.yaml_files import data_beside
from cleanset.reproduce.numbers import Number, Reproduction, reproduction
from cleanset.statistics.basics import Floats
from cleanset.studies.robustness.scenarios.measures import score_of_squares, spread
from cleanset.studies.robustness.scenarios.regression import FACTORS, regression

PRINTED: Any = data_beside(__file__, "ximagenet_12.yaml")
CLASSES = 12
PARTS = ("external", "internal")
BASELINE = "original"
ROUNDING = 0.5
"""How far a printed number may be from what it was rounded from, in units of its last digit."""


def reproduce(_files: Path | None) -> Reproduction:
    """All numbers; no file is needed."""
    numbers = [*_squares(), *_variances(), *_scores(), *_means_of_classes(), *_effects()]
    for table in PRINTED["regressions"]:
        numbers += _regression_numbers(table)
    return reproduction(PRINTED, numbers)


def _unit(printed: str) -> float:
    """The unit of the last printed digit."""
    return float(10 ** -len(printed.partition(".")[2]))


def _squares() -> list[Number]:
    """Table 3's squared deviations in percent, from table 2 and the mean that was fitted to them."""
    found = []
    for part in PARTS:
        for model, row in PRINTED["table_3"][part].items():
            mu = PRINTED["fitted_mu"][part][model]
            # strict is left out: the last accuracy of ResNet50 is missing
            for scenario, accuracy, square in zip(
                PRINTED["scenarios"], PRINTED["table_2"][part][model], row["squares"], strict=False
            ):
                distance = abs(float(accuracy) - mu)
                found.append(
                    Number(
                        where="Table 3",
                        quantity=f"{model}, {part}, {scenario}, %",
                        printed=square,
                        computed=distance**2 / 100,
                        evidence="fitted",
                        # of the accuracy and of the mean, both to two decimals
                        slack=2 * distance * 2 * ROUNDING * _unit(accuracy) / 100,
                    )
                )
    return found


def _squares_of(part: str, model: str) -> Floats:
    return np.array(PRINTED["table_3"][part][model]["squares"], np.float64) / 100


def _variances() -> list[Number]:
    """Table 3's variances: sums of its squares over n - 1."""
    found = []
    for part in PARTS:
        for model, row in PRINTED["table_3"][part].items():
            squares = _squares_of(part, model)
            found.append(
                Number(
                    where="Table 3",
                    quantity=f"{model}, {part}, variance",
                    printed=row["variance"],
                    computed=float(spread(squares, "as_published")),
                    evidence="from other printed numbers",
                    slack=_variance_slack(len(squares)),
                )
            )
    return found


def _variance_slack(squares: int) -> float:
    return squares * ROUNDING * 1e-4 / (squares - 1)


def _scores() -> list[Number]:
    """Table 3's Score by both formulas: the one that was computed, and the text's."""
    found = []
    for model, printed in PRINTED["table_3"]["score"].items():
        external, internal = (_squares_of(part, model) for part in PARTS)
        found.append(
            Number(
                where="Table 3",
                quantity=f"{model}, Score as published",
                printed=printed,
                computed=float(score_of_squares(external, internal, "as_published")),
                evidence="from other printed numbers",
                slack=2 * _variance_slack(len(external)),
            )
        )
        found.append(
            Number(
                where="Table 3",
                quantity=f"{model}, Score as written",
                printed=printed,
                computed=float(score_of_squares(external, internal, "as_written")),
                evidence="from other printed numbers",
                note="the text's formula has standard deviations over n, the printed Score variances over n - 1",
            )
        )
    return found


def _means_of_classes() -> list[Number]:
    """Table 2's accuracies of DenseNet121 in percent, from the means of table 5's classes."""
    printed = dict(zip(PRINTED["scenarios"], PRINTED["table_2"]["external"]["DenseNet121"], strict=True))
    return [
        Number(
            where="Table 2",
            quantity=f"DenseNet121, {scenario}, %",
            printed=value,
            computed=100 * float(np.mean(np.array(PRINTED["table_5"][scenario], np.float64))),
            evidence="from other printed numbers",
            slack=100 * ROUNDING * 0.01,
            note="from table 5, whose cells are rounded to whole percents",
        )
        for scenario, value in printed.items()
    ]


def _effects() -> list[Number]:
    """The effects on accuracy that the text repeats, from the estimates of tables 1 and 6."""
    found = []
    for table, section, unit in (("table_1", "Section 3.2", 1), ("table_6", "Section 3.4", 100)):
        estimates = PRINTED["regressions"][table]["rows"]
        found += [
            Number(
                where=section,
                quantity=f"effect, {name}{', %' if unit > 1 else ''}",
                printed=printed,
                computed=unit * abs(float(estimates[name][0])),
                evidence="from other printed numbers",
                note="the text cuts the estimates of table 1 off, where it should round them",
            )
            for name, printed in PRINTED["effects"][table].items()
        ]
    return found


Results = dict[tuple[str, str], float]
"""The numbers of a regression by row and column."""


def _regression_numbers(table: str) -> list[Number]:
    """Standard errors, intervals and P of table 1 or 6, and its half of table 4."""
    printed = PRINTED["regressions"][table]
    rows: Mapping[str, Sequence[str]] = printed["rows"]
    inputs = [*(row[0] for row in rows.values()), printed["residual_ss"]]
    values = np.array(inputs, np.float64)
    # of four significant digits, zeros at the end are not printed
    steps = ROUNDING * 10.0 ** (np.floor(np.log10(np.abs(values))) - 3)

    def results(given: Floats) -> Results:
        return regression_results(given[:-1], float(given[-1]), list(rows), printed["baseline"])

    found = results(values)
    slack = _slack(results, values, steps, found)
    where = table.replace("_", " ").capitalize()
    numbers = []
    for name, (_, error, low, high, p) in rows.items():
        columns = {"standard error": error, "low": low, "high": high}
        is_t = not p.startswith("<") and float(p) > 1
        columns["t" if is_t else "P"] = p
        numbers += [
            Number(
                where=where,
                quantity=f"{name}, {column}",
                printed=text,
                computed=found[name, column],
                evidence="from other printed numbers",
                slack=slack[name, column],
                note="printed in the column of P, but t" if column == "t" else "",
            )
            for column, text in columns.items()
        ]
    for source, texts in printed["variance"].items():
        numbers += [
            Number(
                where="Table 4",
                quantity=f"{where}, {source}, {column}",
                printed=text,
                computed=found[source, column],
                evidence="from other printed numbers",
                slack=slack[source, column],
            )
            for column, text in zip(("SS", "DF", "MS", "F"), texts, strict=True)
            # the residual sum of squares is what the others are computed from
            if text and (source, column) != ("residual", "SS")
        ]
    return numbers


def _slack(results: Callable[[Floats], Results], values: Floats, steps: Floats, found: Results) -> Results:
    """How far each result can move when every input moves by its rounding, to first order."""
    slack = dict.fromkeys(found, 0.0)
    for place, step in enumerate(steps):
        moved = values.copy()
        moved[place] += step
        for key, value in results(moved).items():
            slack[key] += abs(value - found[key])
    return slack


def regression_results(estimates: Floats, residual_ss: float, names: Sequence[str], baseline: str) -> Results:
    """The numbers that follow from the estimates of a regression of accuracies by model, scenario and class.

    `names`: the names of the estimates, the intercept first, then `model NAME`, `scenario NAME` and `class NUMBER`.
    """
    levels: dict[str, Sequence[object]] = {
        "model": [baseline, *(each.removeprefix("model ") for each in names if each.startswith("model "))],
        "scenario": [BASELINE, *(each.removeprefix("scenario ") for each in names if each.startswith("scenario "))],
        "class_index": list(range(CLASSES)),
    }
    cells = _cells(estimates, residual_ss, levels)
    tables = regression(cells, [baseline, BASELINE, 0])
    found: Results = {}
    words = {"model": "model ", "scenario": "scenario ", "class_index": "class "}
    for row in tables["regression"].to_dict("records"):
        name = f"{words[row['factor']]}{row['level']}" if row["factor"] in words else names[0]
        columns = {"standard error": "standard_error", "low": "low", "high": "high", "t": "t", "P": "p"}
        found |= {(name, column): float(row[key]) for column, key in columns.items()}
    for row in tables["anova"].to_dict("records"):
        columns = {"SS": "ss", "DF": "df", "MS": "ms", "F": "f"}
        found |= {(row["source"], column): float(row[key]) for column, key in columns.items()}
    return found


def _cells(estimates: Floats, residual_ss: float, levels: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """Accuracies whose regression has these estimates and this residual sum of squares."""
    shape = tuple(len(levels[factor]) for factor in FACTORS)
    accuracies = np.full(shape, estimates[0])
    residuals = np.ones(shape)
    start = 1
    for axis, count in enumerate(shape):
        effect = np.concatenate([[0.0], estimates[start : start + count - 1]])
        along = [1] * len(shape)
        along[axis] = -1
        accuracies += effect.reshape(along)
        # a product of numbers that sum to zero along each axis is orthogonal to all effects
        residuals *= (np.arange(count) - (count - 1) / 2).reshape(along)
        start += count - 1
    accuracies += residuals * np.sqrt(residual_ss / (residuals**2).sum())
    cells = pd.MultiIndex.from_product([levels[factor] for factor in FACTORS], names=FACTORS).to_frame(index=False)
    return cells.assign(accuracy=accuracies.ravel())
