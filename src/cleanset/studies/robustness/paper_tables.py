"""The command `robustness table`: measures with their intervals as a table for a paper, in LaTeX or CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.studies.robustness.families import FAMILIES
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.measure_files import read_measures
from cleanset.validation import shown

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
        factor, digits = (1, 3) if measure.startswith(family.not_shares) else (100, 1)
        value, low, high = (factor * float(each[end]) for end in ("value", "low", "high"))
        cells.setdefault(str(each[label]), {})[str(each[column])] = Cell(value, low, high, digits)
    return [(name, [found.get(each) for each in columns]) for name, found in cells.items()]
