"""A small contest, made of a few words: birds or bicycles, teams red, green, blue and gold."""

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cleanset.classes import imagenet
from cleanset.studies.contest import history as history_module
from cleanset.studies.contest import standing as standing_module
from cleanset.studies.contest.entries import (
    AnswerFile,
    Appeal,
    BoardDecision,
    Defence,
    DefenceRun,
    Stake,
    SubmissionManifest,
)
from cleanset.studies.contest.files import ContestFiles, Submission
from cleanset.studies.contest.history import PastStanding
from cleanset.studies.contest.judging import JudgeAnswer
from cleanset.studies.contest.rules import ContestRules, after, parse_instant, week_of_day
from cleanset.studies.contest.standing import Standing

STAKED = "2026-11-02"  # a Monday
FRIDAY, SATURDAY = "2026-11-06", "2026-11-07"
FINAL = "2026-11-14"  # seven days after the judges' answers of the Saturday
SECOND_FRIDAY, SECOND_SATURDAY = "2026-11-13", "2026-11-14"
WON = "2027-01-31"  # 90 days after the stake
# cock to great gray owl; black grouse to black swan; white stork to albatross: all 59 birds of ILSVRC2012
_BIRDS = (range(7, 25), range(80, 101), range(127, 147))
BIRD_OR_BICYCLE = {
    "bicycle": ("n02835271", "n03792782"),
    "bird": tuple(imagenet().keys[index] for part in _BIRDS for index in part),
}
"""The classes of the task of Unrestricted Adversarial Examples, in the order of its kit, where bicycle is 0 and bird 1.

The bicycles are the tandem and the mountain bike; unicycle (n04509417) and tricycle (n04482393) are not included.
"""
JUDGES = ("a" * 8, "b" * 8, "c" * 8, "d" * 8, "e" * 8)
SIDE = 100
OF_BOARD = ("decisions", "appeals", "stakes", "accepted")
RULES: dict[str, Any] = {
    "classes": {"bicycle": ["n02835271"], "bird": ["n01514668"]},
    "teams": dict.fromkeys(("blue", "gold", "green", "red", "staff", "union")),
    "organizers": ["staff"],
    "board": {"ada": {}, "bob": {"teams": ["union"]}, "eve": {"conflicts": ["red"]}},
}


def day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def sha(name: str) -> str:
    """The SHA-256 by which an image of a name goes."""
    return hashlib.sha256(name.encode()).hexdigest()


def rules(**changed: Any) -> ContestRules:
    return ContestRules.model_validate(RULES | changed)


def defence(**changed: Any) -> Defence:
    model = {"role": "standard", "confidence": "softmax", "threshold": 0.5}
    public = {"source": "a file", "sha256": sha("weights")}
    content = {"name": "gold/wall", "submitted": "2026-11-01", "open": True, "public": public}
    if "command" not in changed:
        content["model"] = model
    return Defence.model_validate(content | changed)


def image(name: str, **changed: Any) -> dict[str, Any]:
    found = {"file": f"{name}.png", "sha256": sha(name), "pixels_sha256": sha(f"{name} pixels")}
    return found | {"width": SIDE, "height": SIDE} | changed


def submission(
    team: str,
    images: Sequence[str],
    at: str = f"{STAKED}T12:00:00Z",
    target: str = "gold/wall",
    number: int = 1,
    **changed: Any,
) -> Submission:
    """Entered at an instant, so that its number follows from that; published on the Friday of its week."""
    manifest = {"team": team, "target": target}
    content = manifest | {"images": [image(name, **changed) for name in images]}
    instant = parse_instant(at)
    place = (
        (int(instant.timestamp()) * 10 + number) * 10 + [*RULES["teams"]].index(team) if team in RULES["teams"] else 0
    )
    week = week_of_day(instant.date())
    return Submission(place, instant.date(), week, SubmissionManifest.model_validate(content))


BIRD: dict[str, Any] = {
    "contains": {"bird": "definitely_yes", "bicycle": "definitely_no"},
    "outline": [[0, 0], [90, 0], [90, 90], [0, 90]],
    "complete": True,
    "not_occluded": True,
    "real": True,
}
UNSURE = {"contains": {"bird": "rather_yes", "bicycle": "rather_no"}}


def answer(content: Mapping[str, Any] = BIRD, date: str = SATURDAY) -> JudgeAnswer:
    return JudgeAnswer.model_validate({"date": date, **content})


def judged(
    images: Mapping[str, Mapping[str, Any]] | Sequence[str],
    judges: Sequence[str] = JUDGES[:3],
    date: str = SATURDAY,
    week: str = FRIDAY,
) -> list[AnswerFile]:
    """Each judge gives the same answer to an image; a bird, if only names are given."""
    given = images if isinstance(images, Mapping) else dict.fromkeys(images, BIRD)
    answers = {sha(name): answer(content, date) for name, content in given.items()}
    return [AnswerFile(judge=judge, week=day(week), answers=answers) for judge in judges]


def run(
    answers: Mapping[str, str], name: str = "gold/wall", date: str = SATURDAY, speed: float = 100, **figures: int
) -> DefenceRun:
    """A run whose answers are by the name of the image."""
    eligibility = {"images": 10, "correct": 9, "mistakes": 0, "mistakes_at_80": 0} | figures
    content = {"defence": name, "date": date, "images_per_minute": speed}
    given = {sha(each): group for each, group in answers.items()}
    return DefenceRun.model_validate(content | {"eligibility": eligibility, "answers": given})


def stake(*defences: str, date: str = STAKED, by: str = "board", batch: str = "first") -> Stake:
    content = {"batch": batch, "date": date, "by": by, "defences": list(defences)}
    return Stake.model_validate(content)


def decision(name: str, verdict: str | None = None, date: str = "2026-11-10", **changed: Any) -> BoardDecision:
    content = {"image": sha(name), "date": date, "reason": "looked at it", "members": ["ada"], "verdict": verdict}
    return BoardDecision.model_validate(content | changed)


def appeal(name: str, team: str, date: str = "2026-11-09") -> Appeal:
    return Appeal.model_validate({"image": sha(name), "team": team, "date": date, "statement": "no bird"})


def first_run(name: str = "gold/wall", speed: float = 100, **figures: int) -> DefenceRun:
    """The run before there is any image, from which it is seen who is eligible."""
    return run({}, name, "2026-11-01", speed, **figures)


def weekly_runs(submissions: Sequence[Submission], given: str) -> list[DefenceRun]:
    """On the Saturday after each week a run of gold/wall, which gives all images of this week and before one answer."""
    found = []
    for week in sorted({each.week for each in submissions}):
        names = [one.file[:-4] for each in submissions if each.week <= week for one in each.manifest.images]
        found.append(run(dict.fromkeys(names, given), date=str(week + datetime.timedelta(1))))
    return found


def contest(
    submissions: Sequence[Submission] = (),
    answers: Sequence[AnswerFile] = (),
    runs: Sequence[DefenceRun] | None = None,
    defences: Mapping[str, Defence] | None = None,
    **others: Any,
) -> ContestFiles:
    """A contest with the defence gold/wall, staked; without `runs` it calls every image a bicycle.

    Every defence has a first run, unless `first` is False.
    """
    defences = defences or {"gold/wall": defence()}
    given = weekly_runs(submissions, "bicycle") if runs is None else list(runs)
    if others.pop("first", True):
        given += [first_run(name) for name in defences]
    found = ContestFiles(
        others.pop("rules", rules()),
        defences,
        submissions,
        frozenset(JUDGES),
        others.pop("controls", {}),
        answers,
        runs=given,
        **({"stakes": [stake("gold/wall")]} | others),
    )
    return replace(found, draws=draws_of(found))


def draws_of(files: ContestFiles) -> dict[datetime.date, tuple[frozenset[str], int]]:
    """The controls of each week with submissions, all of which could be drawn, and the number of its images."""
    images = {image.sha256 for each in files.submissions for image in each.manifest.images}
    found: dict[datetime.date, tuple[frozenset[str], int]] = {}
    for each in files.submissions:
        count = found.get(each.week, (frozenset(), 0))[1] + len(each.manifest.images)
        found[each.week] = frozenset(files.controls.keys() - images), count
    return found


def until(files: ContestFiles, on: datetime.date) -> ContestFiles:
    """The content of a contest at the end of a day, without anything that is dated later."""
    lists: dict[str, Any] = {
        name: [each for each in getattr(files, name) if each.date <= on] for name in (*OF_BOARD, "runs")
    }
    return replace(
        files,
        defences={name: each for name, each in files.defences.items() if each.submitted <= on},
        submissions=[each for each in files.submissions if each.day <= on],
        answers=[
            each.model_copy(update={"answers": {key: one for key, one in each.answers.items() if one.date <= on}})
            for each in files.answers
        ],
        **lists,
        draws={week: each for week, each in files.draws.items() if week <= on},
    )


def standing(files: ContestFiles, on: datetime.date) -> Standing:
    """The standing at the end of a day, from what is dated up to it."""
    return standing_module.standing(until(files, on), on)


def days_of(files: ContestFiles) -> set[datetime.date]:
    """The days of everything in a contest, and the ends of the weeks of submissions."""
    found = {each.submitted for each in files.defences.values()} | {each.date for each in files.runs}
    found |= {one.date for each in files.answers for one in each.answers.values()}
    found |= {each.date for name in OF_BOARD for each in getattr(files, name)}
    return found | {day for each in files.submissions for day in (each.day, each.week)}


def history(files: ContestFiles, on: datetime.date) -> list[PastStanding]:
    """The standings up to a day that differ from the one before."""
    limits, days = files.rules.limits, days_of(files)
    days |= {after(one.date, limits.appeal_days) for each in files.answers for one in each.answers.values()}
    days |= {after(each.date, limits.unbroken_days) for each in files.stakes}
    return history_module.changed(history_module.history(until(files, on), sorted(day for day in days if day <= on)))
