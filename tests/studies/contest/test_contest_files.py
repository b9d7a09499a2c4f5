"""What is refused in a contest's files: each by itself, and against each other; each line of bad input once."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from cleanset.errors import CleansetError
from cleanset.studies.contest.files import (
    Acceptance,
    Appeal,
    BoardDecision,
    ContestFiles,
    Defence,
    Roster,
    SubmissionManifest,
    SubmittedImage,
    WeekOfAnswers,
)
from cleanset.studies.contest.judging import ControlImage
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.contest.standing import standing
from cleanset.validation import Section, first_problem
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
    submission,
)

LATER = day("2026-12-31")
BICYCLE = BIRD | {"contains": {"bicycle": "definitely_yes", "bird": "definitely_no"}}
X = [submission("red", ["x"])]


def refused(files: ContestFiles, message: str) -> None:
    with pytest.raises(CleansetError, match=message) as caught:
        standing(files, LATER)
    assert "expected" in str(caught.value)


def problem(kind: type[Section], content: Mapping[str, object]) -> str:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(content)
    return first_problem(caught.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": {"bird": ["n01514668"]}}, "classes: 1 groups; expected 2"),
        ({"classes": {"bird": ["n01514668"], "bicycle": []}}, "empty group; expected at least one wnid"),
        ({"classes": {"bird": ["n01514668"], "bicycle": ["n01514668"]}}, "n01514668 is in both groups"),
        ({"classes": {"bird": ["n01514668"], "abstain": ["n02835271"]}}, "abstain cannot name a group"),
        ({"teams": []}, "teams: expected at least 1 item"),
        ({"teams": ["red", "red", "staff", "union"]}, "teams: one is named board, or listed twice"),
        ({"teams": [*RULES["teams"], "board"]}, "teams: one is named board, or listed twice"),
        ({"organizers": ["unknown"]}, "organizers: unknown team unknown; expected one of teams"),
        ({"board": {"ada": {"conflicts": ["pink"]}}}, "board.ada.conflicts: unknown team pink"),
        ({"board": {}}, "board: expected at least 1 item"),
        ({"judges": {"minimum": 2}}, "judges.minimum: expected greater than or equal to 3"),
        ({"judges": {"size": "large"}}, "judges.size: expected 'half', 'quarter_box' or 'box_16_percent'"),
        ({"eligibility": "other"}, "eligibility: expected 'accuracy_80' or 'perfect_at_80'"),
        ({"money": 1}, "unknown key 'money'; expected classes, teams, organizers"),
    ],
)  # fmt: skip
def test_contest_yaml(changed: dict[str, Any], message: str) -> None:
    assert message in problem(ContestRules, RULES | changed)


FILES = [{"path": f"{role}.py", "sha256": sha(role), "role": role} for role in ("inference", "training", "weights")]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": None}, "expected either model or command"),
        ({"command": ["./run"]}, "expected either model or command"),
        ({"model": None, "command": ["./run"]}, "files: none; expected every file that the command needs"),
        ({"model": None, "command": ["./run"], "files": FILES[:2]}, "open: no file has the role weights"),
        ({"files": [FILES[0], FILES[0]]}, "files: a path twice"),
        ({"files": [FILES[0] | {"path": "../secret"}]}, "files.0.path: expected a match of"),
        ({"files": [FILES[0] | {"path": "/etc/passwd"}]}, "files.0.path: expected a match of"),
        ({"submitted": "2026-02-30"}, 'expected a day such as "2026-11-27", in quotes; found '),
        ({"time_limit_seconds": 0}, "time_limit_seconds: expected greater than or equal to 1"),
    ],
)  # fmt: skip
def test_defence_yaml(changed: dict[str, Any], message: str) -> None:
    model = {"role": "standard", "confidence": "softmax", "threshold": 0.5}
    assert message in problem(Defence, {"submitted": "2026-11-01", "open": True, "model": model} | changed)


def test_a_closed_command_need_not_name_all_roles() -> None:
    content = {"submitted": "2026-11-01", "open": False, "command": ["./run"], "files": FILES[:1]}
    assert not Defence.model_validate(content).open


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"submitted": "2026-11-02"}, "submitted: expected an instant in UTC such as"),
        ({"submitted": "2026-11-02T24:00:00Z"}, "submitted: expected an instant in UTC such as"),
        ({"submitted": "2026-11-02T12:00:00+01:00"}, "submitted: expected an instant in UTC such as"),
        ({"target": "wall"}, "target: expected a match of"),
        ({"images": []}, "images: expected at least 1 item"),
        ({"images": [image("x", file="../x.png")]}, "images.0.file: expected a match of"),
        ({"images": [image("x", file="x.gif")]}, "images.0.file: expected a match of"),
        ({"images": [image("x", width=0)]}, "images.0.width: expected greater than or equal to 1"),
        ({"images": [image("x", width=20_000, height=20_000)]}, "20000 x 20000 pixels; expected at most 100,000,000"),
    ],
)
def test_manifest_yaml(changed: dict[str, Any], message: str) -> None:
    content = {"submitted": "2026-11-02T12:00:00Z", "target": "gold/wall", "images": [image("x")]}
    assert message in problem(SubmissionManifest, content | changed)


def test_a_verdict_without_reason() -> None:
    content = {"image": sha("x"), "date": "2026-11-10", "members": ["ada"], "verdict": "bird"}
    assert problem(BoardDecision, content).startswith("reason: Field required")
    for reason in ("", " ", ".", "\u00a0\u200b"):
        assert problem(BoardDecision, content | {"reason": reason}).startswith("reason: expected a match of")
    assert BoardDecision.model_validate(content | {"reason": "是"})
    assert "expected either verdict or judges" in problem(BoardDecision, content | {"reason": "why", "judges": 5})
    recused = content | {"reason": "why", "recused": ["ada"]}
    assert "ada is recused and among members" in problem(BoardDecision, recused)


def test_a_judge_has_no_name() -> None:
    assert "expected a match of" in problem(Roster, {"judges": {"ada": {"joined": "2026-11-01"}}})


def test_sides_may_be_as_long_as_the_limit() -> None:
    SubmittedImage.model_validate(image("x", width=4096))
    at_limit, above = (
        [submission("red", ["x"])] if width == 4096 else [submission("red", ["y"])] for width in (4096, 4097)
    )
    for submissions, width in ((at_limit, 4096), (above, 4097)):
        object.__setattr__(submissions[0].manifest.images[0], "width", width)
    assert standing(contest(at_limit), LATER)
    refused(contest(above), "4097 x 100 pixels; expected at most 4096 a side")


@pytest.mark.parametrize(
    ("submissions", "message"),
    [
        ([submission("pink", ["x"])], "submissions/pink/2026-11-02-1: unknown team pink"),
        ([submission("red", ["x"], target="gold/moat")], "unknown target gold/moat; expected a defence"),
        ([submission("red", ["x"], "2026-11-01T12:00:00Z")], "gold/wall is staked on 2026-11-02; expected a target"),
        ([submission("red", ["x", "x"])], "the same image as submissions/red/2026-11-02-1/x.png"),
        ([submission("red", ["x"]), submission("red", ["y"])], "submissions/red/2026-11-02-1: a second time"),
        ([submission("red", [f"x{n}" for n in range(11)])], "11 images of red on that day; expected at most 10"),
    ],
)  # fmt: skip
def test_refused_submissions(submissions: list[Any], message: str) -> None:
    refused(contest(submissions), message)


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
    refused(
        contest([*ten, next_day, other_team, eleventh]), "submissions/red/2026-11-02-3: 11 images of red on that day"
    )


def test_an_unstaked_target() -> None:
    refused(contest(X, stakes=[]), "gold/wall is not staked; expected a target that is staked by 2026-11-02")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([WeekOfAnswers("f" * 8, day(FRIDAY), {sha("x"): answer()})], "judge ffffffff is not in the roster"),
        ([*judged(["x"]), *judged(["x"], JUDGES[:1], week=SECOND_FRIDAY)], "answered twice by this judge"),
        (judged(["y"]), "an image never shown to this judge in the week of 2026-11-06"),
        (judged(["x"], week=SECOND_FRIDAY, date="2026-11-14"), "never shown to this judge in the week of 2026-11-13"),
        (judged(["x"], date=FRIDAY), "judged after its Friday"),
        (judged({"x": BIRD | {"outline": [[0, 0], [101, 0], [9, 9]]}}), "outside the image of 100 x 100 pixels"),
        (judged({"x": BIRD | {"contains": {"bird": "definitely_yes", "no": "definitely_no"}}}), "expected bicycle,"),
        (judged({"x": BIRD | {"contains": {"bird": "definitely_yes"}}}), "expected bicycle, bird"),
    ],
)  # fmt: skip
def test_refused_answers(answers: list[WeekOfAnswers], message: str) -> None:
    refused(contest(X, answers), message)


def test_control_images_are_shown() -> None:
    controls = {sha("control"): ControlImage(contains={"bird": True, "bicycle": False})}
    files = contest(X, judged(["x", "control"]), controls=controls)
    assert list(standing(files, LATER).images) == [sha("x")]


@pytest.mark.parametrize(
    ("decided", "message"),
    [
        (decision("x", "bird", members=["mallory"]), "mallory is not a member of the board"),
        (decision("x", "bird", members=["ada", "eve"]), "counts eve, who has a conflict with gold, red"),
        (decision("x", "cat"), "verdict cat; expected one of bicycle, bird, invalid"),
        (decision("y", "bird"), "no image published by then; expected one whose week has ended"),
        (decision("x", "bird", FRIDAY), "no image published by then"),
    ],
)
def test_refused_decisions(decided: BoardDecision, message: str) -> None:
    refused(contest(X, decisions=[decided]), message)


def test_a_member_of_the_attackers_own_team() -> None:
    refused(
        contest([submission("union", ["x"])], decisions=[decision("x", "bird", members=["bob"])]), "counts bob, who"
    )


def with_conflict(answers: list[WeekOfAnswers], given: str, decided: BoardDecision, **others: Any) -> ContestFiles:
    """Image x, aimed at gold/wall, which blue/roof answers on Saturday; ada of the board has a conflict with blue."""
    runs = [run({"x": "bicycle"}), run({"x": given}, "blue/roof", others.pop("date", SATURDAY))]
    return contest(
        X, answers, runs, {"gold/wall": defence(), "blue/roof": defence()}, decisions=[decided],
        rules=rules(board={"ada": {"conflicts": ["blue"]}}), **others,
    )  # fmt: skip


IN_CONFLICT = "counts ada, who has a conflict with blue, gold, red; expected the member under recused"


@pytest.mark.parametrize("appeals", [[], [appeal("x", "blue")]])
def test_a_member_whose_defence_the_image_breaks(appeals: list[Appeal]) -> None:
    """Aimed at gold/wall, it breaks blue/roof, too, if that calls it a bicycle: blue gains by a rejection."""
    refused(with_conflict(judged(["x"]), "bicycle", decision("x", "invalid"), appeals=appeals), IN_CONFLICT)
    for given in ("bird", "abstain"):
        assert standing(with_conflict(judged(["x"]), given, decision("x", "invalid")), LATER)
    refused(with_conflict(judged(["x"]), "bird", decision("x", "bicycle")), IN_CONFLICT)


@pytest.mark.parametrize("answers", [[], judged({"x": BICYCLE}), judged({"x": BICYCLE}, JUDGES[:1])])
def test_parties_while_the_group_is_not_known(answers: list[WeekOfAnswers]) -> None:
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


def test_a_quorum() -> None:
    board: dict[str, object] = {"ada": {}, "abe": {}}
    ruled = rules(quorum=2, board=board)
    alone, both = (decision("x", "bird", members=members) for members in (["ada"], ["abe", "ada"]))
    refused(contest(X, judged(["x"]), rules=ruled, decisions=[alone]), "1 members; expected at least 2, contest.yaml's")
    assert standing(contest(X, judged(["x"]), rules=ruled, decisions=[both]), LATER)
    assert "quorum: 3; expected at most the 2 members" in problem(ContestRules, RULES | {"quorum": 3, "board": board})
    content = {"image": sha("x"), "date": "2026-11-10", "reason": "why", "verdict": "bird", "members": ["ada", "ada"]}
    assert "members: one is listed twice" in problem(BoardDecision, content)


@pytest.mark.parametrize(("judges", "least", "minimum"), [(3, 5, 5), (3, 4, 3), (4, 5, 5)])
def test_more_judges_are_more(judges: int, least: int, minimum: int) -> None:
    """Below the minimum, or no more than have answered; the message names the file."""
    more = decision("x", None, judges=judges)
    files = contest(X, judged(["x"]), decisions=[more], rules=rules(judges={"minimum": minimum}))
    where = rf"board/decisions.yaml: {sha('x')[:12]}… on 2026-11-10"
    refused(files, f"{where}: judges {judges}; expected at least {least}: 3 have answered")


def test_a_stake_keeps_the_digest() -> None:
    """Of the defence as it is staked: another one is refused by name, also where only a run is of another one."""
    other, staked = sha("another"), sha("gold/wall")
    refused(
        contest(digests={"gold/wall": other}), f"defences/gold/wall: digest {other} of .*; expected {staked}, staked"
    )
    changed = run({}).model_copy(update={"digest": other})
    for stakes in ([], [stake("gold/wall")]):
        message = (
            f"results/runs/gold/wall/2026-11-07.json: a run of a gold/wall with the digest {other}; expected {staked}"
        )
        refused(contest(runs=[changed], stakes=stakes), message)
    without = stake("gold/wall").model_copy(update={"digests": {}})
    refused(contest(stakes=[without]), "batch first: digests: gold/wall; expected one of each of its defences")


def test_a_model_of_the_edition_that_has_changed() -> None:
    first, second = (
        run({}, date=date).model_copy(update={"model": sha(date)}) for date in ("2026-11-03", "2026-11-04")
    )
    message = (
        f"2026-11-04.json: a run of a model with the digest {second.model}; expected {first.model}, as in the run of"
    )
    refused(contest(runs=[first, second], first=False), message)


def test_a_control_image_as_a_submission() -> None:
    controls = {sha("x"): ControlImage(contains={"bird": True, "bicycle": False})}
    refused(contest(X, controls=controls), "x.png: a control image of the judges; expected an image that they do not")


def test_an_image_of_one_pixel() -> None:
    one = [submission("red", ["y"])]
    for key in ("width", "height"):
        object.__setattr__(one[0].manifest.images[0], key, 1)
    refused(contest(one), "1 x 1 pixels; expected at least 16 a side")
    limits = {"min_side": 9, "max_side": 8}
    assert "min_side: 9; expected at most max_side, 8" in problem(ContestRules, RULES | {"limits": limits})


def test_two_decisions_on_one_day() -> None:
    refused(contest(X, decisions=[decision("x", "bird"), decision("x", "invalid")]), "two decisions on one day")


def test_more_judges_for_a_final_verdict() -> None:
    late = decision("x", None, "2026-11-20", judges=5)
    refused(
        contest(X, judged(["x"]), decisions=[late]), "more judges for a final verdict; expected them before 2026-11-14"
    )


def test_an_appeal_of_nothing() -> None:
    refused(contest(X, appeals=[appeal("y", "gold")]), "no image published by 2026-11-09")
    refused(contest(X, judged(["x"]), appeals=[appeal("x", "pink")]), "by pink: unknown team")
    refused(contest(X, appeals=[appeal("x", "gold")]), "not within the days for appeals")  # nobody has judged it


def test_no_appeal_after_more_judges() -> None:
    appeals, more = (
        [appeal("x", "gold"), appeal("x", "gold", "2026-11-12")],
        decision("x", None, "2026-11-11", judges=5),
    )
    files = contest(X, judged(["x"]), decisions=[more], appeals=appeals)
    refused(files, "on 2026-11-12: not within the days for appeals")


@pytest.mark.parametrize(
    ("stakes", "message"),
    [
        ([stake("gold/moat")], "unknown defence gold/moat"),
        ([stake("gold/wall"), stake("gold/wall", batch="second")], "gold/wall is staked a second time"),
        ([stake("gold/wall", "gold/wall")], "gold/wall is staked a second time"),
        ([stake("gold/wall"), stake("blue/roof")], "batch first: a second time"),
        ([stake("gold/wall", by="blue")], "gold/wall is staked by blue; expected board, or its own team"),
        ([stake("gold/wall", date="2026-10-31")], "unknown defence gold/wall|was submitted on 2026-11-01"),
    ],
)
def test_refused_stakes(stakes: list[Any], message: str) -> None:
    refused(contest(stakes=stakes, defences={"gold/wall": defence(), "blue/roof": defence()}), message)


COMMAND = {"model": None, "command": ["./run"], "files": FILES}


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([run({"x": "cat"})], "answers 'cat'; expected one of abstain, bicycle, bird"),
        ([run({})], "no answer to 2d711642b726…; expected one to every image published by then"),
        ([run({"x": "bird", "y": "bird"})], "answers [0-9a-f]{12}…, which nobody submitted"),
        ([run({"x": "bird"}), run({"x": "abstain"})], "two runs on one day"),
        ([run({"x": "bird"}, "gold/moat")], "results/runs/gold/moat/2026-11-07.json: unknown defence"),
    ],
)
def test_refused_runs(runs: list[Any], message: str) -> None:
    refused(contest(X, runs=runs), message)


@pytest.mark.parametrize("accepted", [None, "2026-11-02", "2026-11-01"])
def test_commands_run_only_when_the_board_has_accepted_them(accepted: str | None) -> None:
    """By the day of the first run, 2026-11-01."""
    entries = [Acceptance.model_validate({"defence": "gold/wall", "date": accepted})] if accepted else []
    files = contest(defences={"gold/wall": defence(**COMMAND)}, accepted=entries)
    if accepted == "2026-11-01":
        assert standing(files, LATER)
    else:
        refused(files, "a command that the board has not accepted by then; expected board/accepted.yaml")


def test_an_unknown_team_defends() -> None:
    defences = {"gold/wall": defence(), "pink/wall": defence()}
    refused(contest(defences=defences), "defences/pink/wall: unknown team pink")


def test_what_is_dated_later_is_not_there_yet() -> None:
    """Wrong files do no harm to the standing of the days before."""
    late = [*X, submission("pink", ["y"], "2026-11-20T00:00:00Z")]
    files = contest(late, [], [run({"x": "bird"})])
    assert standing(files, day(SATURDAY)).images
    refused(files, "unknown team pink")
    assert first_run().date == day("2026-11-01")
