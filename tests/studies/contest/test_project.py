"""studies/contest is a DVC project of its own in every edition."""

import json
from pathlib import Path

import pytest
import yaml

from cleanset.edition.create import make_edition
from cleanset.studies.contest.checking import run
from cleanset.studies.contest.page import write_page
from cleanset.studies.contest.reading import read_contest, read_rules
from cleanset.studies.contest.standing import standing
from tests.checkouts import Checkout
from tests.report.pages import soup
from tests.studies.contest.made import day

CONTEST = Path("studies", "contest")


def test_the_committed_standing_is_that_of_its_day(repository: Path) -> None:
    folder = repository / CONTEST
    asked = yaml.safe_load((folder / "params.yaml").read_text())["day"]
    written = json.loads((folder / "results" / "standing.json").read_text())
    found = standing(read_contest(folder), day(asked))
    assert written["on"] == asked
    assert {name: each["status"] for name, each in written["defences"].items()} == {
        each.name: each.status for each in found.defences
    }


@pytest.mark.slow
def test_dvc_runs_standing_for_another_day_and_no_model(built: Checkout, tmp_path: Path) -> None:
    clone = built.clone_with_data(tmp_path / "clone")
    assert clone.run("dvc", "status", cwd=str(CONTEST)).stdout == "Data and pipelines are up to date.\n"
    answers = clone.folder / CONTEST / "answers" / "3f9c2a71" / "2026-11-13.yaml"
    answers.write_text(answers.read_text().replace("definitely_yes", "rather_yes"))
    printed = clone.run("dvc", "repro", cwd=str(CONTEST)).stdout
    assert "Stage 'defend' didn't change, skipping" in printed
    assert "Standing on 2026-11-14" in printed
    assert clone.run("git", "status", "--porcelain", "--", str(CONTEST / "results" / "runs")).stdout == ""


def test_a_new_edition_has_an_empty_contest_of_birds_and_bicycles(tmp_path: Path) -> None:
    make_edition(tmp_path / "mine")
    contest = tmp_path / "mine" / CONTEST
    assert run(contest, None, None) == "0 defences, 0 submissions with 0 images"
    page = soup(write_page(contest, read_contest(contest), day("2026-11-14")))
    assert "No image is published yet." in page.get_text()
    assert {name: len(wnids) for name, wnids in read_rules(contest).classes.items()} == {"bird": 59, "bicycle": 2}
