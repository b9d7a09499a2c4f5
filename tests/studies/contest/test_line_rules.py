"""Who may enter what, when, how much and only once: each line that breaks a rule is refused, and named."""

from typing import Any

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.contest.log import Log
from cleanset.studies.contest.standing import replay
from tests.studies.contest.made import (
    BIRD,
    FRIDAY,
    JUDGES,
    RULES,
    SATURDAY,
    SIDE,
    Entry,
    appeal,
    contest,
    day,
    decision,
    defence,
    image,
    judged,
    log_of,
    run,
    sha,
    stake,
    submission,
)

X = [submission("red", ["x"])]
X_SHA = sha("x")


def answers(**changed: Any) -> Entry:
    data = {"judge": JUDGES[0], "week": FRIDAY, "answers": {sha("x"): BIRD}} | changed
    return Entry(SATURDAY, "answers", data)


def elsewhere(**changed: Any) -> Entry:
    data = {"team": "blue", "target": "gold/wall", "images": [image("y", **changed)]}
    return Entry("2026-11-03", "submission", data)


REFUSED: list[tuple[Log, str]] = [
    (contest(defences=[defence("grey/wall")], stakes=[]), "unknown team 'grey'"),
    (contest(defences=[defence(), defence(date="2026-11-03")]), "gold/wall: entered before; expected another name"),
    (contest(defences=[defence(f"gold/wall{n}") for n in range(11)], stakes=[]), "10 defences of gold are there"),
    (contest(stakes=[stake("gold/roof")]), "unknown defence gold/roof"),
    (contest(stakes=[stake("gold/wall"), stake("gold/wall", batch="second")]), "gold/wall: staked a second time"),
    (contest(stakes=[stake("gold/wall"), stake("gold/wall", date="2026-11-03")]), "gold/wall: staked a second time"),
    (contest([submission("grey", ["x"])]), "unknown team 'grey'"),
    (contest([submission("red", ["x"], target="gold/roof")]), "unknown defence gold/roof"),
    (contest(X, stakes=[]), "gold/wall is not staked; expected a target that is: see the standing"),
    (contest([submission("red", ["x"], "2026-11-01")]), "gold/wall is not staked"),
    (contest([submission("red", [f"{n}" for n in range(11)])]), "11 images of red on 2026-11-02; expected at most 10"),
    (contest([submission("red", list("abcdef")), submission("red", list("ghijk"))]), "11 images of red on 2026-11-02"),
    (contest([submission("red", ["x"] * 2)]), "x.png: submitted before, as x.png in line 5"),
    (contest([*X, submission("blue", ["x"], "2026-11-03")]), "x.png: submitted before, as x.png in line 5"),
    (contest([*X, elsewhere(pixels_sha256=sha("x pixels"))]), "y.png: submitted before, as x.png"),
    (contest([elsewhere(width=SIDE + 1)]), "101 x 100 pixels; expected a square image"),
    (contest([elsewhere(width=225, height=225)]), "225 x 225 pixels; expected 16 to 224 a side"),
    (contest([elsewhere(width=15, height=15)]), "15 x 15 pixels; expected 16 to 224 a side"),
    (contest(X, others=[Entry("2026-11-05", "publish", {})]), "on 2026-11-05; expected 2026-11-06"),
    (contest(others=[Entry(FRIDAY, "publish", {})]), "no submission before it"),
    (contest(X, [answers(judge="9" * 8)]), "unknown judge '99999999'"),
    (contest(X, [answers(week="2026-11-07")]), "no week was published on 2026-11-07"),
    (contest(X, [answers(answers={sha("y"): BIRD})]), "not published; expected an image whose week has ended"),
    (contest(X, [answers(answers={sha("x"): BIRD | {"contains": {"bird": "definitely_yes"}}})]), "contains 'bird'"),
    (contest(X, [answers(), *judged({"x": {"contains": BIRD["contains"]}}, JUDGES[:1])]), "had another answer before"),
    (contest(X, appeals=[appeal("x", "grey")]), "unknown team 'grey'"),
    (contest(X, appeals=[appeal("y", "gold")]), "not published; expected an image whose week has ended"),
    (contest(X, appeals=[appeal("x", "gold")]), "no time for appeals"),
    (contest(X, decisions=[decision("y", "bird")]), "not published; expected an image"),
    (contest(X, decisions=[decision("x", "cat")]), "unknown verdict 'cat'; expected one of bicycle, bird, invalid"),
    (contest(X, decisions=[decision("x", judges=3), decision("x", "bird"), decision("x", judges=5)]), "before the end"),
    (contest(X, runs=[run({"x": "bird"}, "gold/roof")]), "unknown defence gold/roof"),
    (contest(X, runs=[run({"x": "bird", "y": "bird"})]), "not the published images, such as"),
    (contest(X, runs=[run({})]), "not the published images"),
    (contest(X, runs=[run({"x": "bird"}, model=sha("another"))]), "expected .*, as before: enter it as another"),
]  # fmt: skip


@pytest.mark.parametrize(("log", "message"), REFUSED, ids=range(len(REFUSED)))
def test_lines_that_break_a_rule(log: Log, message: str) -> None:
    with pytest.raises(CleansetError, match=rf"^line [0-9]+ \([a-z]+\): .*{message}"):
        replay(log)


def test_lines_at_the_limits() -> None:
    replay(contest([submission("red", [f"{n}" for n in range(10)]), submission("red", ["x"], "2026-11-03")]))
    replay(contest(defences=[defence(f"gold/wall{n}") for n in range(10)], stakes=[]))
    replay(contest([elsewhere(width=224, height=224)]))


CONTROL = {"contains": {"bird": True, "bicycle": False}}
NAMES = [sha(f"control {n}") for n in range(6)]


def with_controls(given: int, extra: bool = False) -> Log:
    """Judge a, with 2 controls drawn, answers the first of these, or another one with them."""
    controls = Entry("2026-11-01", "controls", {"controls": dict.fromkeys(NAMES, CONTROL)})
    ruled = {"judges": {"controls": 0.5}}
    images = [submission("red", ["x", "y"])]
    begun = contest(images, runs=[], rules=ruled, controls=[controls])
    drawn = replay(begun, day(FRIDAY)).drawn(JUDGES[0])[day(FRIDAY)]
    others = [name for name in NAMES if name not in drawn]
    answered = [*drawn[:given], *others[:extra]]
    content = {sha("x"): BIRD, sha("y"): BIRD, **dict.fromkeys(answered, BIRD)}
    return contest(images, [answers(answers=content)], [], rules=ruled, controls=[controls])


def test_answers_have_the_controls_that_were_drawn() -> None:
    """A judge who leaves controls out, or answers only those that seem easy, is refused."""
    replay(with_controls(2))
    for log, what in (
        (with_controls(1), "lacking"),
        (with_controls(0), "lacking"),
        (with_controls(2, extra=True), "with"),
    ):
        with pytest.raises(
            CleansetError, match=rf"answers of {JUDGES[0]} {what} control image .*; expected answers to all 2"
        ):
            replay(log)


def test_a_control_is_no_submission() -> None:
    entries = [
        Entry("2026-11-01", "contest", RULES),
        Entry("2026-11-01", "controls", {"controls": {sha("x"): CONTROL}}),
        defence(),
        stake("gold/wall"),
        *X,
    ]
    with pytest.raises(CleansetError, match=r"x\.png: a control image of the judges"):
        replay(log_of(entries))


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("defence", {"name": "gold/wall", "open": True, "source": "a"}, "expected either model or program"),
        ("defence", {"name": "gold/wall", "open": True, "model": defence().data["model"]}, "open: no source"),
        ("defence", {"name": "wall", "open": False}, "name"),
        ("submission", {**submission("red", ["x"]).data, "date": FRIDAY}, "unknown key 'date'"),
        ("answers", {"judge": JUDGES[0], "day": FRIDAY, "week": FRIDAY, "answers": {X_SHA: BIRD}}, "unknown key 'day'"),
        ("defence", {"name": "a/b", "open": False, "program": {"command": ["x"], "files": {}}}, "files"),
        ("defence", {"name": "a/b", "open": False, "program": {"command": ["x"], "files": {"../x": X_SHA}}}, "files"),
        ("stake", {"batch": "a", "defences": []}, "defences"),
        ("stake", {"batch": "a", "by": "gold", "defences": ["gold/wall"]}, "unknown key 'by'"),
        ("answers", {"judge": "ada", "week": FRIDAY, "answers": {sha("x"): BIRD}}, "judge"),
        ("answers", {"judge": JUDGES[0], "week": FRIDAY, "answers": {X_SHA: BIRD | {"outline": "1,1"}}}, "outline"),
        ("decision", {"image": sha("x"), "reason": "a", "verdict": "bird", "judges": 5}, "either verdict or judges"),
        ("decision", {"image": sha("x"), "reason": "…", "verdict": "bird"}, "reason"),
        ("decision", {"image": sha("x"), "reason": "a", "judges": 2}, "judges"),
        ("run", {**run({}).data, "eligibility": {"images": 10, "correct": 9, "mistakes": 2}}, "no more than there are"),
        ("run", {**run({}).data, "unpublished": {"eligible": True, "correct": 3}}, "unpublished"),
        ("void", {"lines": [], "reason": "a"}, "lines"),
    ],
)  # fmt: skip
def test_each_entry_by_itself(kind: str, data: dict[str, Any], message: str) -> None:
    """Only the board stakes; nothing about single images of the unpublished list has a place in a run."""
    with pytest.raises(CleansetError, match=message):
        log_of([Entry("2026-11-01", "contest", RULES), Entry("2026-11-01", kind, data)])
