"""What is refused in a contest's files, by itself and against each other; accuracy over coverage in a run."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import Section, first_problem
from cleanset.statistics.coverage import Eligibility, coverage_points, coverage_steps
from cleanset.studies.contest.entries import (
    Acceptance,
    AnswerFile,
    Appeal,
    BoardDecision,
    Defence,
    DefenceRun,
    Roster,
    SubmissionManifest,
)
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.judging import ControlImage
from cleanset.studies.contest.rules import ContestRules
from tests.properties import examples
from tests.studies.contest.made import (
    BIRD,
    FRIDAY,
    JUDGES,
    RULES,
    SATURDAY,
    SECOND_FRIDAY,
    STAKED,
    answer,
    appeal,
    contest,
    day,
    decision,
    defence,
    first_run,
    image,
    judged,
    rules,
    run,
    sha,
    stake,
    standing,
    submission,
)

LATER = day("2026-12-31")
KEY = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{'A' * 43}"
BICYCLE = BIRD | {"contains": {"bicycle": "definitely_yes", "bird": "definitely_no"}}
X = [submission("red", ["x"])]
SEEN = {"role": "standard", "confidence": "softmax", "threshold": 0.5, "pixels": 182, "crop": 160}
TWO_SIZES = contest(
    [
        submission("red", ["y"], width=183, height=183),
        submission("red", ["z"], "2026-11-03T12:00:00Z", width=182, height=182),
    ],
    defences={"gold/wall": defence(), "green/gate": defence(name="green/gate", model=SEEN)},
    stakes=[stake("gold/wall", "green/gate")],
)
"""Of two staked defences the smaller one decides, whichever an image is aimed at."""


def refused(files: ContestFiles, message: str) -> None:
    with pytest.raises(CleansetError, match=message) as caught:
        standing(files, LATER)
    assert "expected" in str(caught.value)


def problem(kind: type[Section], content: Mapping[str, object]) -> str:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(content)
    return first_problem(caught.value)


FILES = [{"path": f"{role}.py", "sha256": sha(role), "role": role} for role in ("inference", "training", "weights")]
VALID: dict[type[Section], dict[str, Any]] = {
    ContestRules: RULES,
    Defence: {
        "name": "gold/wall", "submitted": "2026-11-01", "open": True,
        "public": {"source": "a file", "sha256": sha("weights")},
        "model": {"role": "standard", "confidence": "softmax", "threshold": 0.5},
    },
    SubmissionManifest: {
        "team": "red", "target": "gold/wall", "images": [image("x")],
    },
    BoardDecision: {"image": sha("x"), "date": "2026-11-10", "members": ["ada"], "verdict": "bird", "reason": "是"},
    Roster: {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "changed", "message"),
    [
        (ContestRules, {"classes": {"bird": ["n01514668"]}}, "classes: 1 groups; expected 2"),
        (ContestRules, {"classes": {"bird": ["n01514668"], "bicycle": []}}, "empty group; expected at least one wnid"),
        (ContestRules, {"classes": {"bird": ["n01514668"], "bicycle": ["n01514668"]}}, "n01514668 is in both groups"),
        (ContestRules, {"classes": {"bird": ["n01514668"], "abstain": ["n02835271"]}}, "abstain cannot name a group"),
        (ContestRules, {"teams": {}}, "teams: expected at least 1 item"),
        (ContestRules, {"teams": ["red", "staff"]}, "teams: expected a dictionary"),
        (ContestRules, {"teams": {**RULES["teams"], "board": None}}, "teams: one is named board; expected"),
        (ContestRules, {"organizers": ["unknown"]}, "organizers: unknown team unknown; expected one of teams"),
        (ContestRules, {"board": {"ada": {"conflicts": ["pink"]}}}, "board.ada.conflicts: unknown team pink"),
        (ContestRules, {"board": {}}, "board: expected at least 1 item"),
        (ContestRules, {"judges": {"minimum": 2}}, "judges.minimum: expected greater than or equal to 3"),
        (ContestRules, {"judges": {"size": "large"}}, "judges.size: expected 'half', 'quarter_box' or 'box_16_p"),
        (ContestRules, {"eligibility": "other"}, "eligibility: expected 'accuracy_80' or 'perfect_at_80'"),
        (ContestRules, {"money": 1}, "unknown key 'money'; expected classes, teams, organizers"),
        (ContestRules, {"quorum": 3, "board": {"ada": {}, "abe": {}}}, "quorum: 3; expected at most the 2 members"),
        (
            Defence,
            {"model": {"role": "a", "confidence": "softmax", "threshold": 0.5, "pixels": 8, "crop": 9}},
            "model: crop: 9; expected at most pixels, 8",
        ),
        (ContestRules, {"version": 1}, "version: 1; expected 2, of these rules: begin the contest anew with cleanset"),
        (Defence, {"model": None}, "expected either model or command"),
        (Defence, {"command": ["./run"]}, "expected either model or command"),
        (Defence, {"model": None, "command": ["./run"]}, "files: empty; expected every file that the command needs"),
        (Defence, {"model": None, "command": ["./run"], "files": FILES[:2]}, "open: no file has the role weights"),
        (Defence, {"files": [FILES[0], FILES[0]]}, "files: a path twice"),
        (Defence, {"files": [FILES[0] | {"path": "../secret"}]}, "files.0.path: expected a match of"),
        (Defence, {"files": [FILES[0] | {"path": "/etc/passwd"}]}, "files.0.path: expected a match of"),
        (Defence, {"submitted": "2026-02-30"}, 'expected a day such as "2026-11-27", in quotes; found '),
        (Defence, {"time_limit_seconds": 0}, "time_limit_seconds: expected greater than or equal to 1"),
        (Defence, {"public": None}, "open: no weights; expected them among the files, or public with their source"),
        (Defence, {"public": {"source": "", "sha256": sha("weights")}}, "public.source: expected a match of"),
        (Defence, {"name": "wall"}, "name: expected a match of"),
        (SubmissionManifest, {"target": "wall"}, "target: expected a match of"),
        (SubmissionManifest, {"images": []}, "images: expected at least 1 item"),
        (SubmissionManifest, {"images": [image("x", file="../x.png")]}, "images.0.file: expected a match of"),
        (SubmissionManifest, {"images": [image("x", file="x.gif")]}, "images.0.file: expected a match of"),
        (SubmissionManifest, {"images": [image("x", width=0)]}, "images.0.width: expected greater than or equal to 1"),
        (
            SubmissionManifest, {"images": [image("x", width=20_000, height=20_000)]},
            "20000 x 20000 pixels; expected at most 100,000,000",
        ),
        *((BoardDecision, {"reason": each}, "reason: expected a match of") for each in ("", " ", ".", "\u00a0\u200b")),
        (BoardDecision, {"reason": None}, "reason: expected a string"),
        (BoardDecision, {"judges": 5}, "expected either verdict or judges"),
        (BoardDecision, {"recused": ["ada"]}, "ada is recused and among members"),
        (Roster, {"roster": {"ada": KEY}}, "expected a match of"),
        (Roster, {"roster": {"0" * 8: None}}, "expected a string"),
        (Roster, {"roster": {"0" * 8: KEY.replace("ed25519", "rsa")}}, "expected a match of"),
        (Roster, {"roster": {"0" * 8: f"{KEY}\nada {KEY}"}}, "expected a match of"),
    ],
)  # fmt: skip
def test_each_file_by_itself(kind: type[Section], changed: dict[str, Any], message: str) -> None:
    assert message in problem(kind, VALID[kind] | changed)
    assert kind is Roster or kind.model_validate(VALID[kind])


def test_a_closed_command_need_not_name_all_roles() -> None:
    content = {"name": "gold/wall", "submitted": "2026-11-01", "open": False, "command": ["./run"], "files": FILES[:1]}
    assert not Defence.model_validate(content).open


COMMAND = {"model": None, "command": ["./run"], "files": FILES}
CONTROL = ControlImage(contains={"bird": True, "bicycle": False})
TWO = {"gold/wall": defence(), "blue/roof": defence()}
JUDGED = judged(["x"])
ENDED = "expected one whose week has ended"


def of_model(date: str) -> DefenceRun:
    return run({}, date=date).model_copy(update={"model": sha(date)})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (contest(defences={"gold/wall": defence(), "pink/wall": defence()}), "defence pink/wall: unknown team pink"),
        (contest([submission("pink", ["x"])]), "pink's submission: unknown team pink"),
        (contest([submission("red", ["x"], target="gold/moat")]), "unknown target gold/moat; expected a defence"),
        (
            contest([submission("red", ["x"], "2026-11-01T12:00:00Z")]),
            "gold/wall is staked on 2026-11-02; expected a target",
        ),
        (contest(X, stakes=[]), "gold/wall is not staked; expected a target that is staked by 2026-11-02"),
        (contest([submission("red", ["x", "x"])]), "the same image as line .*, red's submission/x.png"),
        (
            contest([submission("red", [f"x{n}" for n in range(11)])]),
            "11 images of red on 2026-11-02; expected at most 10$",
        ),
        (
            contest([submission("red", ["y"], width=300, height=300)]),
            "300 x 300 pixels; expected at most 299 a side, as many as gold/wall sees: make it smaller",
        ),
        (TWO_SIZES, "183 x 183 pixels; expected at most 182 a side, as many as green/gate sees: make it smaller"),
        (contest([submission("red", ["y"], width=1, height=1)]), "1 x 1 pixels; expected at least 16 a side"),
        (contest([submission("red", ["y"], width=400)]), "400 x 100 pixels; expected a square image: models look at"),
        (
            contest(X, controls={sha("x"): CONTROL}),
            "x.png: a control image of the judges; expected an image that they do not",
        ),
        (
            contest(X, [AnswerFile(judge="f" * 8, week=day(FRIDAY), answers={sha("x"): answer()})]),
            "judge ffffffff is not in the roster",
        ),
        (contest(X, judged(["y"])), "an image never shown to this judge in the week of 2026-11-06"),
        (contest(X, judged(["x"], week=SECOND_FRIDAY, date="2026-11-14")), "never shown to .* in the week of 2026-11"),
        (contest(X, judged(["x"], date="2026-11-05")), "judged when it was published"),
        (contest(X, judged({"x": BIRD | {"outline": [[0, 0], [101, 0], [9, 9]]}})), "outside the image of 100 x 100"),
        *(
            (contest(X, judged({"x": BIRD | {"contains": {"bird": "definitely_yes"} | more}})), "expected bicycle, b")
            for more in ({}, {"no": "definitely_no"})
        ),
        (contest(X, decisions=[decision("x", "bird", members=["mallory"])]), "mallory is not a member of the board"),
        (
            contest(X, decisions=[decision("x", "bird", members=["ada", "eve"])]),
            "signed by eve, who has a conflict with gold, red",
        ),
        (
            contest([submission("union", ["x"])], decisions=[decision("x", "bird", members=["bob"])]),
            "signed by bob, who",
        ),
        (
            contest(X, JUDGED, rules=rules(quorum=2, board={"ada": {}, "abe": {}}), decisions=[decision("x", "bird")]),
            "signed by 1 members; expected at least 2, the contest's",
        ),
        (contest(X, decisions=[decision("x", "cat")]), "verdict cat; expected one of bicycle, bird, invalid"),
        (contest(X, decisions=[decision("y", "bird")]), f"no image published by then; {ENDED}"),
        (contest(X, decisions=[decision("x", "bird", "2026-11-05")]), "no image published by then"),
        (contest(X, decisions=[decision("x", "bird"), decision("x", "invalid")]), "two decisions on one day"),
        (
            contest(X, JUDGED, decisions=[decision("x", None, "2026-11-20", judges=5)]),
            "more judges for a final verdict; expected them before 2026-11-14",
        ),
        (contest(X, appeals=[appeal("y", "gold")]), f"no image published by 2026-11-09; {ENDED}"),
        (contest(X, JUDGED, appeals=[appeal("x", "pink")]), "appeal of pink on .*: unknown team"),
        (contest(X, appeals=[appeal("x", "gold")]), "not within the days for appeals"),  # nobody has judged it
        (
            contest(
                X, JUDGED, decisions=[decision("x", None, "2026-11-11", judges=5)],
                appeals=[appeal("x", "gold"), appeal("x", "gold", "2026-11-12")],
            ),
            "of 2026-11-12: not within the days for appeals",
        ),
        (contest(stakes=[stake("gold/moat")]), "unknown defence gold/moat"),
        (contest(stakes=[stake("gold/wall"), stake("gold/wall", batch="second")]), "gold/wall is staked a second time"),
        (contest(stakes=[stake("gold/wall", "gold/wall")]), "gold/wall is staked a second time"),
        (contest(defences=TWO, stakes=[stake("gold/wall"), stake("blue/roof")]), "batch first: a second time"),
        (contest(stakes=[stake("gold/wall", by="blue")]), "is staked by blue; expected board, or its own team"),
        (contest(stakes=[stake("gold/wall", date="2026-10-31")]), "unknown defence gold/wall|was submitted on 2026-11"),
        (contest(X, runs=[run({"x": "cat"})]), "answers 'cat'; expected one of abstain, bicycle, bird"),
        (contest(X, runs=[run({})]), "no answer to 2d711642b726…; expected one to every image published by then"),
        (contest(X, runs=[run({"x": "bird", "y": "bird"})]), "answers [0-9a-f]{12}…, which nobody submitted"),
        (contest(X, runs=[run({"x": "bird"}), run({"x": "abstain"})]), "two runs on one day"),
        (contest(X, runs=[run({"x": "bird"}, "gold/moat")]), "run of gold/moat on 2026-11-07: unknown defence"),
        (
            contest(runs=[of_model("2026-11-03"), of_model("2026-11-04")], first=False),
            f"on 2026-11-04: a run of a model with the digest {sha('2026-11-04')}; "
            f"expected {sha('2026-11-03')}, as in its first run",
        ),
    ],
)  # fmt: skip
def test_files_that_contradict_each_other(files: ContestFiles, message: str) -> None:
    refused(files, message)


@pytest.mark.parametrize(
    "files",
    [
        contest([submission("red", ["x"], width=16, height=16)]),
        contest([submission("red", ["x"], width=299, height=299)]),
        contest(
            X, JUDGED, rules=rules(quorum=2, board={"ada": {}, "abe": {}}),
            decisions=[decision("x", "bird", members=["abe", "ada"])],
        ),
    ],
)  # fmt: skip
def test_files_at_the_limits(files: ContestFiles) -> None:
    assert standing(files, LATER)


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize("at", ["2026-11-02T12:00:01Z", "2026-11-05T00:00:00Z", "2026-11-09T12:00:00Z"])
def test_what_another_team_submits_again_does_not_count(at: str, name: str) -> None:
    """Neither the same file nor the same pixels in another one: it keeps nobody from winning, and brings no share."""
    submissions = [submission("red", ["x"]), submission("blue", [name, "z"], at)]
    object.__setattr__(submissions[1].manifest.images[0], "pixels_sha256", sha("x pixels"))
    answers = judged({"x": BIRD} | ({name: BIRD, "z": BIRD} if at < SATURDAY else {}))
    late = [] if at < SATURDAY else [run({"x": "bicycle", name: "bicycle", "z": "abstain"}, date="2026-11-14")]
    runs = [run({"x": "bicycle"} | ({name: "bicycle", "z": "abstain"} if at < SATURDAY else {})), *late]
    found = standing(contest(submissions, answers, runs), day("2026-12-20"))
    assert (found.defences[0].broken_by, found.attackers) == (("red",), {"red": Fraction(1)})
    assert list(found.images) == [sha("x"), sha("z")]
    assert found.notes[-1] == (
        f"Left out: {submissions[1]}/{name}.png: the same image as {submissions[0]}/x.png, which counts."
    )


def test_ten_images_a_day_in_several_submissions() -> None:
    ten = [submission("red", ["a"] + [f"x{n}" for n in range(8)]), submission("red", ["b"], number=2)]
    next_day = submission("red", ["c"], "2026-11-03T00:00:00Z")
    other_team = submission("blue", ["d"])
    assert standing(contest([*ten, next_day, other_team]), LATER)
    eleventh = submission("red", ["e"], f"{STAKED}T23:59:59Z", number=3)
    refused(contest([*ten, next_day, other_team, eleventh]), "red's submission: 11 images of red on 2026-11-02")


def test_control_images_are_shown() -> None:
    files = contest(X, judged(["x", "control"]), controls={sha("control"): CONTROL})
    assert list(standing(files, LATER).images) == [sha("x")]


def with_conflict(answers: list[AnswerFile], given: str, decided: BoardDecision, **others: Any) -> ContestFiles:
    """Image x, aimed at gold/wall, which blue/roof answers on Saturday; ada of the board has a conflict with blue."""
    runs = [run({"x": "bicycle"}), run({"x": given}, "blue/roof", others.pop("date", SATURDAY))]
    return contest(
        X, answers, runs, {"gold/wall": defence(), "blue/roof": defence()}, decisions=[decided],
        rules=rules(board={"ada": {"conflicts": ["blue"]}}), **others,
    )  # fmt: skip


IN_CONFLICT = "signed by ada, who has a conflict with blue, gold, red; expected the member under recused"


@pytest.mark.parametrize("appeals", [[], [appeal("x", "blue")]])
def test_a_member_whose_defence_the_image_breaks(appeals: list[Appeal]) -> None:
    """Aimed at gold/wall, it breaks blue/roof, too, if that calls it a bicycle: blue gains by a rejection."""
    refused(with_conflict(judged(["x"]), "bicycle", decision("x", "invalid"), appeals=appeals), IN_CONFLICT)
    for group in ("bird", "abstain"):
        assert standing(with_conflict(judged(["x"]), group, decision("x", "invalid")), LATER)
    refused(with_conflict(judged(["x"]), "bird", decision("x", "bicycle")), IN_CONFLICT)


@pytest.mark.parametrize("answers", [[], judged({"x": BICYCLE}), judged({"x": BICYCLE}, JUDGES[:1])])
def test_parties_while_the_group_is_not_known(answers: list[AnswerFile]) -> None:
    """blue/roof calls it a bird: as long as it may be a bicycle, blue is a party."""
    refused(with_conflict(answers, "bird", decision("x", "invalid")), IN_CONFLICT)
    assert standing(with_conflict(answers, "abstain", decision("x", "invalid")), LATER)


@pytest.mark.parametrize("staked", [["gold/wall", "blue/roof"], ["gold/wall"]])
def test_a_defence_that_has_not_answered_yet(staked: list[str]) -> None:
    """Its team may have asked it in secret, and decides before it is run; a mistake would keep it from a stake, too."""
    for date, is_party in (("2026-11-10", True), ("2026-11-12", False)):
        files = with_conflict(
            judged(["x"]), "abstain", decision("x", "invalid", date), date="2026-11-12", stakes=[stake(*staked)]
        )
        if is_party:
            refused(files, IN_CONFLICT)
        else:
            assert standing(files, LATER)


@pytest.mark.parametrize(("accepted", "is_party"), [("2026-11-10", True), ("2026-11-11", False), (None, False)])
def test_a_command_that_cannot_be_run_yet(accepted: str | None, is_party: bool) -> None:
    """Nobody is kept from deciding by a command that the board has not accepted."""
    command = defence(**COMMAND)
    given = [] if accepted is None else [Acceptance.model_validate({"defence": "blue/roof", "date": accepted})]
    files = contest(
        X, judged(["x"]), [run({"x": "bicycle"})], {"gold/wall": defence(), "blue/roof": command}, first=False,
        decisions=[decision("x", "invalid")], accepted=given, rules=rules(board={"ada": {"conflicts": ["blue"]}}),
    )  # fmt: skip
    if is_party:
        refused(files, IN_CONFLICT)
    else:
        assert standing(files, LATER)


@pytest.mark.parametrize(("judges", "least", "minimum"), [(3, 5, 5), (3, 4, 3), (4, 5, 5)])
def test_more_judges_are_more(judges: int, least: int, minimum: int) -> None:
    """Below the minimum, or no more than have answered; the message names the file."""
    more = decision("x", None, judges=judges)
    files = contest(X, judged(["x"]), decisions=[more], rules=rules(judges={"minimum": minimum}))
    where = rf"decision on {sha('x')[:12]}… of 2026-11-10"
    refused(files, f"{where}: judges {judges}; expected at least {least}: 3 have answered")


@pytest.mark.parametrize("accepted", [[], ["2026-11-02"], ["2026-11-01"], ["2026-11-01", "2026-11-02"]])
def test_commands_run_only_when_the_board_has_accepted_them(accepted: list[str]) -> None:
    """By the day of the first run, 2026-11-01; a later permission changes nothing."""
    entries = [Acceptance.model_validate({"defence": "gold/wall", "date": each}) for each in accepted]
    files = contest(defences={"gold/wall": defence(**COMMAND)}, accepted=entries)
    if "2026-11-01" in accepted:
        assert standing(files, LATER)
    else:
        refused(files, "a command that the board has not accepted by then; expected its acceptance")


def test_what_is_dated_later_is_not_there_yet() -> None:
    """Wrong files do no harm to the standing of the days before."""
    late = [*X, submission("pink", ["y"], "2026-11-20T00:00:00Z")]
    files = contest(late, [], [run({"x": "bird"})])
    assert standing(files, day(SATURDAY)).images
    refused(files, "unknown team pink")
    assert first_run().date == day("2026-11-01")


CONFIDENCE = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
CORRECT = np.array([True, True, False, True, True, False])
ANSWERS = np.zeros(6, np.bool_)


def test_the_steps() -> None:
    """A mistake in the third and in the sixth answer."""
    assert coverage_steps(CORRECT, ANSWERS, CONFIDENCE) == [(2, 0), (3, 1), (5, 1), (6, 2)]


def test_where_it_abstains_it_makes_no_mistake() -> None:
    abstains = np.array([False, False, True, False, False, True])
    assert coverage_steps(CORRECT, abstains, CONFIDENCE) == [(4, 0)]
    assert coverage_steps(CORRECT, ~ANSWERS, CONFIDENCE) == []


def test_without_a_confidence_there_is_one_step() -> None:
    assert coverage_steps(CORRECT, ANSWERS) == [(6, 2)]


def test_the_points() -> None:
    """Every number of answers between steps without a mistake in between; the second of ten images is one."""
    expected = [(0.1, 1), (0.2, 1), (0.3, 2 / 3), (0.4, 3 / 4), (0.5, 4 / 5), (0.6, 4 / 6)]
    found = coverage_points([(2, 0), (3, 1), (5, 1), (6, 2)], 10)
    assert np.array(found) == pytest.approx(np.array(expected))
    assert np.array(coverage_points([(6, 2)], 10)) == pytest.approx(np.array([(0.6, 4 / 6)]))
    assert coverage_points([], 10) == []


@examples(100)
@given(st.lists(st.tuples(st.sampled_from([0.5, 0.6, 0.7]), st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_every_confidence_is_found_again(drawn: list[tuple[float, bool, bool]]) -> None:
    """The accuracy of all answers that are at least so confident is among the points."""
    confidence, correct, abstains = (np.array(column) for column in zip(*drawn, strict=True))
    found = coverage_points(coverage_steps(correct, abstains, confidence), len(drawn))
    for lowest in (0.5, 0.6, 0.7):
        answered = [right for sure, right, abstain in drawn if sure >= lowest and not abstain]
        if answered:
            point = (len(answered) / len(drawn), sum(answered) / len(answered))
            assert any(np.allclose(point, each) for each in found)


@pytest.mark.parametrize(
    ("coverage", "message"),
    [
        ([[5, 0], [5, 1], [9, 1]], r"\[5, 1\] after \[5, 0\]; expected more images"),
        ([[5, 2], [9, 1]], r"\[9, 1\] after \[5, 2\]"),
        ([[1, 2], [9, 2]], r"\[1, 2\] after \[0, 0\]"),
        ([[8, 1]], r"ends at \[8, 1\]; expected all answers and mistakes of eligibility"),
        ([], r"ends at \[0, 0\]"),
        ([[9]], "at least 2 items"),
    ],
)
def test_steps_that_cannot_be(coverage: list[list[int]], message: str) -> None:
    content: dict[str, Any] = {"defence": "gold/wall", "date": "2026-11-01", "answers": {}}
    content["images_per_minute"] = 1.0
    content["eligibility"] = {"images": 10, "correct": 8, "mistakes": 1, "mistakes_at_80": 1}
    assert DefenceRun.model_validate(content | {"coverage": [[4, 0], [9, 1]]}).coverage == [[4, 0], [9, 1]]
    with pytest.raises(ValidationError) as caught:
        DefenceRun.model_validate(content | {"coverage": coverage})
    assert re.search(message, first_problem(caught.value))


@pytest.mark.parametrize("figures", [(10, 11, 0, 0), (10, 9, 2, 0), (10, 8, 1, 2)])
def test_figures_that_cannot_be(figures: tuple[int, int, int, int]) -> None:
    """More answers than images, or more mistakes among the surest than in all."""
    names = ("images", "correct", "mistakes", "mistakes_at_80")
    with pytest.raises(ValidationError) as caught:
        Eligibility.model_validate(dict(zip(names, figures, strict=True)))
    assert f"of {figures[0]} images; expected no more than there are" in first_problem(caught.value)
