"""A whole contest of three weeks by the commands of docs/contest_rehearsal.md alone, from an empty folder."""

import os
import subprocess
from pathlib import Path

import pytest

from cleanset.plumbing.validation import validate
from cleanset.studies.contest.entries import AnswerFile
from cleanset.studies.contest.judge_page.session import JudgeDraft, JudgeSession
from cleanset.studies.contest.judging import JudgeAnswer
from cleanset.studies.contest.log import read, read_state
from cleanset.studies.contest.objects import read_content
from cleanset.studies.contest.standing import standing
from tests.browser_tab import SOURCE
from tests.checkouts import Checkout
from tests.documents import block
from tests.forked_commands import forking
from tests.report.pages import soup
from tests.studies.contest.made import day
from tests.studies.contest.notes import verified
from tests.studies.contest.sample_copy import MAIL

JUDGES = ("1f0a9c3e", "27d4b860", "b93e5c11")
THIRD_WEEK = """cd studies/rehearsal
cleanset contest cosign mail --name reef --key keys/reef --at 2026-11-14T09:00:00Z"""


def answer(contest: Path, judge: str, on: str) -> None:
    """Answer all that a judge is asked on a day, as a judge of the sample's contest, and controls as they are known."""
    known: dict[str, JudgeAnswer] = {}
    for path in (MAIL / "answers" / "3f9c2a71").iterdir():
        known |= validate(AnswerFile, read_content(path), path).answers
    controls = read_state(contest).controls
    session = JudgeSession(contest, judge, day(on))
    while (task := session.current()) is not None:
        given = known.get(task.sha256)
        if given is None:
            contains = {
                name: "definitely_yes" if there else "definitely_no"
                for name, there in controls[task.sha256].contains.items()
            }
            one = [name for name, there in controls[task.sha256].contains.items() if there]
            seen = {"outline": "40,40 140,40 140,140", "complete": True, "not_occluded": True, "real": True}
            given = JudgeAnswer.model_validate({"date": on, "contains": contains, **(seen if len(one) == 1 else {})})
        session.draft = JudgeDraft.of(task.sha256, given, session.groups)
        session.save(task)


@pytest.mark.exhaustive
def test_a_contest_of_three_weeks(built: Checkout, repository: Path, tmp_path: Path) -> None:
    for name in ("params.yaml", "sample"):
        (tmp_path / name).symlink_to(built.folder / name)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "export").symlink_to(built.folder / "data" / "export")
    contest = tmp_path / "studies" / "rehearsal"
    printed = ""
    for commands, judged_on in (
        (block(repository, "mkdir -p studies/rehearsal/keys studies/rehearsal/mail"), None),
        (block(repository, "cd studies/rehearsal\nmkdir mail/first mail/second"), "2026-11-07"),
        (block(repository, "cd studies/rehearsal\nfor team in grove orchard; do"), "2026-11-14"),
        (block(repository, THIRD_WEEK), "2026-11-21"),
        (block(repository, "cd studies/rehearsal\nfor judge in 1f0a9c3e 27d4b860 b93e5c11; do"), None),
    ):
        done = subprocess.run(
            ["bash", "-ec", commands], cwd=tmp_path, env=os.environ | forking(SOURCE), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        printed = done.stdout
        for judge in JUDGES if judged_on else ():
            answer(contest, judge, str(judged_on))
    found = standing(read_state(contest), day("2026-11-30"))
    assert {each.name: each.status for each in found.defences} == {"reef/robust": "staked", "tide/standard": "broken"}
    assert {team: str(share) for team, share in found.attackers.items()} == {"grove": "1/2", "orchard": "1/2"}
    assert [each.teams for each in found.checkpoints] == [("grove", "orchard"), ("reef",), ()]
    words = " ".join(printed.split())
    assert "2 defences, 4 submissions with 4 images" in words
    assert "The checkpoint of 2026-11-13, of 22 lines, is cosigned by reef; expected at least 2 teams" in words
    assert "tide/standard: 4 runs with the answers and figures that were computed again" in words
    assert verified((contest / "kept.txt").read_bytes(), keys_of(contest)).keys() == {
        f"cleanset-contest/{read(contest)[0].digest}{team}" for team in ("", "/grove", "/orchard")
    }
    page = soup(contest / "results" / "page.html")
    assert [" ".join(each.get_text().split()) for each in page.select(".verdict")].count("fruit") == 2


def keys_of(contest: Path) -> list[str]:
    command = ["cleanset", "contest", "checkpoint", "--keys", "--contest", str(contest)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
