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
from cleanset.studies.contest.history import append_log, check_signatures, open_history
from cleanset.studies.contest.reading import read_contest
from tests.studies.contest.made import BIRD, JUDGES, RULES, UNSURE, day
from tests.studies.contest.on_disk import FIRST, OnDisk, control_image
from tests.studies.contest.test_checking import refused


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


def test_an_entry_that_is_committed_a_day_late_stays(made: OnDisk) -> None:
    commit(made, "2026-11-02T12:00:00Z")
    decided = {"image": made.sha256, "date": "2026-11-10", "reason": "no bird", "members": ["ada"], "verdict": "bird"}
    made.yaml("board/decisions.yaml", [decided])
    commit(made, "2026-11-11T12:00:00Z")
    assert run(made.folder, None, None)
    made.path("board/decisions.yaml").unlink()
    refused(made, "decisions.yaml: what was committed on 2026-11-11 for 2026-11-10 is changed or removed")


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


@pytest.mark.skipif(
    shutil.which("ssh-keygen") is None and not os.environ.get("CLEANSET_NO_SKIP"), reason="needs OpenSSH"
)
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


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to give files to somebody else")
def test_a_repository_of_another_owner(made: OnDisk) -> None:
    """Git itself would not read it; here it obeys nothing in it, and what was changed is found as in any other."""
    commit(made, "2026-11-02T12:00:00Z")
    made.judge(JUDGES[0], "2026-11-06", {made.sha256: UNSURE | {"date": "2026-11-07"}})
    for path in (made.edition, made.edition / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(subprocess.CalledProcessError):
        git(made.edition, "status", date=FIRST_NOON)
    refused(made, "what was committed on 2026-11-02 for 2026-11-07 is changed or removed")


FIRST_NOON = "2026-11-02T12:00:00Z"


def test_a_broken_repository(made: OnDisk) -> None:
    """Nobody may take it for a contest without commits."""
    commit(made, FIRST_NOON)
    for name, content in (("HEAD", "ref: refs/heads/other\n"), ("HEAD", "nothing"), ("objects", None)):
        path = made.edition / ".git" / name
        before = path.read_text() if content else ""
        path.rename(path.with_suffix(".old")) if content is None else path.write_text(content)
        refused(made, "a repository without HEAD|git cannot read its repository")
        if content:
            path.write_text(before)


@pytest.mark.parametrize("name", ["submissions/blue/2026-11-03-1", "judges", "results/runs/gold/fence"])
def test_a_submodule(name: str, made: OnDisk, tmp_path: Path) -> None:
    """Its commits are not those of the contest: whatever it has may change at any time."""
    commit(made, FIRST_NOON)
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", date=FIRST_NOON)
    git(other, "commit", "-qm", "nothing", "--allow-empty", date=FIRST_NOON)
    head = next((other / ".git" / "refs" / "heads").glob("*")).read_text().strip()

    def commit_link(path: Path) -> None:
        git(made.edition, "update-index", "--add", "--cacheinfo", f"160000,{head},{path}", date=FIRST_NOON)
        git(made.edition, "commit", "-qm", "a submodule", date="2026-11-03T12:00:00Z")

    commit_link(Path("beside_the_contest"))
    assert run(made.folder, None, None)
    if name == "judges":
        git(made.edition, "rm", "-qr", "--cached", str(made.path(name)), date=FIRST_NOON)
    commit_link(made.path(name).relative_to(made.edition))
    refused(made, f"{name}: a submodule in commit [0-9a-f]{{12}}; expected the files themselves")


def test_what_a_repository_says_is_not_obeyed(made: OnDisk) -> None:
    """Neither programs that its config names, nor attributes, replaced commits, grafts or a cache of dates."""
    commit(made, FIRST_NOON)
    first = subprocess.run(["git", "rev-parse", "HEAD"], cwd=made.edition, capture_output=True, text=True, check=True)
    made.judge(JUDGES[0], "2026-11-06", {made.sha256: UNSURE | {"date": "2026-11-07"}})
    made.text(made.path("allowed_signers"), "ada ssh-ed25519 AAAA\n")
    commit(made, "2026-11-09T12:00:00Z")
    started, program = made.edition / "started", made.edition / "program"
    program.write_text(f"#!/bin/sh\ntouch {started}\ncat\n")
    program.chmod(0o755)
    for key in (
        "core.fsmonitor", "gpg.program", "gpg.ssh.program", "gpg.x509.program", "filter.all.clean", "filter.all.smudge",
        "filter.all.process", "diff.external", "diff.all.textconv", "diff.all.command", "core.pager", "pager.log",
        "core.alternateRefsCommand", "core.sshCommand", "uploadpack.packObjectsHook",
    ):  # fmt: skip
        git(made.edition, "config", key, str(program), date=FIRST_NOON)
    git(made.edition, "config", "log.showSignature", "true", date=FIRST_NOON)
    git(made.edition, "config", "diff.ignoreSubmodules", "all", date=FIRST_NOON)
    git(made.edition, "config", "core.worktree", "/", date=FIRST_NOON)
    (made.edition / ".gitattributes").write_text("* filter=all diff=all\n")
    (made.edition / ".git" / "hooks" / "post-index-change").symlink_to(program)
    # the second commit would be no child of the first
    (made.edition / ".git" / "info" / "grafts").write_text("")
    head = (made.edition / ".git" / "refs" / "heads" / "master").read_text().strip()
    (made.edition / ".git" / "refs" / "replace").mkdir()
    (made.edition / ".git" / "refs" / "replace" / first.stdout.strip()).write_text(f"{head}\n")
    refused(made, r"answers/.*: what was committed on 2026-11-02 for 2026-11-07 is changed or removed")
    assert not started.exists()


@pytest.mark.parametrize("clock", ["2026-11-10T12:00:00Z", "2020-01-01T00:00:00Z"])
def test_a_commit_is_no_older_than_its_parent(clock: str, made: OnDisk) -> None:
    """It counts as of the day of that one: who sets the clock back after another commit gains nothing."""
    commit(made, FIRST_NOON)
    made.text(made.edition / "notes", "of the organizers")
    commit(made, "2026-11-12T12:00:00Z")
    decided = {"image": made.sha256, "date": "2026-11-10", "reason": "no bird", "members": ["ada"], "verdict": "bird"}
    made.yaml("board/decisions.yaml", [decided])
    commit(made, clock)
    refused(made, "decisions.yaml: an entry of 2026-11-10, first committed on 2026-11-12")


def test_a_clock_that_is_some_minutes_slow_is_no_fault(made: OnDisk) -> None:
    commit(made, "2026-11-02T12:05:00Z")
    made.text(made.edition / "notes", "of somebody else")
    commit(made, "2026-11-02T12:00:00Z")
    assert run(made.folder, None, None)


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("name", ["board/stakes.yaml", "board", "answers", "results/runs"])
def test_what_was_entered_cannot_be_removed(name: str, is_committed: bool, made: OnDisk) -> None:
    if name.startswith("board"):
        # a defence is staked, and nothing else has come yet that needs the stake
        for other in ("submissions", "answers", "results"):
            shutil.rmtree(made.path(other))
    commit(made, FIRST_NOON)
    path = made.path(name)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    if is_committed:
        commit(made, "2026-12-20T12:00:00Z")
    refused(made, "what was committed on 2026-11-02 for .* is changed or removed")


def test_the_whole_contest_removed(made: OnDisk) -> None:
    commit(made, FIRST_NOON)
    for name in ("submissions", "answers", "board", "results", "defences"):
        shutil.rmtree(made.path(name))
    refused(made, "removed or renamed on")


def test_lines_of_the_log_stay(made: OnDisk) -> None:
    commit(made, FIRST_NOON)
    for date in ("2026-11-07", "2026-11-08"):
        append_log(made.folder, read_contest(made.folder), day(date))
    commit(made, "2026-11-08T12:00:00Z")
    assert run(made.folder, None, None)
    path = made.path("board/log")
    lines = path.read_text()
    for content in (None, "", lines[: lines.index("\n") + 1]):
        path.unlink() if content is None else path.write_text(content)
        refused(made, "board/log: lacks lines that were committed on 2026-11-08; expected only added lines")
    commit(made, "2026-11-09T12:00:00Z")
    refused(made, "board/log: lacks lines that were committed on 2026-11-08")
    path.write_text(lines)
    assert run(made.folder, None, None)


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"eligibility": "perfect_at_80"}, "eligibility"),
        ({"limits": {"appeal_days": 0}}, "limits"),
        ({"quorum": 2}, "quorum"),
        ({"teams": ["gold", "red", "staff", "union"]}, "teams"),
        ({"teams": ["pink", *RULES["teams"]]}, None),
    ],
)
@pytest.mark.parametrize("is_committed", [True, False])
def test_the_rules_stay_as_on_the_day_of_the_first_stake(
    changed: dict[str, object], key: str | None, is_committed: bool, made: OnDisk
) -> None:
    made.changed("contest.yaml", eligibility="accuracy_80", limits={"images_a_day": 20})
    commit(made, "2026-11-01T12:00:00Z")
    made.yaml("contest.yaml", RULES)
    commit(made, FIRST_NOON)
    made.changed("contest.yaml", **changed)
    if is_committed:
        commit(made, "2026-11-03T12:00:00Z")
    if key is None:
        assert run(made.folder, None, None)
    else:
        refused(made, f"contest.yaml: {key} was changed after 2026-11-02, the day of the first stake; expected the rul")


def test_rules_that_come_late(made: OnDisk) -> None:
    rules = made.path("contest.yaml").read_text()
    made.path("contest.yaml").unlink()
    commit(made, FIRST_NOON)
    made.path("contest.yaml").write_text(rules)
    commit(made, "2026-11-04T12:00:00Z")
    refused(made, "contest.yaml: first committed on 2026-11-04; expected a commit by 2026-11-03, a day after the first")


def test_a_history_is_not_called_made_up_afterwards(made: OnDisk) -> None:
    """Nothing would be looked for."""
    commit(made, FIRST_NOON)
    made.changed("contest.yaml", history="made_up")
    refused(made, "contest.yaml: history: made_up, but committed on 2026-11-02 without; expected what the contest beg")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("ada ssh-ed25519 AAAA\nbob ssh-ed25519 CCCC\n", None),  # of somebody who had none
        ("# ada\n", "ada"),
        ("", "ada"),
        ("ada ssh-ed25519 BBBB\n", "ada"),
        ("ada ssh-ed25519 AAAA\nada ssh-ed25519 BBBB\n", "ada"),
    ],
)
@pytest.mark.parametrize("is_committed", [True, False])
def test_keys_stay(is_committed: bool, lines: str, problem: str | None, made: OnDisk) -> None:
    """Else a key would be replaced by one's own, or taken away, so that nobody has to sign."""
    path = made.path("allowed_signers")
    path.write_text("ada ssh-ed25519 AAAA\n")
    history = "the keys of {} were changed after 2026-11-02, the day of the first stake; expected them as they were fir"
    git(made.edition, "init", "-q", date=FIRST_NOON)
    git(made.edition, "add", str(path), date=FIRST_NOON)
    git(made.edition, "commit", "-qm", "keys", date=FIRST_NOON)
    path.write_text(lines)
    if is_committed:
        git(made.edition, "commit", "-qm", "other keys", str(path), date="2026-11-03T12:00:00Z")
    with open_history(made.folder) as history_of:
        if problem is None:
            assert check_signatures(made.folder, history_of, read_contest(made.folder)) == []
        else:
            with pytest.raises(CleansetError, match=history.format(problem)):
                check_signatures(made.folder, history_of, read_contest(made.folder))
