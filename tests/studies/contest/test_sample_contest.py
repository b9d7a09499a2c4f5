"""The sample's contest comes out as its README says, and its defences answer as recorded."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cleanset.studies.contest.checking import run
from cleanset.studies.contest.defending import run_defence
from cleanset.studies.contest.judging import agreement_by_question, by_rule
from cleanset.studies.contest.reading import read_contest
from cleanset.studies.contest.standing import standing
from tests.checkouts import Checkout
from tests.documents import block
from tests.studies.contest.made import day
from tests.studies.contest.sample_copy import copy_with_data

DEFENCES = ("tide/standard", "reef/corruption_robust", "reef/colors", "reef/uninteresting")


@pytest.fixture
def contest(repository: Path) -> Path:
    return repository / "studies" / "contest"


def test_its_history(contest: Path) -> None:
    """Every row of the table in its README."""
    files = read_contest(contest)
    rows = re.findall(r"(?m)^\| (20\d\d-\d\d-\d\d) \| (.*) \|$", (contest / "README.md").read_text())
    assert len(rows) == 7
    for date, cells in rows:
        found = standing(files, day(date))
        status = {each.name: each.status for each in found.defences}
        shares = ", ".join(f"{team} {share}" for team, share in found.attackers.items())
        assert [cell.strip() for cell in cells.split("|")] == [*(status[name] for name in DEFENCES), shares], date
    last = standing(files, day("2027-01-31")).defences
    assert [each.waits_for for each in last if each.name == "reef/corruption_robust"] == [("confirmations", "last_run")]


def test_its_images(contest: Path) -> None:
    """What became of each, and what the other rules of size make of them."""
    files = read_contest(contest)
    images = standing(files, day("2026-11-30")).images
    found = [(each.verdict.group, each.verdict.reason, each.by_board) for each in images.values() if each.verdict]
    assert found == [
        (None, "too_small", False), ("fruit", None, True), ("fruit", None, False), (None, "too_small", False),
    ]  # fmt: skip
    answers = [[each.answers[sha256] for each in files.answers if sha256 in each.answers] for sha256 in images]
    by_size = [{rule: each.group for rule, each in by_rule(one, 224, 224).items()} for one in answers]
    assert [each["half"] for each in by_size] == [None] * 4
    assert [each["quarter_box"] for each in by_size] == [None] * 4
    assert [each["box_16_percent"] for each in by_size] == [None, "fruit", "fruit", None]
    agreement = agreement_by_question(answers, ("creature", "fruit"))
    assert agreement["creature"].agreement == 1
    assert agreement["fruit"].agreement == pytest.approx((3 + 1 / 3) / 4)  # one of three was unsure of one image


def test_the_commands_of_its_documentation(built: Checkout, contest: Path, tmp_path: Path, repository: Path) -> None:
    """docs/contest.md, verbatim."""
    copy_with_data(built, contest, tmp_path)
    lines = block(repository, "cleanset contest check --contest studies/contest")
    done = subprocess.run(["bash", "-ec", lines], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "4 defences, 3 submissions with 4 images" in done.stdout
    assert "Standing on 2026-11-14" in done.stdout
    judges = re.findall(r"(?m)^\| (\w{8}) \| (\d) \| (\d) \| (\S+) \|$", (contest / "README.md").read_text())
    assert len(judges) == 3
    for judge, controls, correct, overlap in judges:
        accuracy = f"{int(correct) / int(controls):.2f}"
        assert re.search(rf"{judge} *│ *4 *│ *{controls} *│ *{correct} *│ *{accuracy} *│ *{overlap} ", done.stdout)


def test_the_commands_of_the_readme(built: Checkout, contest: Path, tmp_path: Path, repository: Path) -> None:
    """Verbatim; they need neither a model nor the edition's data but the finished sets."""
    copy = copy_with_data(built, contest, tmp_path)
    shutil.rmtree(copy / "results" / "page_images")
    (copy / "results" / "page.html").unlink()
    lines = block(repository, "cleanset contest standing --contest studies/contest --on 2026-11-14")
    done = subprocess.run(["bash", "-ec", lines], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"tide/standard *broken *staked 2026-11-02 *grove", done.stdout)
    assert done.stdout.endswith("studies/contest/results/page.html\n")
    assert "orchard 1/2" in (copy / "results" / "page.html").read_text()


@pytest.mark.parametrize("name", DEFENCES)
def test_its_defences_answer_as_recorded(name: str, built: Checkout, contest: Path, tmp_path: Path) -> None:
    """Only the rate differs from run to run."""
    copy = copy_with_data(built, contest, tmp_path)
    files = read_contest(copy)
    (recorded,) = [each for each in files.runs if (each.defence, each.date) == (name, day("2026-11-14"))]
    found = run_defence(copy, files, name, day("2026-11-14"))
    assert found.model_copy(update={"images_per_minute": 0.0}) == recorded.model_copy(update={"images_per_minute": 0.0})
    assert run(copy, None, day("2026-11-30")) == "4 defences, 3 submissions with 4 images"
