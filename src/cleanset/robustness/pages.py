"""A study's pages: tables, a heat map for each model, CE with intervals, and sheets of corrupted images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.report.pages import page_environment
from cleanset.robustness.names import corruptions_of

TEMPLATES = Path(__file__).parent / "templates"

HEADLINES = {
    "error_clean": "error, clean",
    "error_unchanged": "error, unchanged",
    "mean_error": "mean error",
    "mce": "mCE",
    "mce_unseen": "mCE, unseen",
    "relative_mce": "relative mCE",
}
"""The titles of the measures over all corruptions, by their names."""


@dataclass(frozen=True, slots=True)
class SheetImage:
    """An image on the sheets: its number, its class by name, and its files by change and severity."""

    image_id: str
    name: str
    files: Mapping[tuple[str, int], str]


@dataclass(frozen=True, slots=True, eq=False)
class PagesData:
    """All that the pages show: the CSV files of stage measure as tables, and the settings of the study.

    `lines`, `differences` and `errors` are corruptions.csv, corruption_differences.csv and corruption_errors.csv.
    """

    roles: Sequence[str]
    corruptions: Sequence[str]
    severities: Sequence[int]
    reference: str
    jpeg: int | None
    trained_on: Mapping[str, Sequence[str]]
    lines: pd.DataFrame
    differences: pd.DataFrame
    errors: pd.DataFrame
    sheet: Sequence[SheetImage]


@dataclass(frozen=True, slots=True)
class Value:
    """A measure in percent with the ends of its interval; None where it is not defined, and why."""

    value: float | None
    low: float | None
    high: float | None
    problem: str


def pages(data: PagesData) -> dict[str, str]:
    """The text of each page, by its name."""
    environment = page_environment(TEMPLATES)
    selections = list(dict.fromkeys(data.lines["selection"]))
    common = {
        "data": data,
        "headlines": HEADLINES,
        "selections": {name: _counts(data.lines, name) for name in selections},
        "of": _by_key(data.lines),
        "first": selections[0],
        "cells": _cells(data.errors),
        "seen": {role: set(corruptions_of(names)) for role, names in data.trained_on.items()},
        "largest_ce": _largest_ce(data.lines, selections[0]),
        "differences": data.differences.to_dict("records"),
    }
    return {name: environment.get_template(f"study_{name}").render(common) for name in ("index.html", "images.html")}


def _counts(lines: pd.DataFrame, selection: str) -> str:
    """How many images a selection has, as text: one number, or one for each model."""
    found = lines[lines["selection"] == selection].drop_duplicates("model")["images"].tolist()
    return f"{found[0]:,}" if len(set(found)) == 1 else ", ".join(f"{count:,}" for count in found)


def _by_key(lines: pd.DataFrame) -> dict[tuple[str, str, str, str], Value]:
    """Each line by selection, model, measure and change."""
    texts = lines.fillna({"change": "", "problem": ""}).to_dict("records")
    return {
        (row["selection"], row["model"], row["measure"], row["change"]): Value(
            _percent(row["value"]), _percent(row["low"]), _percent(row["high"]), row["problem"]
        )
        for row in texts
    }


def _percent(value: float) -> float | None:
    return None if np.isnan(value) else 100 * value


def _cells(errors: pd.DataFrame) -> dict[tuple[str, str, int], float]:
    """The error in percent by model, corruption and severity."""
    sums = errors.groupby(["model", "change", "severity"], sort=False)[["errors", "images"]].sum().reset_index()
    keys = zip(sums["model"], sums["change"], sums["severity"], strict=True)
    return dict(zip(keys, (100 * sums["errors"] / sums["images"]).tolist(), strict=True))


def _largest_ce(lines: pd.DataFrame, selection: str) -> float:
    """Where the axis of CE ends, in percent: a multiple of 25 that no interval exceeds."""
    ces = lines[(lines["selection"] == selection) & (lines["measure"] == "ce")][["value", "high"]].max().max()
    return 25 * float(np.ceil(4 * ces)) if np.isfinite(ces) else 0.0
