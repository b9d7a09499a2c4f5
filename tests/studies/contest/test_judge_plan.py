"""Which images a judge is asked about; saving of answers; each line of bad input of controls, examples and masks."""

import base64
import datetime
import io
import random
import re
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import ChangedMeanwhileError
from cleanset.studies.contest.commands import judges
from cleanset.studies.contest.entries import AnswerFile
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.judge_page.session import JudgeDraft, as_yaml, read_answers, save_answer
from cleanset.studies.contest.judge_tasks import JudgeTask, check_drawn, control_count, drawn_controls
from cleanset.studies.contest.judge_tasks import tasks as tasks_of
from cleanset.studies.contest.judges import JudgeRecords, JudgeScore, score_table
from cleanset.studies.contest.judging import ControlImage, JudgeAnswer
from tests.studies.contest.made import (
    BIRD,
    FRIDAY,
    JUDGES,
    SATURDAY,
    UNSURE,
    answer,
    contest,
    day,
    judged,
    rules,
    sha,
    standing,
    submission,
    until,
)
from tests.studies.contest.on_disk import OnDisk, digest, png

IMAGES = [f"image_{number}" for number in range(9)]
CONTROLS = {sha(f"control_{number}"): ControlImage(contains={"bird": True, "bicycle": False}) for number in range(5)}
GROUPS = ("bicycle", "bird")


def tasks(files: ContestFiles, judge: str, on: datetime.date) -> list[JudgeTask]:
    files = until(files, on)
    return tasks_of(files, judge, standing(files, on).images)


@pytest.mark.parametrize(
    ("images", "share", "expected"),
    [(9, 0.1, 1), (10, 0.1, 2), (1, 0.1, 1), (0, 0.1, 0), (10, 0, 0), (4, 0.5, 4), (90, 0.1, 10), (7, 0.3, 3)],
)
def test_how_many_controls(images: int, share: float, expected: int) -> None:
    """At least this share of all; 7 of 10 and 3 controls are 30 % exactly."""
    assert control_count(images, share) == expected


def test_the_order_is_the_judges_own_and_always_the_same() -> None:
    files = contest([submission("red", IMAGES[:5]), submission("blue", IMAGES[5:])], controls=CONTROLS)
    orders = [[task.sha256 for task in tasks(files, judge, day(SATURDAY))] for judge in JUDGES]
    assert len({tuple(each) for each in orders}) == 5
    mixed = replace(
        files, submissions=files.submissions[::-1], controls=dict(random.Random(1).sample(sorted(CONTROLS.items()), 5))
    )
    assert [each.sha256 for each in tasks(mixed, JUDGES[0], day(SATURDAY))] == orders[0]
    for order in orders:
        assert len(order) == 10
        assert set(order) - set(CONTROLS) == {sha(name) for name in IMAGES}
    assert len({min(set(order) & set(CONTROLS)) for order in orders}) > 1
    other = replace(files, rules=rules(judges={"seed": 1}))
    assert [each.sha256 for each in tasks(other, JUDGES[0], day(SATURDAY))] != orders[0]


def test_only_weeks_that_have_ended_and_verdicts_that_are_not_final() -> None:
    files = contest([submission("red", IMAGES[:2])], controls=CONTROLS)
    assert tasks(files, JUDGES[0], day("2026-11-05")) == []
    assert len(tasks(files, JUDGES[0], day(FRIDAY))) == 3
    files = contest([submission("red", IMAGES[:2])], judged(IMAGES[:1]), controls=CONTROLS)
    asked = {each.sha256 for each in tasks(files, JUDGES[4], day("2026-11-13"))}
    assert asked & {sha(name) for name in IMAGES} == set(map(sha, IMAGES[:2]))
    asked = {each.sha256 for each in tasks(files, JUDGES[4], day("2026-11-14"))}  # the days for appeals are over
    assert asked & {sha(name) for name in IMAGES} == {sha(IMAGES[1])}


def test_a_control_is_asked_once() -> None:
    weeks = [submission("red", IMAGES[:2]), submission("red", IMAGES[2:4], "2026-11-10T12:00:00Z")]
    files = contest(weeks, controls=CONTROLS)
    asked = [task.sha256 for task in tasks(files, JUDGES[0], day("2026-11-14")) if task.sha256 in CONTROLS]
    assert len(set(asked)) == 2
    assert [[each] for each in asked] == list(drawn_controls(files, JUDGES[0]).values())


def test_what_comes_later_changes_no_draw() -> None:
    """Of a week that is published: neither other controls, nor an image or a control that is taken back."""
    files = contest([submission("red", IMAGES[:2])], controls=dict(list(CONTROLS.items())[:4]))
    before = drawn_controls(files, JUDGES[0])
    later = replace(files, controls=CONTROLS, submissions=[])
    assert drawn_controls(later, JUDGES[0]) == before
    ((drawn,),) = before.values()
    left = {sha256: each for sha256, each in CONTROLS.items() if sha256 != drawn}
    assert drawn_controls(replace(files, controls=left), JUDGES[0]) == {day(FRIDAY): []}


def test_answers_with_the_controls_that_were_drawn() -> None:
    """Neither without one nor with another; as soon as a judge has answered anything of a week."""
    files = contest([submission("red", IMAGES[:2])], controls=CONTROLS)
    ((drawn,),) = drawn_controls(files, JUDGES[0]).values()
    other = next(each for each in CONTROLS if each != drawn)
    (mine,) = judged(IMAGES[:1], JUDGES[:1])
    for controls, message in (
        ([drawn], None),
        ([], f"lacking control image {drawn[:12]}…; expected answers to all 1 that were drawn for this judge"),
        ([other, drawn], f"with control image {other[:12]}…; expected answers to all 1"),
    ):
        answers = [mine.model_copy(update={"answers": {**mine.answers, **dict.fromkeys(controls, answer())}})]
        if message is None:
            check_drawn(replace(files, answers=answers))
            # entered in two parts
            parts = [mine, mine.model_copy(update={"answers": dict.fromkeys(controls, answer())})]
            check_drawn(replace(files, answers=parts))
        else:
            with pytest.raises(CleansetError, match=message):
                check_drawn(replace(files, answers=answers))


def test_scores_on_controls() -> None:
    """Two of three correct; the outline is 90 x 90 pixels, the mask the left 50 x 100: 4500 of 8600 pixels."""
    names = [f"control_{number}" for number in range(3)]
    answers = judged({names[0]: BIRD, names[1]: BIRD, names[2]: UNSURE}, JUDGES[:1])
    files = contest(controls=CONTROLS, answers=answers, submissions=[submission("red", IMAGES[:1])])
    mask = np.zeros((100, 100), np.bool_)
    mask[:, :50] = True
    files = replace(files, masks={sha(names[0]): mask, sha(names[2]): mask})
    first, second = map(JudgeRecords(files).score, JUDGES[:2])
    assert (first[:3], second) == ((3, 2, 2), JudgeScore(0, 0, 0, None))
    assert first.mean_overlap == pytest.approx(4500 / 8600 / 2)
    rows = zip(*(column.cells for column in score_table(files).columns), strict=True)
    assert list(rows)[:2] == [(JUDGES[0], "0", "3", "2", "0.67", "0.26"), (JUDGES[1], "0", "0", "0", "–", "–")]


@given(
    st.lists(
        st.builds(
            lambda yes, no, statements: JudgeAnswer.model_validate(
                {"date": SATURDAY, "contains": {"bicycle": no, "bird": yes}, **statements}
            ),
            st.sampled_from(["rather_yes", "definitely_yes"]),
            st.just("definitely_no"),
            st.fixed_dictionaries(
                {}, optional={name: st.booleans() for name in ("complete", "not_occluded", "real")}
                | {"outline": st.just([[0, 0], [9, 1], [3, 7]])},
            ),
        ),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_what_is_written_is_read_again(found: list[JudgeAnswer]) -> None:
    import yaml

    answers = {sha(str(number)): each for number, each in enumerate(found)}
    read = AnswerFile.model_validate(yaml.safe_load(as_yaml("a" * 8, FRIDAY, answers))).answers
    assert list(read.items()) == list(answers.items())


def test_saving_only_over_what_was_read(tmp_path: Path) -> None:
    one, other, image = answer(), answer(UNSURE), sha("image")
    path = tmp_path / "answers" / ("a" * 8) / f"{FRIDAY}.yaml"
    save_answer(path, image, one, None)
    with pytest.raises(ChangedMeanwhileError, match="changed meanwhile"):
        save_answer(path, image, other, None)
    with pytest.raises(ChangedMeanwhileError):
        save_answer(path, image, None, other)
    assert read_answers(path) == {image: one}
    save_answer(path, image, None, one)
    assert not path.exists()
    path.write_text("answers: [")
    with pytest.raises(CleansetError, match=r"2026-11-06\.yaml"):
        save_answer(path, image, one, None)
    assert path.read_text() == "answers: ["


@pytest.mark.long
@pytest.mark.slow
def test_many_processes_save_at_once(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from cleanset.studies.contest.judge_page.session import save_answer;"
        " from tests.studies.contest.made import answer, sha\n"
        "for number in range(10): save_answer(pathlib.Path(sys.argv[1]),"
        " sha(sys.argv[2] + str(number)), answer(), None)"
    )
    path = tmp_path / "answers" / ("a" * 8) / f"{FRIDAY}.yaml"
    running = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in "pqr"]
    assert [each.wait() for each in running] == [0, 0, 0]
    assert len(read_answers(path)) == 30


def test_a_draft_asks_step_by_step() -> None:
    draft = JudgeDraft(image=sha("image"))
    steps = [draft.step(GROUPS)]
    draft.contains += ["definitely_no", "rather_yes"]
    steps.append(draft.step(GROUPS))
    draft.corners += [(0, 0), (5, 0)]
    with pytest.raises(ValueError, match="2 points"):
        draft.close_outline(9, 9)
    draft.corners.append((10, 5))
    with pytest.raises(ValueError, match="outside"):
        draft.close_outline(9, 9)
    draft.close_outline(10, 9)
    steps.append(draft.step(GROUPS))
    draft.statements += [True, False, True]
    steps.append(draft.step(GROUPS))
    assert steps == ["contains", "outline", "statement", "done"]
    found = draft.answer(GROUPS, day(SATURDAY))
    assert found == answer(
        {"contains": {"bicycle": "definitely_no", "bird": "rather_yes"}, "outline": [[0, 0], [5, 0], [10, 5]],
         "complete": True, "not_occluded": False, "real": True}
    )  # fmt: skip
    assert JudgeDraft.of(draft.image, found, GROUPS) == draft
    assert sum(iter(draft.take_back, False)) == 9
    assert draft == JudgeDraft(image=draft.image)


CONTROL = png((0, 90, 0), (30, 30))
HALF = Image.new("L", (30, 30), 255)
HALF.paste(0, (0, 0, 15, 30))


def test_judges_are_scored_by_masks(made: OnDisk) -> None:
    """A mask of the right half, and an outline of the upper right half."""
    out = io.BytesIO()
    HALF.save(out, "PNG")
    made.put(CONTROL)
    mask = base64.b64encode(out.getvalue()).decode()
    controls = {digest(CONTROL): {"contains": {"bird": True, "bicycle": False}, "mask": mask}}
    made.story.insert(2, ("2026-11-01T09:00:00Z", "controls", {"controls": controls}))
    outlined = BIRD | {"outline": [[0, 0], [30, 0], [30, 30]]}
    made.story = [
        (at, kind, {**data, "answers": {**data["answers"], digest(CONTROL): outlined}} if kind == "answers" else data)
        for at, kind, data in made.story
    ]
    made.write()
    with redirect_stdout(io.StringIO()) as shown:
        judges(made.folder)
    inside = sum(x >= 15 for y in range(30) for x in range(y, 30))
    union = 450 + sum(x < 15 for y in range(30) for x in range(y, 30))
    score = f"{inside / union:.2f}"
    assert re.search(f"{JUDGES[0]} *│ *1 *│ *1 *│ *1 *│ *1.00 *│ *{score} ", shown.getvalue())
