"""The CSV files of a study's measures, in its folder `data`: their columns, and their reading."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from cleanset.errors import CleansetError, reason
from cleanset.studies.robustness.families import FAMILIES
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.results import MeasureDifference, MeasureLine
from cleanset.validation import shown

OFFICIAL = "official"
"""The column that says whether a table's numbers are a benchmark's official ones."""

REMEDY = "run dvc checkout measure to restore it, or dvc repro measure"

TEXTS = frozenset((
    "answers", "change", "definition", "factor", "family", "level", "measure", "model", "notice", OFFICIAL, "origin",
    "other", "part", "problem", "scenario", "selection", "source", "stars",
))  # fmt: skip
"""The columns of text; all others hold numbers."""

MEASURE_COLUMNS: Mapping[str, str] = {
    "accuracy": "share of correct images",
    "answers": "what counts as correct: the highest of `all` classes, or `restricted`, of those of the edition",
    "change": "a change or a group of them; nothing where the measure is over all",
    "class_index": "a class index",
    "correct": "number of correct images",
    "definition": "`as_written`, the text of source 003, or `as_published`, its code",
    "df": "degrees of freedom",
    "error": "share of misclassified images",
    "errors": "number of misclassified images",
    "estimate": "a coefficient",
    "f": "F",
    "factor": "`intercept`, `model`, `scenario` or `class_index`",
    "family": "a family of changes: " + ", ".join(f"`{family.name}`" for family in FAMILIES),
    "fitted": "the accuracy that the regression gives",
    "flips": "number of images whose prediction differs from that to the frame compared with; by frame their share",
    "frame": "a frame, counted from 0",
    "high": "the upper end of the 95 % interval",
    "images": "the number of images that it is over",
    "level": "a level of the factor, or a scenario or class that Score is over; empty without one",
    "low": "the lower end of the 95 % interval",
    "measure": "the name of a measure",
    "model": "a role, or the name of a further model",
    "ms": "mean square",
    "notice": "what a reader of the numbers has to know",
    OFFICIAL: "`yes`: of all images of the published benchmark; `no`: of a subset, or of changes made here",
    "origin": "who made the masks: `person`, `generator` or `model`",
    "other": "the model whose measure is subtracted",
    "p": "the probability of so large a value by chance; of a difference, from the exact sign test over the images",
    "p_holm": "p after Holm's correction for all differences of the measure on the selection",
    "parameters": "the number of the model's parameters",
    "part": "`external`, over scenarios, or `internal`, over classes or networks trained on each scenario",
    "problem": "why there is no value",
    "scenario": "a scenario, or `unchanged`",
    "selection": "`union`, `own` or `common`",
    "severity": "1 to 5",
    "source": "what the sum of squares is of: `regression`, a factor, `residual` or `total`",
    "squared_deviation": "of the accuracy from that on unchanged images",
    "ss": "sum of squares",
    "standard_error": "of the estimate",
    "stars": "`ns` from p = 0.05 on, then one star more below each of 0.05, 0.01, 0.001 and 0.0001",
    "t": "estimate by standard error",
    "value": "the measure, or of a difference the first model's minus the other's",
}
"""Descriptions of the columns, by name."""

MEASURE_FILES: Mapping[str, tuple[str, ...]] = {
    "measures/notices.csv": ("family", "notice"),
    "measures/models.csv": ("model", "parameters"),
    **{
        f"measures/{stem}.csv": (*columns, OFFICIAL, *family.label_columns)
        for family in FAMILIES
        for stem, columns in {
            family.name: MeasureLine._fields,
            f"{family.singular}_differences": MeasureDifference._fields,
            **family.files,
        }.items()
    },
}
"""The columns of each file, by its path in `data`."""


def read_measures(folder: Path, families: Sequence[Family], models: Sequence[str] | None) -> dict[str, pd.DataFrame]:
    """The tables in the folder `measures` by stem; `models`: those that they may name; None: any.

    Raises CleansetError for a table that stage measure did not write so.
    """
    tables = {path.stem: _read(path, models) for path in sorted(folder.glob("*.csv"))}
    for family in families:
        # optional tables need several scenarios, classes or models
        details = family.files.keys() - set(family.optional_files)
        for stem in ("models", family.name, f"{family.singular}_differences", *sorted(details)):
            if stem not in tables:
                raise CleansetError(f"{folder / stem}.csv: missing; expected what stage measure writes: {REMEDY}")
        if tables[family.name].empty:
            raise CleansetError(f"{folder / family.name}.csv: no rows; expected a row for each measure: {REMEDY}")
    return tables


def _read(path: Path, models: Sequence[str] | None) -> pd.DataFrame:
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:  # ValueError: what pandas and the decoding of UTF-8 raise
        raise CleansetError(f"{path}: cannot be read ({reason(error)}); expected a CSV table: {REMEDY}") from None
    columns = MEASURE_FILES.get(f"measures/{path.name}", tuple(table.columns))
    if tuple(table.columns) != columns:
        found = ", ".join(map(str, table.columns))
        raise CleansetError(f"{path}: columns {found}; expected {', '.join(columns)}: {REMEDY}")
    # a single damaged cell makes pandas read its whole column as text
    for name in columns:
        if name not in TEXTS and len(table) and not is_numeric_dtype(table[name]):
            raise CleansetError(f"{path}: column {name} has a value that is not a number; expected numbers: {REMEDY}")
    for model in table["model"].unique() if "model" in columns else ():
        if models is not None and model not in models:
            raise CleansetError(f"{path}: unknown model {shown(model)}; expected one of {', '.join(models)}: {REMEDY}")
    return table
