"""Tables for papers: LaTeX and CSV of the measures in a folder."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.errors import CleansetError
from cleanset.evaluation.table import ESCAPES
from cleanset.studies.robustness.measuring import NOTE_COLUMNS
from cleanset.studies.robustness.pages import paper_table
from cleanset.studies.robustness.results import DIFFERENCE_COLUMNS
from tests.evaluation.notes_read import FORMS, notes_read

LINES = [
    ("union", "norm_robust", "mean_error", None, 71, 0.367, 0.3, 0.45),
    ("union", "norm_robust", "mce", None, 71, float("nan"), float("nan"), float("nan")),
    ("union", "norm_robust", "mean_nll", None, 71, 1.25, 1.0, 1.5),
    ("union", "norm_robust", "error", "fog", 71, 0.5, 0.4, 0.6),
    ("union", "norm_robust", "error", "frost", 71, 1, float("nan"), float("nan")),
    ("union", "a&b", "mean_error", None, 71, 0.42, 0.3, 0.5),
    ("union", "a&b", "mce", None, 71, 0.522, 0.5, 0.6),
    ("union", "a&b", "error", "fog", 71, 0.25, 0.2, 0.3),
    ("own", "a&b", "mean_error", None, 34, 0.1, 0.05, 0.2),
]
NAMES = ("selection", "model", "measure", "change", "images", "value", "low", "high")

NOTES = {
    "union": {"set": "a set & more", "number of images": "71", "settings": "corruptions: fog, at steps 1"},
    "own": {"set": "a set & more", "number of images": "34", "limits": "No official numbers."},
}
"""The notes of the tables, by selection."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What `robustness evaluate` writes, as far as a table needs it."""
    measures = tmp_path / "measures"
    measures.mkdir()
    table = pd.DataFrame(LINES, columns=NAMES).assign(problem="", official="no")
    table.to_csv(measures / "corruptions.csv", index=False)
    notes = [("corruptions", selection, *note) for selection in ("union", "own") for note in NOTES[selection].items()]
    pd.DataFrame(notes, columns=NOTE_COLUMNS).to_csv(measures / "notes.csv", index=False)
    pd.DataFrame([("a&b", 5), ("norm_robust", 7)], columns=["model", "parameters"]).to_csv(
        measures / "models.csv", index=False
    )
    empty = {
        "corruption_differences": DIFFERENCE_COLUMNS,
        "corruption_errors": ("model", "change", "severity", "class_index", "images", "errors"),
        "errors_by_severity": ("model", "change", "severity", "error"),
    }
    for stem, columns in empty.items():
        pd.DataFrame(columns=[*columns, "official"]).to_csv(measures / f"{stem}.csv", index=False)
    return tmp_path


LATEX = r"""\begin{table}
\centering
\caption{corruptions, shares in percent, with 95 \% intervals}
\begin{tabular}{lrrr}
\toprule
model & mean error & mCE & mean NLL, in nats \\
\midrule
norm\_robust & 36.7 {\scriptsize [30.0, 45.0]} & -- (1) & 1.250 {\scriptsize [1.000, 1.500]} \\
a\&b & 42.0 {\scriptsize [30.0, 50.0]} & 52.2 {\scriptsize [50.0, 60.0]} & -- (2) \\
\bottomrule
\end{tabular}
\par\smallskip{\footnotesize\raggedright
No value: (1) no reason is in the file; (2) not measured\par
Set: a set \& more\par
Number of images: 71\par
Settings: corruptions: fog, at steps 1\par
}
\end{table}
"""


def test_models_in_latex(folder: Path) -> None:
    assert paper_table(folder, "corruptions", None, None).in_form("latex") == LATEX


def test_changes_as_csv(folder: Path) -> None:
    assert paper_table(folder, "corruptions", "error", "union").in_form("csv") == (
        'change,norm_robust,"norm_robust, low","norm_robust, high",a&b,"a&b, low","a&b, high",no value,set,'
        "number of images,settings\n"
        'fog,50.0,40.0,60.0,25.0,20.0,30.0,,a set & more,71,"corruptions: fog, at steps 1"\n'
        'frost,100.0,,,,,,a&b: not measured,a set & more,71,"corruptions: fog, at steps 1"\n'
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("measure", [None, "error"])
def test_notes_are_read_back_from_every_form(folder: Path, measure: str | None, form: str) -> None:
    assert notes_read(paper_table(folder, "corruptions", measure, "union").in_form(form), form) == NOTES["union"]


@pytest.mark.parametrize("name", ["nan", "null", "007"])
def test_a_model_whose_name_reads_as_another_value(folder: Path, name: str) -> None:
    path = folder / "measures" / "corruptions.csv"
    path.write_text(path.read_text().replace("a&b", name))
    found = paper_table(folder, "corruptions", None, None).in_form("latex")
    assert rf"{name} & 42.0 {{\scriptsize [30.0, 50.0]}}" in found


def test_another_selection(folder: Path) -> None:
    table = paper_table(folder, "corruptions", None, "own")
    assert [texts for texts, _ in table.rows] == [("a&b",)]
    assert dict(table.notes) == NOTES["own"]


def test_what_latex_escapes() -> None:
    assert r"a_b & 5 % {x} \ ~^$#".translate(ESCAPES) == (
        r"a\_b \& 5 \% \{x\} \textbackslash{} \textasciitilde{}\textasciicircum{}\$\#"
    )


@pytest.mark.parametrize(
    ("family", "measure", "selection", "form", "message"),
    [
        ("perturbations", None, None, "csv", "unknown family 'perturbations'; expected one of corruptions"),
        ("corruptions", "fp", None, "csv", "unknown measure 'fp'; expected one of error"),
        ("corruptions", None, "all", "csv", "unknown selection 'all'; expected one of union, own"),
    ],
)
def test_what_is_not_there_is_reported(
    folder: Path, family: str, measure: str | None, selection: str | None, form: str, message: str
) -> None:
    with pytest.raises(CleansetError, match=message):
        paper_table(folder, family, measure, selection).in_form(form)


def test_a_measure_that_was_not_computed_has_its_reason(folder: Path) -> None:
    """As of the severities 1 and 3 in docs/robustness.md."""
    path = folder / "measures" / "corruptions.csv"
    table = pd.read_csv(path, keep_default_na=False)
    problem = "no mCE: severities 1, 3; CE needs 1 to 5, and lacks 2, 4, 5"
    table.loc[table["measure"] == "mce", "problem"] = problem
    table.to_csv(path, index=False)
    with pytest.raises(CleansetError, match=f"measure 'ce': {problem}"):
        paper_table(folder, "corruptions", "ce", None)


def test_the_command(folder: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["robustness", "table", str(folder), "--format", "csv"])
    assert done.exit_code == 0
    assert done.stdout.startswith("model,mean error,")
    with pytest.raises(CleansetError, match="no measures; expected the folder of a study whose stage measure has run"):
        paper_table(tmp_path / "nowhere", "corruptions", None, None)
