"""What git's history shows: changes after publication, entries dated back, merges, shallow clones."""

import os
import shutil
import subprocess
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.contest.checking import run
from tests.studies.contest.made import BIRD, JUDGES, UNSURE, day
from tests.studies.contest.on_disk import FIRST, OnDisk, control_image
from tests.studies.contest.test_folders import refused


@pytest.fixture
def made(tmp_path: Path) -> OnDisk:
    return OnDisk(tmp_path)


def git(folder: Path, *arguments: str, date: str) -> None:
    environment = os.environ | {
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date, "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, env=environment)


def commit(made: OnDisk, date: str) -> None:
    git(made.edition, "init", "-q", date=date)
    git(made.edition, "add", "-A", date=date)
    git(made.edition, "commit", "-qm", "all", date=date)


@pytest.mark.parametrize(
    ("first", "second", "is_changed"),
    [
        ("2026-11-02T12:00:00Z", "2026-11-06T23:59:59Z", False),  # corrected before the week ended
        ("2026-11-02T12:00:00Z", "2026-11-07T00:00:00Z", True),
        ("2026-11-02T12:00:00Z", "2026-11-06T23:30:00-01:00", True),  # after midnight in UTC
    ],
)
def test_changed_after_publication(first: str, second: str, is_changed: bool, made: OnDisk) -> None:
    """By git's history."""
    commit(made, first)
    assert run(made.folder, None, None)
    path = made.path(f"{FIRST}/manifest.yaml")
    path.write_text(path.read_text() + "\n")
    assert run(made.folder, made.path(FIRST), day("2026-11-06"))
    refused(made, "differs from what is committed; expected what was published", on="2026-11-07")
    refused(made, "differs from what is committed; expected what was published")  # judged on 2026-11-07
    commit(made, second)
    if is_changed:
        refused(made, r"changed on 2026-11-0[78], after its publication on 2026-11-06; expected what was published")
    else:
        assert run(made.folder, None, None)


def test_given_to_another_team_after_publication(made: OnDisk) -> None:
    """Which would have the shares; by git's history, committed or not."""
    commit(made, "2026-11-02T12:00:00Z")
    after = made.path("submissions/blue/2026-11-02-1")
    after.parent.mkdir()
    made.path(FIRST).rename(after)
    message = r"submissions/red/2026-11-02-1: removed or renamed on 2026-11-07, after its publication on 2026-11-06; "
    refused(made, message, on="2026-11-07")
    assert run(made.folder, after, day("2026-11-06"))
    commit(made, "2026-11-07T00:00:00Z")
    refused(made, message)


@pytest.mark.parametrize("name", ["2026-13-45-1", "draft"])
def test_removed_that_was_no_submission(name: str, made: OnDisk) -> None:
    path = made.path(f"submissions/red/{name}/manifest.yaml")
    made.text(path, "{}")
    commit(made, "2026-11-02T12:00:00Z")
    path.unlink()
    path.parent.rmdir()
    commit(made, "2026-12-02T12:00:00Z")
    assert run(made.folder, None, None)


def test_given_to_another_team_before_publication(made: OnDisk) -> None:
    commit(made, "2026-11-02T12:00:00Z")
    after = made.path("submissions/blue/2026-11-02-1")
    after.parent.mkdir()
    made.path(FIRST).rename(after)
    commit(made, "2026-11-02T23:59:59Z")
    assert run(made.folder, None, None)


@pytest.mark.parametrize(("at", "is_late"), [("2026-11-02T23:59:59Z", False), ("2026-11-03T00:00:00Z", True)])
def test_a_submission_that_is_dated_back(at: str, is_late: bool, made: OnDisk) -> None:
    """Refused in its own check, which names the day of the first commit."""
    commit(made, at)
    if is_late:
        refused(made, f"{FIRST}: first committed on 2026-11-03; expected a commit by its date, 2026-11-02", FIRST)
    else:
        assert run(made.folder, made.path(FIRST), None)


def test_what_was_published_may_be_restored(made: OnDisk) -> None:
    """The content counts, not the number of commits."""
    commit(made, "2026-11-02T12:00:00Z")
    path = made.path(f"{FIRST}/manifest.yaml")
    before = path.read_text()
    path.write_text(before + "\n")
    commit(made, "2026-11-09T12:00:00Z")
    refused(made, "changed on 2026-11-09, after its publication on 2026-11-06; expected what was published")
    path.write_text(before)
    commit(made, "2026-11-10T12:00:00Z")
    assert run(made.folder, None, None)


def another_reason(made: OnDisk) -> None:
    made.stake(batch="other")


def another_answer(made: OnDisk) -> None:
    made.judge(JUDGES[0], "2026-11-06", {made.sha256: UNSURE | {"date": "2026-11-07"}})


def another_run(made: OnDisk) -> None:
    made.run("2026-11-07", {made.sha256: "bird"})


def no_run(made: OnDisk) -> None:
    made.path("results/runs/gold/wall/2026-11-07.json").unlink()


CHANGES = [
    (another_reason, "board/stakes.yaml", "2026-11-02"),
    (another_answer, f"answers/{JUDGES[0]}/2026-11-06.yaml", "2026-11-07"),
    (another_run, "results/runs/gold/wall/2026-11-07.json", "2026-11-07"),
    (no_run, "results/runs/gold/wall/2026-11-07.json", "2026-11-07"),
]


@pytest.mark.parametrize(("change", "file", "date"), CHANGES)
def test_entries_stay_as_they_were_on_their_day(
    change: Callable[[OnDisk], None], file: str, date: str, made: OnDisk
) -> None:
    """Answers, runs and the board's entries may change on their day, and not from the next one on."""
    first, late = "2026-11-02T10:00:00Z", [made.path("answers"), made.path("results/runs/gold/wall/2026-11-07.json")]
    git(made.edition, "init", "-q", date=first)
    git(made.edition, "add", "-A", date=first)
    git(made.edition, "rm", "-qr", "--cached", *map(str, late), date=first)
    git(made.edition, "commit", "-qm", "what is there on the first day", date=first)
    if date > "2026-11-02":
        commit(made, f"{date}T12:00:00Z")
    assert run(made.folder, None, None)
    change(made)
    message = rf"{file}: what was committed on {date} for {date} is changed or removed \(.*; expected it as it was on"
    refused(made, message)
    commit(made, f"{date}T23:59:59Z")
    assert run(made.folder, None, None)


@pytest.mark.parametrize(("change", "file", "date"), CHANGES)
@pytest.mark.parametrize("at", ["2026-11-08T00:00:00Z", "2026-12-20T12:00:00Z"])
def test_entries_that_change_later(
    at: str, change: Callable[[OnDisk], None], file: str, date: str, made: OnDisk
) -> None:
    commit(made, "2026-11-02T12:00:00Z")
    change(made)
    commit(made, at)
    refused(made, rf"{file}: what was committed on 2026-11-02 for {date} is changed or removed")


def test_an_entry_of_the_board_that_is_dated_back(made: OnDisk) -> None:
    commit(made, "2026-11-02T12:00:00Z")
    decided = {"image": made.sha256, "date": "2026-11-10", "reason": "no bird", "members": ["ada"], "verdict": "bird"}
    made.yaml("board/decisions.yaml", [decided])
    assert run(made.folder, None, None)
    commit(made, "2026-11-12T00:00:00Z")
    refused(
        made,
        "decisions.yaml: an entry of 2026-11-10, first committed on 2026-11-12 .*; expected a commit by 2026-11-11",
    )


def test_what_was_dated_back_may_be_dated_on_the_day_of_its_commit(made: OnDisk) -> None:
    """As the message says; and an answer that was changed too late may be restored."""
    commit(made, "2026-11-02T12:00:00Z")
    name = f"answers/{JUDGES[0]}/2026-11-06.yaml"
    before = made.path(name).read_text()
    made.judge(JUDGES[0], "2026-11-06", {made.sha256: UNSURE | {"date": "2026-11-07"}})
    decided = {"image": made.sha256, "date": "2026-11-10", "reason": "no bird", "members": ["ada"], "verdict": "bird"}
    made.yaml("board/decisions.yaml", [decided])
    commit(made, "2026-11-12T00:00:00Z")
    refused(made, f"{name}: what was committed on 2026-11-02 for 2026-11-07 is changed or removed")
    made.path(name).write_text(before)
    refused(made, "decisions.yaml: an entry of 2026-11-10, first committed on 2026-11-12")
    made.yaml("board/decisions.yaml", [decided | {"date": "2026-11-12"}])
    commit(made, "2026-11-12T12:00:00Z")
    assert run(made.folder, None, None)


def another_content(made: OnDisk, control: str) -> str:
    made.yaml("judges/controls.yaml", {"controls": {control: {"contains": {"bird": False, "bicycle": True}}}})
    return "judges/controls.yaml"


def another_mask(made: OnDisk, control: str) -> str:
    image = Image.new("L", (100, 100))
    image.putpixel((0, 0), 255)
    image.save(made.path(f"judges/masks/{control}.png"))
    return f"judges/masks/{control}.png"


def no_mask(made: OnDisk, control: str) -> str:
    made.path(f"judges/masks/{control}.png").unlink()
    return f"judges/masks/{control}.png"


@pytest.mark.parametrize("change", [another_content, another_mask, no_mask])
@pytest.mark.parametrize("at", ["2026-11-08T23:59:59Z", "2026-11-09T00:00:00Z", "2026-12-20T12:00:00Z"])
def test_a_control_stays_as_a_judge_has_first_answered_it(
    at: str, change: Callable[[OnDisk, str], str], made: OnDisk
) -> None:
    """It decides whose answers count: one that is changed later would open settled shares again."""
    control = control_image(made, answered="2026-11-08")
    commit(made, "2026-11-02T12:00:00Z")
    assert run(made.folder, None, None)
    name = change(made, control)
    message = rf"{name}: {control[:12]}… was changed after 2026-11-08, when a judge first answered this control; exp"
    refused(made, message)
    commit(made, at)
    if at < "2026-11-09":
        assert run(made.folder, None, None)
    else:
        refused(made, message)


def test_a_control_that_is_committed_a_day_late(made: OnDisk) -> None:
    """As answers may be."""
    made.text(made.edition / "notes", "of the organizers")
    commit(made, "2026-11-02T12:00:00Z")
    control_image(made, answered="2026-11-08")
    commit(made, "2026-11-09T12:00:00Z")
    assert run(made.folder, None, None)


def test_a_merge_that_takes_an_answer_away(made: OnDisk) -> None:
    """The commit that has it is on the branch that was merged, and the merge keeps nothing of it."""
    commit(made, "2026-11-02T12:00:00Z")
    git(made.edition, "checkout", "-qb", "judges", date="2026-11-08T12:00:00Z")
    made.judge(JUDGES[3], "2026-11-06", {made.sha256: deepcopy(BIRD) | {"date": "2026-11-08"}})
    commit(made, "2026-11-08T12:00:00Z")
    git(made.edition, "checkout", "-q", "-", date="2026-11-09T12:00:00Z")
    made.text(made.edition / "notes", "of the other branch")
    commit(made, "2026-11-09T12:00:00Z")
    git(made.edition, "merge", "-q", "-s", "ours", "judges", date="2026-11-09T13:00:00Z")
    refused(made, f"answers/{JUDGES[3]}/2026-11-06.yaml: what was committed on 2026-11-08 for 2026-11-08 is changed or")


def test_a_merge_that_changes_a_submission(made: OnDisk) -> None:
    """In no commit of either branch, but in the merge itself."""
    commit(made, "2026-11-02T12:00:00Z")
    git(made.edition, "checkout", "-qb", "other", date="2026-11-03T12:00:00Z")
    made.text(made.edition / "notes", "of the other branch")
    commit(made, "2026-11-03T12:00:00Z")
    git(made.edition, "checkout", "-q", "-", date="2026-11-09T12:00:00Z")
    git(made.edition, "merge", "-q", "--no-ff", "--no-commit", "other", date="2026-11-09T12:00:00Z")
    path = made.path(f"{FIRST}/manifest.yaml")
    path.write_text(path.read_text() + "\n")
    commit(made, "2026-11-09T12:00:00Z")
    for place in (None, FIRST):
        refused(made, "changed on 2026-11-09, after its publication on 2026-11-06; expected what was published", place)


def merge(made: OnDisk, date: str, name: str, content: object) -> None:
    """Merge a branch, with a file that neither branch has so."""
    git(made.edition, "checkout", "-qb", f"other-{date[:10]}", date=date)
    made.text(made.edition / f"notes of {date[:10]}", "of the other branch")
    commit(made, date)
    git(made.edition, "checkout", "-q", "-", date=date)
    git(made.edition, "merge", "-q", "--no-ff", "--no-commit", f"other-{date[:10]}", date=date)
    made.yaml(name, content)
    commit(made, date)


def test_what_only_a_merge_has_counts(made: OnDisk) -> None:
    """An answer that it changed on its day stays, and so does a decision that it added."""
    commit(made, "2026-11-02T12:00:00Z")
    name = f"answers/{JUDGES[0]}/2026-11-06.yaml"
    before = made.path(name).read_text()
    merge(made, "2026-11-07T12:00:00Z", name, {"answers": {made.sha256: UNSURE | {"date": "2026-11-07"}}})
    assert run(made.folder, None, None)
    after = made.path(name).read_text()
    made.path(name).write_text(before)
    commit(made, "2026-11-09T12:00:00Z")
    refused(made, f"{name}: what was committed on 2026-11-07 for 2026-11-07 is changed or removed")
    made.path(name).write_text(after)
    decided = {"image": made.sha256, "date": "2026-11-10", "reason": "no bird", "members": ["ada"], "verdict": "bird"}
    merge(made, "2026-11-10T12:00:00Z", "board/decisions.yaml", [decided])
    assert run(made.folder, None, None)
    made.path("board/decisions.yaml").unlink()
    commit(made, "2026-11-12T12:00:00Z")
    refused(made, r"board/decisions\.yaml: what was committed on 2026-11-10 for 2026-11-10 is changed or removed")


def test_a_merge_that_corrects_a_submission_in_its_week(made: OnDisk) -> None:
    commit(made, "2026-11-02T12:00:00Z")
    content = yaml.safe_load(made.path(f"{FIRST}/manifest.yaml").read_text())
    merge(made, "2026-11-03T12:00:00Z", f"{FIRST}/manifest.yaml", dict(sorted(content.items())))
    for path in (None, made.path(FIRST)):
        assert run(made.folder, path, None)


def test_a_merge_of_what_was_committed_in_time(made: OnDisk) -> None:
    """Though the merge comes after the week."""
    git(made.edition, "init", "-q", date="2026-11-01T12:00:00Z")
    made.text(made.edition / "notes", "of the organizers")
    git(made.edition, "add", "notes", date="2026-11-01T12:00:00Z")
    git(made.edition, "commit", "-qm", "notes", date="2026-11-01T12:00:00Z")
    git(made.edition, "checkout", "-qb", "red", date="2026-11-02T12:00:00Z")
    commit(made, "2026-11-02T12:00:00Z")
    git(made.edition, "checkout", "-q", "-", date="2026-11-09T12:00:00Z")
    git(made.edition, "merge", "-q", "--no-ff", "red", date="2026-11-09T12:00:00Z")
    assert run(made.folder, None, None)


def test_a_shallow_clone(made: OnDisk, tmp_path: Path) -> None:
    """Refused with the command that completes it."""
    commit(made, "2026-11-02T12:00:00Z")
    made.text(made.edition / "notes", "more")
    commit(made, "2026-11-03T12:00:00Z")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{made.edition}", str(shallow), date="2026-11-09T12:00:00Z")
    contest = shallow / "studies" / "contest"
    for path in (None, contest / FIRST):
        with pytest.raises(
            CleansetError, match="a shallow clone, which lacks older commits; expected the whole history: git"
        ):
            run(contest, path, None)
    git(shallow, "fetch", "-q", "--unshallow", date="2026-11-09T12:00:00Z")
    assert run(contest, None, None)


def test_a_contest_that_is_not_in_git(made: OnDisk) -> None:
    """Nobody may take the result for one that was compared with a history."""
    not_asked = "git has no commit of this contest: what may have changed after its day was not looked for"
    for path in (None, made.path(FIRST)):
        assert not_asked in run(made.folder, path, None).splitlines()
    git(made.edition, "init", "-q", date="2026-11-02T12:00:00Z")
    assert not_asked in run(made.folder, None, None)
    commit(made, "2026-11-02T12:00:00Z")
    for path in (None, made.path(FIRST)):
        assert "git" not in run(made.folder, path, None)


def test_a_made_up_history_is_not_looked_at(made: OnDisk) -> None:
    """As of the sample, whose standing says so."""
    commit(made, "2026-12-20T12:00:00Z")
    refused(made, "first committed on 2026-12-20", FIRST)
    made.changed("contest.yaml", history="made_up")
    assert run(made.folder, None, None)


def key_of(made: OnDisk, name: str) -> str:
    """A new key of somebody, whose line is added to allowed_signers; the options by which git signs with it."""
    path = made.edition.parent / f"{made.edition.name} key of {name}"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True)
    signers = made.path("allowed_signers")
    before = signers.read_text() if signers.exists() else ""
    signers.write_text(f"{before}{name} {path.with_name(f'{path.name}.pub').read_text()}")
    return str(path)


def commit_signed(made: OnDisk, date: str, key: str, *paths: str) -> None:
    options = ["-c", "gpg.format=ssh", "-c", f"user.signingkey={key}"]
    git(made.edition, "add", *(str(made.path(each)) for each in paths), date=date)
    git(made.edition, *options, "commit", "-q", "-S", "-m", "signed", date=date)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs OpenSSH")
def test_signed_commits(made: OnDisk) -> None:
    """Signed commits are accepted and shown; a judge with a key has to sign."""
    first = "2026-11-02T10:00:00Z"
    git(made.edition, "init", "-q", date=first)
    git(made.edition, "add", "-A", date=first)
    git(made.edition, "rm", "-qr", "--cached", str(made.path("answers")), str(made.path("board")), date=first)
    git(made.edition, "commit", "-qm", "all but answers and board", date=first)
    ada, judge = key_of(made, "ada"), key_of(made, JUDGES[0])
    commit_signed(made, "2026-11-02T11:00:00Z", ada, "board")
    commit_signed(made, "2026-11-07T11:00:00Z", judge, f"answers/{JUDGES[0]}")
    commit(made, "2026-11-07T12:00:00Z")
    assert run(made.folder, None, None).splitlines()[1:] == [
        f"answers/{JUDGES[0]}: 1 of 1 commits signed, by {JUDGES[0]}",
        f"answers/{JUDGES[1]}: 0 of 1 commits signed",
        f"answers/{JUDGES[2]}: 0 of 1 commits signed",
        "board: 1 of 1 commits signed, by ada",
    ]
    made.judge(JUDGES[1], "2026-11-06", {made.sha256: UNSURE | {"date": "2026-11-07"}})
    commit(made, "2026-11-07T13:00:00Z")
    assert run(made.folder, None, None)
    made.yaml("board/accepted.yaml", [])
    commit_signed(made, "2026-11-07T14:00:00Z", judge, "board")
    refused(
        made, f"contest/board: commit [0-9a-f]{{12}} is signed by {JUDGES[0]}; expected a signature of ada, by a key in"
    )
    key_of(made, JUDGES[1])
    refused(
        made,
        f"answers/{JUDGES[1]}: commit [0-9a-f]{{12}} is not signed by a known key; expected a signature of {JUDGES[1]}",
    )
    key_of(made, "mallory")
    refused(made, "allowed_signers: mallory; expected the id of a judge in the roster, or a member of the board")


def test_a_nested_repository_starts_no_program(made: OnDisk) -> None:
    """Git would start what `core.fsmonitor` names in the config of the repository that it examines."""
    commit(made, "2026-11-02T12:00:00Z")
    nested, started = made.path(FIRST), made.folder / "started"
    commit_of = "2026-11-02T12:00:00Z"
    git(nested, "init", "-q", date=commit_of)
    git(nested, "add", "-A", date=commit_of)
    git(nested, "commit", "-qm", "all", date=commit_of)
    program = made.edition / "program"
    program.write_text(f"#!/bin/sh\ntouch {started}\n")
    program.chmod(0o755)
    git(nested, "config", "core.fsmonitor", str(program), date=commit_of)
    run(made.folder, made.path(FIRST), day("2026-11-09"))
    assert not started.exists()


@pytest.mark.parametrize("date", ["@999999999999 +0000", "@99999999999999 +0000"])
def test_a_commit_with_a_date_outside_the_calendar(date: str, made: OnDisk) -> None:
    commit(made, date)
    refused(made, "a commit dated .*; expected a date of this contest")


def test_a_repository_of_another_owner(made: OnDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(made, "2026-11-02T12:00:00Z")
    # git's own switch for its tests
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    refused(made, "git reads no repository of another owner")
