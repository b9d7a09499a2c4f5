"""Runs of defences: their record, the unpublished list, and what is refused before or after a run."""

import json
import os
import shutil
from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.contest import command_defences
from cleanset.studies.contest.command_defences import SANDBOXES
from cleanset.studies.contest.eligibility_lists import list_digest, unpublished_list
from cleanset.studies.contest.entering import check, enter_runs
from cleanset.studies.contest.entries import reasons_against
from cleanset.studies.contest.log_lines import LOG
from cleanset.studies.contest.rules import parse_instant
from cleanset.studies.contest.runs import run_defence
from cleanset.studies.contest.sandbox import can_start
from tests.studies.contest.made import day
from tests.studies.contest.on_disk import MODEL, OnDisk, digest, key, png
from tests.studies.contest.with_images import COMMAND, odd, ready, use_command
from tests.time_limits import at_most


@pytest.mark.long
def test_a_machine_that_cannot_confine(monkeypatch: pytest.MonkeyPatch, made: OnDisk) -> None:
    """A command is not started, unless this is wanted, and the run says so."""
    monkeypatch.setattr(command_defences, "can_start", lambda _: False)
    on = day("2026-11-09")
    ready(made)
    use_command(made)
    files = made.state("2026-11-09")
    with pytest.raises(CleansetError, match="cannot confine; expected gVisor"):
        run_defence(made.folder, files, "gold/wall", on)
    assert run_defence(made.folder, files, "gold/wall", on, unconfined=True).confined is False


@pytest.mark.long
def test_a_run_of_a_command(tmp_path: Path, made: OnDisk) -> None:
    """It is printed, or entered into the log."""
    ready(made)
    use_command(made)
    at, before = parse_instant("2026-11-09T12:00:00Z"), made.path(LOG).read_bytes()
    (printed,) = enter_runs(made.folder, at=at)
    assert made.path(LOG).read_bytes() == before
    content = json.loads(printed)
    assert content["answers"] == {made.sha256: "abstain"}  # 200 is even
    paths = (tmp_path / "data" / "export" / "standard").glob("*/*.JPEG")
    correct = sum(odd(each.read_bytes()) for each in paths)
    expected = {"images": 3, "correct": correct, "mistakes": 0, "mistakes_at_80": 0}
    assert content["eligibility"] == expected
    assert content["images_per_minute"] > 0
    assert content["confined"] is any(map(can_start, SANDBOXES))
    (line,) = enter_runs(made.folder, ["gold/wall"], key=key("staff"), at=at)
    assert line.startswith("line 10 (run), ")
    (run,) = made.state().runs
    assert (run.date, run.answers) == (day("2026-11-09"), content["answers"])
    assert check(made.folder, runs=True)[3:] == ["gold/wall: 1 run of a command, not recomputable"]


@pytest.mark.long
def test_a_second_list_that_is_not_published(tmp_path: Path, made: OnDisk) -> None:
    """Only how many are correct is written, never which images they are."""
    hidden, on = tmp_path / "hidden", day("2026-11-09")
    ready(made)
    use_command(made)
    data = {name: png((number, 9, 9), (20 + number, 30)) for number, name in enumerate("abcd")}
    for name, group in zip(data, ("bird", "bird", "bird", "bicycle"), strict=True):
        (hidden / group).mkdir(parents=True, exist_ok=True)
        (hidden / group / f"{name}.png").write_bytes(data[name])
    with pytest.raises(CleansetError, match=r"hidden: an unpublished list, missing from contest\.yaml; expected its"):
        run_defence(made.folder, made.state(), "gold/wall", on, unpublished=hidden)
    made.changed("contest", unpublished="0" * 64)
    with pytest.raises(
        CleansetError, match=r"hidden: a list with the digest .*; expected the one that contest.yaml na"
    ):
        run_defence(made.folder, made.state(), "gold/wall", on, unpublished=hidden)
    named = list_digest(unpublished_list(hidden, made.state().rules.groups()))
    assert named == digest(
        "".join(sorted(f"{'bicycle' if n == 'd' else 'bird'} {digest(data[n])}\n" for n in data)).encode()
    )
    assert check(made.folder, hidden) == [f'unpublished: "{named}"   # 4 images']
    made.changed("contest", unpublished=named)
    files = made.state()
    with pytest.raises(
        CleansetError, match="contest/unpublished: no folder; expected the unpublished list that contest"
    ):
        run_defence(made.folder, files, "gold/wall", on)
    with pytest.raises(CleansetError, match=r"--counts on 2027-01-30: .*; expected a day from 2027-01-31 on, when"):
        run_defence(made.folder, files, "gold/wall", day("2027-01-30"), unpublished=hidden, counts=True)
    found = run_defence(made.folder, files, "gold/wall", day("2027-01-31"), unpublished=hidden, counts=True)
    is_odd = {name: odd(each) for name, each in data.items()}  # the command calls these birds
    assert found.unpublished is not None
    assert found.unpublished.list_sha256 == named
    figures = found.unpublished.figures
    assert figures is not None
    counts = (figures.images, figures.correct, figures.mistakes)
    assert counts == (4, sum(is_odd[name] for name in "abc"), int(is_odd["d"]))
    assert list(found.answers) == [made.sha256]
    shutil.copytree(hidden, made.path("unpublished"))  # where it is found without being named
    # without counts: those of many defences would tell which image is of which group
    without = run_defence(made.folder, files, "gold/wall", on).unpublished
    assert without == found.unpublished.model_copy(update={"figures": None})
    assert without.against == reasons_against(figures, files.rules)
    (hidden / "bicycle" / "d.png").write_bytes(data["a"])
    with pytest.raises(CleansetError, match=r"the same image as .*; expected each image in one group"):
        run_defence(made.folder, files, "gold/wall", on, unpublished=hidden)
    (hidden / "bicycle" / "d.png").unlink()
    os.mkfifo(hidden / "bicycle" / "d.png")
    with at_most(5), pytest.raises(CleansetError, match=r"d\.png: a named pipe; expected a regular file"):
        run_defence(made.folder, files, "gold/wall", on, unpublished=hidden)
    shutil.rmtree(hidden / "bicycle")
    with pytest.raises(CleansetError, match="bicycle: no image; expected a folder of images for each"):
        run_defence(made.folder, files, "gold/wall", on, unpublished=hidden)


def change_file(made: OnDisk) -> None:
    made.path(f"objects/{made.state().defences['gold/wall'].files[0].sha256}").write_text("")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made.removed("accept"), "a command that the board has not accepted by"),
        (change_file, "SHA-256 .* the file has changed"),
        (lambda made: use_command(made, "sys.exit(1)"), "gold/wall: its command failed with exit code 1"),
        (lambda made: made.image().unlink(), "missing or changed; expected SHA-256"),
        (lambda made: made.image().write_bytes(b""), "missing or changed; expected SHA-256"),
    ],
)
def test_what_does_not_run(change: object, message: str, made: OnDisk) -> None:
    ready(made)
    use_command(made)
    change(made)  # type: ignore[operator]
    with pytest.raises(CleansetError, match=message):
        run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))


def test_an_unknown_defence(made: OnDisk) -> None:
    with pytest.raises(CleansetError, match="unknown defence 'gold/moat'; expected one of gold/wall"):
        next(enter_runs(made.folder, ["gold/wall", "gold/moat"]))


@pytest.mark.long
def test_a_defence_that_fails_keeps_no_other_from_being_run(made: OnDisk, capsys: pytest.CaptureFixture[str]) -> None:
    """Each problem is told, the last one as an error."""
    ready(made)
    use_command(made, COMMAND, "blue/unaccepted", "green/fails", "red/runs")
    made.story = [each for each in made.story if each[1:] != ("accept", {"defence": "blue/unaccepted"})]
    fails = made.put(b"import sys; sys.exit(1)")
    (place,) = (n for n, each in enumerate(made.story) if each[2].get("name") == "green/fails")
    at, kind, data = made.story[place]
    made.story[place] = (at, kind, {**data, "files": [{"path": "run.py", "sha256": fails}]})
    made.write()
    runs = enter_runs(made.folder, at=parse_instant("2026-11-09T12:00:00Z"))
    assert [json.loads(next(runs))["defence"] for _ in range(2)] == ["gold/wall", "red/runs"]
    with pytest.raises(CleansetError, match=r"^green/fails: "):
        next(runs)
    told = capsys.readouterr().err
    assert told.startswith("blue/unaccepted: a command that the board has not accepted by 2026-11-09; ")
    assert told.count("\n") == 1


def test_each_defence_that_does_not_run_is_told(made: OnDisk, capsys: pytest.CaptureFixture[str]) -> None:
    ready(made)
    names = ["blue/unaccepted", "green/unaccepted"]
    use_command(made, COMMAND, *names)
    accepted = [{"defence": name} for name in names]
    made.story = [each for each in made.story if each[1] != "accept" or each[2] not in accepted]
    made.write()
    problem = "a command that the board has not accepted by 2026-11-09; expected its acceptance"
    runs = enter_runs(made.folder, names, at=parse_instant("2026-11-09T12:00:00Z"))
    with pytest.raises(CleansetError, match=rf"^green/unaccepted: {problem}$"):
        next(runs)
    assert capsys.readouterr().err == f"blue/unaccepted: {problem}\n"


def test_an_edition_without_the_classes(made: OnDisk) -> None:
    with pytest.raises(CleansetError, match="no image of a class of the contest; expected some in the finished sets"):
        run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))


@pytest.mark.long
@pytest.mark.slow
def test_a_threshold_that_abstains_on_everything(tmp_path: Path, repository: Path, made: OnDisk) -> None:
    """And what a wrapper makes of the same model: answers that are random, one-hot and without a gradient."""
    ready(made)
    (tmp_path / "sample").symlink_to(repository / "sample")
    made.changed("defence", model=MODEL | {"threshold": 1.1})
    with pytest.raises(
        CleansetError, match=r"gold/wall: threshold 1\.1 abstains on everything, all 3 images of the elig"
    ):
        run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))
    made.changed("defence", model=MODEL | {"threshold": 0.0})
    honest = run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))
    assert honest.signs == []
    made.changed("defence", model=MODEL | {"threshold": 0.0, "wrapper": "uninteresting"})
    wrapped = run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))
    assert {"saturated_answers", "no_gradient"} <= {each.sign for each in wrapped.signs or []}
