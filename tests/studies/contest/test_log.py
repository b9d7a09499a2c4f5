"""The log: its chain, what is void, what is refused on reading, and a disk that is full while it is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.contest import entering
from cleanset.studies.contest.entering import check
from cleanset.studies.contest.log import read
from cleanset.studies.contest.standing import check_voids, replay
from tests.studies.contest.made import (
    FINAL,
    JUDGES,
    LATER,
    SATURDAY,
    Entry,
    contest,
    course,
    judged,
    on,
    run,
    sha,
    standing,
    submission,
)
from tests.studies.contest.on_disk import OnDisk, digest, png


def void(*lines: int, date: str, reason: str = "entered twice") -> Entry:
    return Entry(date, "void", {"lines": list(lines), "reason": reason})


def test_a_log_reads_as_written(made: OnDisk) -> None:
    found = read(made.folder)
    assert [line.kind for line in found.lines] == [kind for _, kind, _ in made.story]
    assert found.head == digest(made.log.read_text().splitlines()[-1].encode())
    summary, last = check(made.folder)
    assert (summary, last) == ("defences: 1; published images: 1", f"lines: 11; digest of the last: {found.head}")


def test_every_change_before_the_last_line_is_found(made: OnDisk) -> None:
    """A byte in any line but the last one breaks the chain or the line; an object has its own digest."""
    text = made.log.read_text()
    lines = text.splitlines(keepends=True)
    for number in range(len(lines) - 1):
        changed = lines[number].replace("2026", "2025", 1)
        made.log.write_text("".join([*lines[:number], changed, *lines[number + 1 :]]))
        with pytest.raises(CleansetError, match=r"expected"):
            read(made.folder)
        made.log.write_text("".join([*lines[:number], *lines[number + 1 :]]))
        with pytest.raises(CleansetError, match=r"line|ends"):
            read(made.folder)
    made.log.write_text(text)
    made.folder.joinpath("objects", made.sha256).write_bytes(png((201, 0, 0)))
    with pytest.raises(CleansetError, match=r"objects/.*: SHA-256 .*; expected "):
        check(made.folder)


FIRST = {"classes": {"bicycle": ["n02835271"], "bird": ["n01514668"]}, "teams": ["red"], "board": {"ada": []}}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 1}, r"number 1 after '0000.*; expected 0 after 0000"),
        ({"n": 5}, "number 5 after"),
        ({"prev": "1" * 64}, "expected 0 after 0000"),
        ({"at": "2026-11-01"}, "at: .*; expected an instant in UTC"),
        ({"kind": "vote"}, "unknown kind of entry 'vote'"),
        ({"kind": "team", "data": {"name": "blue"}}, "team; expected contest in the first line"),
        ({"data": FIRST | {"version": 2}}, "version: expected 3; found 2: cleanset contest enter contest.yaml begins"),
        ({"data": FIRST | {"quorum": 1}}, "unknown key 'quorum'"),
        ({"data": FIRST | {"teams": {"red": None}}}, "teams: expected a list"),
        ({"data": FIRST | {"organizers": ["grey"]}}, "grey, of organizers or board, is not a team"),
        ({"data": FIRST | {"classes": {"abstain": [], "bird": []}}}, "classes.abstain.*: expected a name other than"),
        ({"data": [1]}, "expected keys and values"),
        ({"signatures": {}}, "expected the keys n, at, kind, prev, data"),
    ],
)
def test_a_line_by_itself(changed: dict[str, Any], message: str, made: OnDisk) -> None:
    """A log of earlier versions is refused in a line that names the command that makes it again."""
    line = {"n": 0, "at": "2026-11-01T08:00:00Z", "kind": "contest", "prev": "0" * 64, "data": FIRST} | changed
    made.log.write_text(json.dumps(line) + "\n")
    with pytest.raises(CleansetError, match=message):
        read(made.folder)


@pytest.mark.parametrize("text", ["", "[]\n", "{}", '{"n": 0, "n": 0}\n', "null\n"])
def test_texts_that_are_not_a_log(text: str, made: OnDisk) -> None:
    made.log.write_text(text)
    with pytest.raises(CleansetError, match="expected"):
        read(made.folder)


def test_the_clock(made: OnDisk) -> None:
    """A line of a wrong clock is made void; then the next one may be earlier."""
    made.add("2027-11-08T12:00:00Z", "team", {"name": "late"})
    made.add("2026-11-08T12:00:00Z", "team", {"name": "black"})
    with pytest.raises(CleansetError, match="expected no instant before the previous line's; if the clock was wrong"):
        read(made.folder)
    made.story[-1] = ("2026-11-08T12:00:00Z", "void", {"lines": [11], "reason": "a wrong clock"})
    made.add("2026-11-08T12:00:00Z", "team", {"name": "black"})
    assert replay(read(made.folder)).teams >= {"black"}
    assert "late" not in replay(read(made.folder)).teams


MISTAKEN = [submission("red", ["x"])], judged(["x"])


def numbers(kind: str) -> list[int]:
    return [line.n for line in contest(*MISTAKEN).lines if line.kind == kind]


def test_a_mistake_is_mended_in_public() -> None:
    """Since its day; an earlier day gives what it gave then. Without a judge's answer the image is open again."""
    log = contest(*MISTAKEN, others=[void(numbers("answers")[0], date="2026-11-08")])
    assert (course(log, SATURDAY).stage, course(log, "2026-11-08").stage) == ("judged", "open")
    answers = judged(["x"], JUDGES[:1], "2026-11-09")
    mended = contest(*MISTAKEN, others=[void(numbers("answers")[0], date="2026-11-08"), *answers])
    assert course(mended, "2026-11-09").stage == "judged"
    check_voids(mended)


def test_what_is_final_stays() -> None:
    """Nothing is taken back: neither a verdict, nor that a defence is broken, nor a win."""
    late = contest(*MISTAKEN, others=[void(numbers("answers")[0], date=LATER)])
    with pytest.raises(
        CleansetError, match=r"\(void\): changes .*, which is final; expected no such lines: leave it out"
    ):
        check_voids(late)
    run_of_week = contest(*MISTAKEN, others=[void(numbers("run")[1], date=LATER)])
    with pytest.raises(CleansetError, match="changes gold/wall, which is final"):
        check_voids(run_of_week)
    assert on(contest(*MISTAKEN), LATER).status == "broken"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("contest", "greater than or equal to 1"),
        ("publish", "no week was published on 2026-11-06"),
        ("submission", "no submission before it"),
    ],
)
def test_what_cannot_be_void(kind: str, message: str) -> None:
    """What later lines are about: the board decides on the images of a published week."""
    with pytest.raises(CleansetError, match=message):
        replay(contest(*MISTAKEN, others=[void(*numbers(kind), date=LATER)]))


def test_a_submission_is_taken_back_before_its_week_is_published() -> None:
    entries = [submission("red", ["x"]), submission("blue", ["y"])]
    log = contest(
        entries,
        judged(["y"]),
        [run({"y": "bird"})],
        others=[Entry("2026-11-04", "void", {"lines": [5], "reason": "no"})],
    )
    assert [*standing(log, FINAL).contest.images] == [sha("y")]


def test_lines_that_hang_on_a_void_one_are_reported() -> None:
    """A void of what later lines are about is refused by the first of them."""
    log = contest(*MISTAKEN, others=[void(numbers("defence")[0], date="2026-11-08")])
    with pytest.raises(CleansetError, match=r"line 3 \(run\): unknown defence gold/wall"):
        replay(log)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("submissions/red/manifest.yaml", "team: red\n"),
        (f"answers/{JUDGES[3]}/2026-11-06.yaml", "judge: x\n"),
        ("contest.yaml", "teams: []\n"),
    ],
)
def test_what_is_next_to_the_log_has_no_effect(name: str, text: str, made: OnDisk) -> None:
    before = check(made.folder)
    made.text(made.folder / name, text)
    assert check(made.folder) == before


def test_a_full_disk_leaves_the_log_unchanged(made: OnDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made.log.read_bytes()

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(entering, "replace_file", full)
    with pytest.raises(OSError, match="No space left"):
        made.enter(made.yaml("team.yaml", {"team": {"name": "black"}}))
    assert made.log.read_bytes() == before


def test_an_instant_is_chosen_in_a_made_up_contest_alone(made: OnDisk) -> None:
    made.changed("contest", made_up=False)
    with pytest.raises(CleansetError, match="--at: only for a test contest"):
        made.enter(made.yaml("team.yaml", {"team": {"name": "black"}}))


def test_without_a_log(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"missing; expected a contest's log: cleanset contest enter contest\.yaml"):
        read(tmp_path)
