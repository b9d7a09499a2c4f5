"""Which images a judge is asked about; saving of answers; each line of bad input of controls, examples and masks."""

import datetime
import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import ChangedMeanwhileError, sha256_of
from cleanset.studies.contest import reading
from cleanset.studies.contest.checking import run
from cleanset.studies.contest.commands import judges
from cleanset.studies.contest.files import AnswerFile, ContestFiles
from cleanset.studies.contest.judge_page.session import JudgeDraft, JudgeSession, as_yaml, save_answer
from cleanset.studies.contest.judges import JudgeTask, control_count, judge_scores
from cleanset.studies.contest.judges import tasks as tasks_of
from cleanset.studies.contest.judging import ControlImage, JudgeAnswer
from cleanset.studies.contest.reading import read_contest, read_section
from cleanset.studies.contest.standing import standing
from tests.studies.contest.made import (
    BIRD,
    FRIDAY,
    JUDGES,
    SATURDAY,
    SECOND_FRIDAY,
    UNSURE,
    answer,
    contest,
    day,
    judged,
    rules,
    sha,
    submission,
)
from tests.studies.contest.on_disk import OnDisk, digest, png
from tests.time_limits import at_most

IMAGES = [f"image_{number}" for number in range(9)]
CONTROLS = {sha(f"control_{number}"): ControlImage(contains={"bird": True, "bicycle": False}) for number in range(5)}
GROUPS = ("bicycle", "bird")


def tasks(files: ContestFiles, judge: str, on: datetime.date) -> list[JudgeTask]:
    return tasks_of(files, judge, on, standing(files, on).images)


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
    assert tasks(files, JUDGES[0], day(FRIDAY)) == []
    assert len(tasks(files, JUDGES[0], day(SATURDAY))) == 3
    files = contest([submission("red", IMAGES[:2])], judged(IMAGES[:1]), controls=CONTROLS)
    asked = {each.sha256 for each in tasks(files, JUDGES[4], day("2026-11-13"))}
    assert asked & {sha(name) for name in IMAGES} == set(map(sha, IMAGES[:2]))
    asked = {each.sha256 for each in tasks(files, JUDGES[4], day("2026-11-14"))}  # the days for appeals are over
    assert asked & {sha(name) for name in IMAGES} == {sha(IMAGES[1])}


def test_a_control_is_asked_once_and_stays_where_it_was_answered() -> None:
    weeks = [submission("red", IMAGES[:2]), submission("red", IMAGES[2:4], "2026-11-10T12:00:00Z")]
    files = contest(weeks, controls=CONTROLS)
    before = [task for task in tasks(files, JUDGES[0], day("2026-11-14")) if task.sha256 in CONTROLS]
    assert len({task.sha256 for task in before}) == 2
    first = before[0]
    files = replace(files, answers=judged({}, JUDGES[:1]), controls=CONTROLS)
    files = replace(files, answers=[replace(files.answers[0], answers={first.sha256: answer()})])
    assert [task for task in tasks(files, JUDGES[0], day("2026-11-14")) if task.sha256 in CONTROLS] == before


def test_scores_on_controls() -> None:
    """Two of three correct; the outline is 90 x 90 pixels, the mask the left 50 x 100: 4500 of 8600 pixels.

    A control that was answered in two weeks counts once.
    """
    names = [f"control_{number}" for number in range(3)]
    answers = judged({names[0]: BIRD, names[1]: BIRD, names[2]: UNSURE}, JUDGES[:1])
    answers += [replace(each, week=day(SECOND_FRIDAY), answers=dict([*each.answers.items()][:1])) for each in answers]
    files = contest(controls=CONTROLS, answers=answers, submissions=[submission("red", IMAGES[:1])])
    mask = np.zeros((100, 100), np.bool_)
    mask[:, :50] = True
    first, second, *_ = judge_scores(replace(files, masks={sha(names[0]): mask, sha(names[2]): mask}))
    assert (first.images, first.controls, first.correct, first.accuracy) == (0, 3, 2, 2 / 3)
    assert first.mean_overlap == pytest.approx(4500 / 8600 / 2)
    assert (second.accuracy, second.mean_overlap) == (None, None)


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
    read = AnswerFile.model_validate(yaml.safe_load(as_yaml(answers))).answers
    assert list(read.items()) == list(answers.items())


def test_saving_only_over_what_was_read(tmp_path: Path) -> None:
    one, other, image = answer(), answer(UNSURE), sha("image")
    path = tmp_path / "answers" / ("a" * 8) / f"{FRIDAY}.yaml"
    save_answer(path, image, one, None)
    with pytest.raises(ChangedMeanwhileError, match="changed meanwhile"):
        save_answer(path, image, other, None)
    with pytest.raises(ChangedMeanwhileError):
        save_answer(path, image, None, other)
    assert read_section(AnswerFile, path).answers == {image: one}
    save_answer(path, image, None, one)
    assert not path.exists()
    path.write_text("answers: [")
    with pytest.raises(CleansetError, match=r"2026-11-06\.yaml"):
        save_answer(path, image, one, None)
    assert path.read_text() == "answers: ["


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
    assert len(read_section(AnswerFile, path).answers) == 30


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


CONTROL, EXAMPLE = png((0, 90, 0), (30, 20)), png((0, 0, 90), (30, 20))
BOTH = {"bird": True, "bicycle": False}
ANSWER = {
    "date": "2026-11-01", "contains": {"bird": "definitely_no", "bicycle": "definitely_no"}, "because": "It is blue.",
}  # fmt: skip


def mask(size: tuple[int, int] = (30, 20), value: int = 255) -> bytes:
    out = io.BytesIO()
    Image.new("L", size, value).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def made(tmp_path: Path) -> OnDisk:
    made = OnDisk(tmp_path)
    for folder in ("images", "masks"):
        made.path(f"judges/{folder}").mkdir()
    made.path("judges/images/control.png").write_bytes(CONTROL)
    made.path("judges/images/example.png").write_bytes(EXAMPLE)
    made.path(f"judges/masks/{digest(CONTROL)}.png").write_bytes(mask())
    made.yaml("judges/controls.yaml", {"controls": {digest(CONTROL): {"contains": BOTH}}})
    made.yaml("judges/examples.yaml", {"examples": {digest(EXAMPLE): ANSWER}})
    return made


def test_what_is_in_order(made: OnDisk) -> None:
    assert run(made.folder, None, None).splitlines()[0] == "1 defences, 1 submissions with 1 images"


def write(name: str, data: bytes) -> Callable[[OnDisk], object]:
    return lambda made: made.path(name).write_bytes(data)


def examples(contains: Mapping[str, str]) -> Callable[[OnDisk], object]:
    content = {"examples": {digest(EXAMPLE): ANSWER | {"contains": dict(contains)}}}
    return lambda made: made.yaml("judges/examples.yaml", content)


def test_the_page_refuses_the_same_examples(made: OnDisk) -> None:
    examples({"bird": "definitely_yes"})(made)
    with pytest.raises(CleansetError, match=r"examples\.yaml: [0-9a-f]{12}…: contains 'bird'; expected bicycle, bird"):
        JudgeSession(made.folder, JUDGES[0], datetime.date(2026, 11, 7))


def test_each_file_is_hashed_for_masks_and_for_the_check(made: OnDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def counted(path: Path) -> str:
        hashed.append(path.name)
        return sha256_of(path)

    monkeypatch.setattr(reading, "sha256_of", counted)
    run(made.folder, None, None)
    assert hashed == 2 * ["control.png", "example.png"]


OF_CONTROL = f"judges/masks/{digest(CONTROL)}.png"


def outlined(right: int, below: int) -> dict[str, object]:
    """A bird whose outline ends there."""
    return BIRD | {"outline": [[0, 0], [right, 0], [right, below]]}


def test_an_outline_may_touch_the_border(made: OnDisk) -> None:
    made.judge(JUDGES[3], "2026-11-06", {digest(CONTROL): outlined(30, 20) | {"date": "2026-11-07"}})
    made.yaml("judges/examples.yaml", {"examples": {digest(EXAMPLE): ANSWER | outlined(30, 20)}})
    assert run(made.folder, None, None)


def test_judges_are_scored_by_masks(made: OnDisk) -> None:
    """A mask of all 30 x 20 pixels, and an outline of the upper right half of them."""
    made.judge(JUDGES[3], "2026-11-06", {digest(CONTROL): outlined(30, 20) | {"date": "2026-11-07"}})
    shown = table_of_judges(made)
    assert re.search(f"{JUDGES[3]} *│ *0 *│ *1 *│ *1 *│ *1.00 *│ *0.50 ", shown)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (mask((3, 3)), r": 3 x 3 pixels; expected those of its image, 30 x 20$"),
        (mask()[:40], r"\.png: .*; expected a PNG, white where the object is$"),
        (b"no image", r"\.png: .*; expected a PNG, white where the object is$"),
        (mask(value=100), r": nothing in it is white; expected white where the object is$"),
    ],
)
def test_judges_are_not_scored_by_a_mask_that_does_not_fit(made: OnDisk, data: bytes, message: str) -> None:
    made.path(OF_CONTROL).write_bytes(data)
    for refused in (table_of_judges, lambda made: standing(read_contest(made.folder), day("2026-11-14"))):
        with pytest.raises(CleansetError, match=message):
            refused(made)


def test_a_pipe_in_place_of_a_mask(made: OnDisk) -> None:
    made.path(OF_CONTROL).unlink()
    os.mkfifo(made.path(OF_CONTROL))
    with at_most(5), pytest.raises(CleansetError, match="a named pipe; expected a regular file"):
        table_of_judges(made)
    with at_most(5), pytest.raises(CleansetError, match="a named pipe; expected a regular file"):
        run(made.folder, None, None)


def table_of_judges(made: OnDisk) -> str:
    """What `cleanset contest judges` prints."""
    with redirect_stdout(io.StringIO()) as out:
        judges(made.folder)
    return out.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            write("judges/images/control.png", png((1, 1, 1))),
            r"no file with SHA-256 [0-9a-f]{12}…; expected every control",
        ),
        (write("judges/images/more.png", png((1, 1, 1))), r"more\.png: neither a control nor an example"),
        (write("judges/masks/more.png", mask()), r"more\.png: a mask without a control"),
        (write(OF_CONTROL, mask((20, 30))), r"20 x 30 pixels; expected those of its image, 30 x 20"),
        (write(OF_CONTROL, mask(value=100)), r"nothing in it is white"),
        (write(OF_CONTROL, mask()[:40]), r"expected a PNG, white where the object is"),
        (
            lambda made: made.yaml(
                "judges/controls.yaml", {"controls": {digest(CONTROL): {"contains": {"bird": True}}}}
            ),
            r"controls\.yaml: [0-9a-f]{12}…: contains 'bird'; expected bicycle, bird",
        ),
        (
            examples({"b\nx": "definitely_yes"}),
            r"examples\.yaml: [0-9a-f]{12}…: contains 'b\\nx'; expected bicycle, bird",
        ),
        (
            lambda made: made.judge(
                JUDGES[3], "2026-11-06", {digest(CONTROL): outlined(30, 21) | {"date": "2026-11-07"}}
            ),
            r"2026-11-06\.yaml: [0-9a-f]{12}…: an outline with the point \[30, 21\], outside the image of 30 x 20",
        ),
        (
            lambda made: made.yaml("judges/examples.yaml", {"examples": {digest(EXAMPLE): ANSWER | outlined(31, 20)}}),
            r"examples\.yaml: [0-9a-f]{12}…: an outline with the point \[31, 0\], outside the image of 30 x 20",
        ),
        (examples({}), r"examples\.yaml: [0-9a-f]{12}…: contains nothing; expected bicycle, bird"),
    ],
)
def test_what_is_refused(change: Callable[[OnDisk], object], message: str, made: OnDisk) -> None:
    change(made)
    with pytest.raises(CleansetError, match=message) as caught:
        run(made.folder, None, None)
    assert "\n" not in str(caught.value)
