"""A small contest, made of a few words: birds or bicycles, teams red, green, blue and gold; each entry is a line."""

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from cleanset.classes import imagenet
from cleanset.studies.contest import standing as standing_module
from cleanset.studies.contest.courses import DefenceStanding, ImageCourse
from cleanset.studies.contest.log import Log
from cleanset.studies.contest.rules import week_of_day
from cleanset.studies.contest.standing import Standing

STAKED = "2026-11-02"  # a Monday
FRIDAY, SATURDAY = "2026-11-06", "2026-11-07"
SECOND_FRIDAY, SECOND_SATURDAY = "2026-11-13", "2026-11-14"
FINAL = "2026-11-14"  # seven days for appeals after the judges' answers
WON = "2027-01-31"  # 90 days after the stake
LATER = "2026-12-20"
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
RULES: dict[str, Any] = {
    "classes": {"bicycle": ["n02835271"], "bird": ["n01514668"]},
    "teams": ["blue", "gold", "green", "red", "staff", "union"],
    "organizers": ["staff"],
    "board": {"ada": [], "bob": ["union"], "eve": []},
    "made_up": True,
    "judges": {"controls": 0.0},
}
MODEL = {"role": "standard", "confidence": "softmax", "threshold": 0.5}
ORDER = ("contest", "roster", "team", "controls", "examples", "defence", "stake", "submission", "answers", "run",
         "appeal", "decision", "void", "publish")  # fmt: skip
"""The order of entries of one day, unless they name their place in it."""


class Entry(NamedTuple):
    """A line to be: its day, kind and data; `place`: its order within the day, in addition to that of its kind."""

    date: str
    kind: str
    data: Mapping[str, Any]
    place: int = -1

    def order(self) -> tuple[str, int]:
        return self.date, ORDER.index(self.kind) if self.place < 0 else self.place


def day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def sha(name: str) -> str:
    """The SHA-256 by which an image of a name goes."""
    return hashlib.sha256(name.encode()).hexdigest()


def defence(name: str = "gold/wall", date: str = "2026-11-01", **changed: Any) -> Entry:
    content = {"name": name, "open": True, "source": "a file", "model": MODEL} | changed
    return Entry(date, "defence", {key: one for key, one in content.items() if one is not None})


def image(name: str, **changed: Any) -> dict[str, Any]:
    found = {"file": f"{name}.png", "sha256": sha(name), "pixels_sha256": sha(f"{name} pixels")}
    return found | {"width": SIDE, "height": SIDE} | changed


def submission(
    team: str, images: Sequence[str], date: str = STAKED, target: str = "gold/wall", **changed: Any
) -> Entry:
    data = {"team": team, "target": target, "images": [image(name, **changed) for name in images]}
    return Entry(date, "submission", data)


BIRD: dict[str, Any] = {
    "contains": {"bird": "definitely_yes", "bicycle": "definitely_no"},
    "outline": "0,0 90,0 90,90 0,90",
    "complete": True,
    "not_occluded": True,
    "real": True,
}
UNSURE: dict[str, Any] = {"contains": {"bird": "rather_yes", "bicycle": "rather_no"}}


def judged(
    images: Mapping[str, Mapping[str, Any]] | Sequence[str],
    judges: Sequence[str] = JUDGES[:3],
    date: str = SATURDAY,
    week: str = FRIDAY,
) -> list[Entry]:
    """Each judge gives the same answer to an image; a bird, if only names are given."""
    given = images if isinstance(images, Mapping) else dict.fromkeys(images, BIRD)
    answers = {sha(name): content for name, content in given.items()}
    judges = judges if answers else ()
    return [Entry(date, "answers", {"judge": judge, "week": week, "answers": answers}) for judge in judges]


def run(
    answers: Mapping[str, str], name: str = "gold/wall", date: str = SATURDAY, speed: float = 100, **changed: Any
) -> Entry:
    """A run whose answers are by the name of the image; `changed`: also figures of its eligibility."""
    figures = {key: changed.pop(key, default) for key, default in {"images": 10, "correct": 9, "mistakes": 0}.items()}
    given = {sha(each): group for each, group in answers.items()}
    content = {"defence": name, "model": sha("model"), "images_per_minute": speed, "eligibility": figures}
    return Entry(date, "run", {**content, "answers": given, **changed})


def stake(*defences: str, date: str = STAKED, batch: str = "first") -> Entry:
    return Entry(date, "stake", {"batch": batch, "defences": list(defences)})


def decision(name: str, verdict: str | None = None, date: str = "2026-11-10", **changed: Any) -> Entry:
    content = {"image": sha(name), "reason": "looked at it", **({} if verdict is None else {"verdict": verdict})}
    return Entry(date, "decision", content | changed)


def appeal(name: str, team: str, date: str = "2026-11-09") -> Entry:
    return Entry(date, "appeal", {"image": sha(name), "team": team, "statement": "no bird"})


def log_of(entries: Sequence[Entry]) -> Log:
    """The log with some entries in this order, at one instant of each day."""
    log = Log()
    for date, kind, data, _ in entries:
        content = {"n": len(log.lines), "at": f"{date}T12:00:00Z", "kind": kind, "prev": log.head, "data": data}
        log.add(json.dumps(content), kind)
    return log


def weeks_of(submissions: Sequence[Entry]) -> list[str]:
    return sorted({str(week_of_day(day(each.date))) for each in submissions})


def weekly_runs(submissions: Sequence[Entry], given: str) -> list[Entry]:
    """On the Saturday after each week a run of gold/wall, which gives all images of this week and before one answer."""
    found = []
    for week in weeks_of(submissions):
        there = [one for each in submissions if each.date <= week for one in each.data["images"]]
        found.append(run({one["file"][:-4]: given for one in there}, date=str(day(week) + datetime.timedelta(1))))
    return found


def contest(
    submissions: Sequence[Entry] = (),
    answers: Sequence[Entry] = (),
    runs: Sequence[Entry] | None = None,
    defences: Sequence[Entry] = (),
    *,
    rules: Mapping[str, Any] | None = None,
    stakes: Sequence[Entry] | None = None,
    first: bool = True,
    **others: Sequence[Entry],
) -> Log:
    """A contest with the defence gold/wall, staked; without `runs` it calls every image a bicycle.

    Every defence has a first run, unless `first` is False. Weeks are published on their Friday. `others`: more entries,
    such as decisions, in any order of days.
    """
    defences = defences or [defence()]
    begun = [run({}, each.data["name"], each.date) for each in defences] if first else []
    entries = [
        Entry("2026-11-01", "contest", {**RULES, **(rules or {})}),
        Entry("2026-11-01", "roster", {"judges": list(JUDGES)}),
        *defences, *begun, *([stake("gold/wall")] if stakes is None else stakes), *submissions,
        *(Entry(week, "publish", {}) for week in weeks_of(submissions)), *answers,
        *(weekly_runs(submissions, "bicycle") if runs is None else runs), *chain(*others.values()),
    ]  # fmt: skip
    return log_of(sorted(entries, key=Entry.order))


def standing(log: Log, date: str) -> Standing:
    return standing_module.standing(log, day(date))


def on(log: Log, date: str, name: str = "gold/wall") -> DefenceStanding:
    """A defence at the end of a day."""
    return next(each for each in standing(log, date).defences if each.name == name)


def statuses(log: Log, *dates: str) -> list[str]:
    return [on(log, date).status for date in dates]


def course(log: Log, date: str, name: str = "x") -> ImageCourse:
    """A published image at the end of a day."""
    return standing(log, date).contest.images[sha(name)]
