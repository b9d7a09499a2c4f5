"""A whole contest by the commands of docs/contest.md alone, from an empty folder."""

import os
import subprocess
from pathlib import Path

import pytest

from cleanset.studies.contest.log import read
from cleanset.studies.contest.standing import standing
from tests.browser_tab import SOURCE
from tests.checkouts import Checkout
from tests.documents import block
from tests.forked_commands import forking
from tests.studies.contest.made import day


@pytest.mark.long
def test_the_rehearsal(repository: Path, built: Checkout, tmp_path: Path) -> None:
    for name in ("params.yaml", "sample"):
        (tmp_path / name).symlink_to(built.folder / name)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "export").symlink_to(built.folder / "data" / "export")
    done = subprocess.run(
        ["bash", "-ec", block(repository, "mkdir -p studies/rehearsal")],
        cwd=tmp_path,
        env=os.environ | forking(SOURCE),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    contest = tmp_path / "studies" / "rehearsal"
    found = standing(read(contest), day("2026-11-14"))
    assert {each.name: each.status for each in found.defences} == {
        "reef/corruption_robust": "staked",
        "tide/standard": "broken",
    }
    assert (contest / "results" / "page.html").is_file()
