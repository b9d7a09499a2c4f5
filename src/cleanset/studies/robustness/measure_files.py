"""The CSV files of a study's measures, in its folder `data`: their columns, and their reading.

The command `robustness table`: measures with their intervals as a table for a paper, in LaTeX or CSV.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
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


FORMATS = ("latex", "csv")

ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip
"""The characters that mean something to LaTeX, and how they are printed."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A measure with the ends of its interval, shares in percent; NaN where it has none."""

    value: float
    low: float
    high: float
    digits: int

    def texts(self) -> tuple[str, str, str]:
        """The three numbers; empty where there is none."""
        value, low, high = (
            f"{each:.{self.digits}f}" if np.isfinite(each) else "" for each in (self.value, self.low, self.high)
        )
        return value, low, high

    def as_latex(self) -> str:
        """The value, and its interval in small type."""
        value, low, high = self.texts()
        if not value:
            return "--"
        return rf"{value} {{\scriptsize [{low}, {high}]}}" if low else value


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of measures: a row for each label, a column for each title; a cell may be missing."""

    corner: str
    titles: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell | None]]]
    caption: str

    def as_latex(self) -> str:
        """A tabular for the package booktabs, between comments that say what it holds."""
        head = " & ".join(map(escape, [self.corner, *self.titles]))
        lines = [
            f"% {self.caption}",
            rf"\begin{{tabular}}{{l{'r' * len(self.titles)}}}",
            r"\toprule",
            rf"{head} \\",
            r"\midrule",
        ]
        for label, cells in self.rows:
            texts = ("--" if each is None else each.as_latex() for each in cells)
            lines.append(rf"{' & '.join([escape(label), *texts])} \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def as_csv(self) -> str:
        """CSV with three columns for each title: the value and the ends of its interval."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        ends = (f"{title}{end}" for title in self.titles for end in ("", ", low", ", high"))
        writer.writerow([self.corner, *ends])
        for label, cells in self.rows:
            texts = (text for each in cells for text in (("", "", "") if each is None else each.texts()))
            writer.writerow([label, *texts])
        return file.getvalue()


def formatted(table: PaperTable, form: str) -> str:
    """The table as text in one of FORMATS. Raises CleansetError for another one."""
    _one_of("format", form, FORMATS)
    return table.as_latex() if form == "latex" else table.as_csv()


def escape(text: str) -> str:
    """Text as LaTeX prints it."""
    return "".join(ESCAPES.get(letter, letter) for letter in text)


def paper_table(folder: Path, family_name: str, measure: str | None, selection: str | None) -> PaperTable:
    """The measures of a family in the folder `measures`, of a study or of `robustness evaluate`.

    A row for each model with its measures over all changes; or with `measure`, such as error or ce, a row for each
    change and a column for each model. `selection`: None stands for the first one. Raises CleansetError for a folder
    without measures, and for a family, measure or selection that is not there.
    """
    family, lines = _lines(folder, family_name)
    selections = list(dict.fromkeys(lines["selection"]))
    chosen = _one_of("selection", selection or selections[0], selections)
    lines = lines[lines["selection"] == chosen]
    images = " or ".join(f"{each:,}" for each in dict.fromkeys(lines["images"].tolist()))
    shares = "percent" if not family.not_shares else f"percent except {' and '.join(family.not_shares)}"
    caption = f"{family.name}, {images} images ({chosen}), {shares}; 95 % intervals"
    if measure is None:
        whole = lines[lines["change"].isna()]
        titles = {name: title for name, title in family.headlines.items() if name in set(whole["measure"])}
        return PaperTable(
            "model", list(titles.values()), _rows(whole, "model", "measure", list(titles), family), caption
        )
    of_changes = lines[lines["change"].notna()]
    _one_of("measure", measure, list(dict.fromkeys(of_changes["measure"])))
    of_measure = of_changes[of_changes["measure"] == measure]
    models = list(dict.fromkeys(of_measure["model"]))
    rows = _rows(of_measure, "change", "model", models, family)
    return PaperTable("change", models, rows, f"{measure}; {caption}")


def _lines(folder: Path, name: str) -> tuple[Family, pd.DataFrame]:
    """The rows of a family's measures."""
    measures = next((each for each in (folder / "data" / "measures", folder / "measures") if each.is_dir()), None)
    if measures is None:
        raise CleansetError(
            f"{folder}: no measures; expected the folder of a study whose stage measure has run, or one that "
            "cleanset robustness evaluate has written"
        )
    found = [family for family in FAMILIES if (measures / f"{family.name}.csv").is_file()]
    family = found[[each.name for each in found].index(_one_of("family", name, [each.name for each in found]))]
    return family, read_measures(measures, [family], None)[family.name]


def _one_of(what: str, name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise CleansetError(f"unknown {what} {shown(name)}; expected one of {', '.join(known)}")
    return name


def _rows(
    lines: pd.DataFrame, label: str, column: str, columns: Sequence[str], family: Family
) -> list[tuple[str, list[Cell | None]]]:
    cells: dict[str, dict[str, Cell]] = {}
    for each in lines.to_dict("records"):
        measure = str(each["measure"])
        factor, digits = family.scale(measure)
        value, low, high = (factor * float(each[end]) for end in ("value", "low", "high"))
        cells.setdefault(str(each[label]), {})[str(each[column])] = Cell(value, low, high, digits)
    return [(name, [found.get(each) for each in columns]) for name, found in cells.items()]
