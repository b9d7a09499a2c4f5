"""The printed numbers of papers: verdicts, the tables that they are printed in, and the page of the docs."""

import csv
import hashlib
import io
import re
import statistics
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.errors import CleansetError
from cleanset.reproduce import imagenet_c, scooter, ximagenet_12
from cleanset.reproduce.numbers import Number, Reproduction
from cleanset.reproduce.papers import PAPERS, not_computed_lines, own_input_lines, summary_of, table_of
from cleanset.sets.published.lists import RATINGS
from tests.properties import examples

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "papers.md"


@pytest.fixture(scope="module")
def files(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of published files, with the one that the real material holds."""
    folder = tmp_path_factory.mktemp("files")
    (folder / imagenet_c.ACCURACIES.name).write_bytes((real / "robustbench_imagenet_c.csv").read_bytes())
    return folder


@pytest.fixture(scope="module")
def found() -> dict[str, Reproduction]:
    """All papers, without files of others."""
    return {name: compute(None) for name, compute in PAPERS.items()}


def number(printed: str, computed: float, slack: float = 0.0) -> Number:
    return Number(
        where="Table 1",
        quantity="x",
        printed=printed,
        computed=computed,
        slack=slack,
        evidence="from other printed numbers",
    )


@pytest.mark.parametrize(
    ("printed", "computed", "slack", "verdict"),
    [
        ("0.0902", 0.09024, 0, "equal"),
        ("0.0902", 0.09025, 0, "equal"),  # a tie
        ("0.0902", 0.09026, 0, "differs"),
        ("0.0902", 0.09026, 0.00002, "rounding"),
        ("0.0902", 0.09028, 0.00002, "differs"),
        ("2,966".replace(",", ""), 2966, 0, "equal"),
        ("2966", 2965, 0, "differs"),
        ("42.0", 42.0035, 0, "equal"),
        ("-0.5", -0.4, 0, "differs"),
        ("< 0.0001", 0.00009, 0, "equal"),
        ("< 0.0001", 0.0001, 0, "differs"),
    ],
)
def test_verdicts(printed: str, computed: float, slack: float, verdict: str) -> None:
    assert number(printed, computed, slack).verdict == verdict


@examples(100)
@given(st.floats(-1e4, 1e4), st.integers(0, 6))
def test_what_is_rounded_is_equal(value: float, digits: int) -> None:
    assert number(f"{value:.{digits}f}", value).verdict == "equal"
    moved = value + (1.5 if value > 0 else -1.5) * 10**-digits
    assert number(f"{value:.{digits}f}", moved).verdict == "differs"


def test_how_many_are_equal(found: dict[str, Reproduction]) -> None:
    """As the page says; a number that changes changes the page."""
    assert {name: summary_of(each) for name, each in found.items()} == {
        "scooter": "63 numbers (63 from raw data): 55 equal as printed, 8 differ; 15,890 printed numbers not computed",
        "imagenet-c": "15 numbers (15 from other printed numbers): 15 equal as printed; 173 printed numbers not "
        "computed; 4 tests: the authors' program on our own input",
        "imagenet-p": "5 printed numbers not computed; 27 tests: the authors' program on our own input",
        "ximagenet-12": "338 numbers (63 fitted, 275 from other printed numbers): 275 equal as printed, 57 equal "
        "but for the rounding of printed numbers that they are computed from, 6 differ; 310 printed numbers not "
        "computed",
        "unrestricted": "16 printed numbers not computed; 2 tests: the authors' program on our own input",
        "imagenet-validation": "4 printed numbers not computed",
    }


def test_the_page_says_what_is_found(found: dict[str, Reproduction]) -> None:
    text = PAGE.read_text()
    page = " ".join(text.split())
    cells = {tuple(cell.strip() for cell in row.split("|")[1:-1]) for row in text.splitlines() if "|" in row}
    for name, paper in found.items():
        assert summary_of(paper) in page, name
        for line in (*not_computed_lines(paper), *own_input_lines(paper)):
            assert f"- {line}" in page, line
        for texts, (printed, computed, difference, verdict, _) in table_of(paper).rows:
            if verdict.value == "differs":
                assert (*texts, printed.value, computed.value, difference.value) in cells


def test_robustbench(files: Path) -> None:
    """With its file of accuracies: all twelve models, against sums in plain Python; the page has the number of both."""
    paper = imagenet_c.reproduce(files)
    assert summary_of(paper).startswith("39 numbers (39 from other printed numbers): 39 equal as printed; 149 printed")
    assert "63 numbers (63 from other printed numbers): 63 equal as printed" in " ".join(PAGE.read_text().split())
    assert paper.not_computed[0].where == "RobustBench, 3DCC: accuracy and mCE of 12 models"
    rows = list(csv.reader(io.StringIO((files / imagenet_c.ACCURACIES.name).read_text())))
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for model, *values in rows[2:]:
        for corruption, value in zip(rows[0][1:], values, strict=True):
            sums[model][corruption] += 1 - float(value)
    by_name = {(each.where, each.quantity): each.computed for each in paper.numbers}
    for model, own in sums.items():
        mce = statistics.fmean(own[name] / sums["AlexNet"][name] for name in own)
        assert by_name[f"RobustBench, {model}.json", "ImageNet-C, mCE, %"] == pytest.approx(100 * mce)
    assert len(sums) == 12


def test_a_file_with_other_bytes(tmp_path: Path) -> None:
    path = tmp_path / imagenet_c.ACCURACIES.name
    path.write_text("AlexNet,0.5\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(CleansetError, match=f"{path}: SHA-256 {digest}; expected 834f.*: download it again from"):
        imagenet_c.reproduce(tmp_path)


@pytest.mark.long
def test_the_ratings_by_hand() -> None:
    """The mean of one study's ratings, from the lines of its file."""
    paper = scooter.reproduce(None)
    rows = list(csv.DictReader((RATINGS / "aca.csv").open()))
    ratings = [int(row["rating"]) for row in rows if row["image_type"] == "modified"]
    by_name = {(each.where, each.quantity): each.computed for each in paper.numbers}
    assert by_name["Ratings, aca", "modified images, mean"] == sum(ratings) / len(ratings)
    assert by_name["Ratings, aca", "modified images, number"] == len(ratings) == 2500


def test_a_regression_has_the_estimates_that_it_is_made_from() -> None:
    """The residuals change no estimate, whatever their size: two sizes give the same t but for its scale."""
    names = list(ximagenet_12.PRINTED["regressions"]["table_1"]["rows"])
    estimates = np.linspace(0.9, -0.5, len(names))
    one, four = (ximagenet_12.regression_results(estimates, size, names, "ResNet50") for size in (1.0, 4.0))
    for place, name in enumerate(names):
        assert (one[name, "low"] + one[name, "high"]) / 2 == pytest.approx(estimates[place])
        assert four[name, "standard error"] == pytest.approx(2 * one[name, "standard error"])
        assert one[name, "t"] == pytest.approx(2 * four[name, "t"])
    assert one["residual", "SS"] == pytest.approx(1)
    assert one["model", "SS"] == pytest.approx(four["model", "SS"])


def test_programs_on_our_own_input_are_tests(found: dict[str, Reproduction], repository: Path) -> None:
    """They are not numbers of a paper; the files with these tests exist."""
    for paper in found.values():
        for each in paper.own_input:
            assert (repository / each.tests).is_file()
    assert found["imagenet-p"].numbers == found["unrestricted"].numbers == ()
    assert {each.evidence for each in found["scooter"].numbers} == {"from raw data"}


@pytest.mark.parametrize("name", ["scooter", "imagenet-c", "ximagenet-12"])
def test_forms(name: str, found: dict[str, Reproduction]) -> None:
    """A table of all numbers in each form, with as many rows."""
    paper = found[name]
    table = table_of(paper)
    rows = list(csv.reader(io.StringIO(table.in_form("csv"))))
    assert rows[0][:7] == ["where", "number", "printed", "computed", "difference", "verdict", "evidence"]
    assert len([row for row in rows[1:] if len(row) >= 6]) >= len(paper.numbers)
    assert len(re.findall(r"\\\\$", table.in_form("latex"), re.MULTILINE)) == len(paper.numbers) + 1


@pytest.mark.long
def test_the_command() -> None:
    """All papers with their counts; for one, the numbers that differ, and what is not computed."""
    command = CliRunner(env={"COLUMNS": "300"})
    listed = command.invoke(app, ["reproduce"]).stdout
    assert "(63 from raw data)" in listed
    assert [line.split()[0] for line in listed.splitlines() if not line.startswith(" ")] == list(PAPERS)
    one = command.invoke(app, ["reproduce", "ximagenet-12"])
    assert one.exit_code == 0
    assert len(re.findall(r"Score as written .* differs  from other printed numbers$", one.stdout, re.MULTILINE)) == 4
    assert "Table 4" not in one.stdout
    assert "\n- Table 3, ResNet50, internal, segmented_image (1): the accuracy in table 2" in one.stdout
    assert "Table 4: Table 1, total, DF" in command.invoke(app, ["reproduce", "ximagenet-12", "--all"]).stdout
