"""The images that each judge is asked about in a week, in the judge's own order, and the controls drawn among them."""

import datetime
import json
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from hashlib import sha256 as digest_of
from typing import NamedTuple

from cleanset.errors import CleansetError
from cleanset.studies.contest.entries import short
from cleanset.studies.contest.files import ContestFiles, counted
from cleanset.studies.contest.image_course import ImageState

EDGES = ("left", "right", "top", "bottom")


class JudgeTask(NamedTuple):
    """An image that a judge is asked about in a week; of equally large objects the one nearest to `side` counts."""

    week: datetime.date
    sha256: str
    side: str


def tasks(files: ContestFiles, judge: str, images: Mapping[str, ImageState]) -> list[JudgeTask]:
    """The images of one judge, by week, oldest first; drawn by seed and judge within a week.

    `images`: the state of each published image. Images with a final verdict are left out, unless this judge has
    answered them; controls are those drawn for this judge.
    """
    seed = files.rules.judges.seed
    drawn = drawn_controls(files, judge)
    answered = {sha256 for each in files.answers if each.judge == judge for sha256 in each.answers}
    found: list[JudgeTask] = []
    submissions = counted(files.submissions)
    for week, controls in drawn.items():
        submitted = [image.sha256 for each in submissions if each.week == week for image in each.manifest.images]
        asked = [each for each in submitted if each in answered or images[each].stage != "final"]
        order = _shuffled([*asked, *controls], seed, judge, str(week))
        found += [JudgeTask(week, each, EDGES[_digest(seed, judge, each)[0] % len(EDGES)]) for each in order]
    return found


def drawn_controls(files: ContestFiles, judge: str) -> dict[datetime.date, list[str]]:
    """By week, the controls that were drawn for a judge: as many as make up the share that the rules ask for.

    No image is drawn twice. Entries and withdrawals after a week was published change no draw of that week.
    """
    seed = files.rules.judges.seed
    share = files.rules.judges.controls
    found: dict[datetime.date, list[str]] = {}
    drawn = set[str]()
    for week, (pool, images) in sorted(files.draws.items()):
        mine = _shuffled(pool - drawn, seed, judge, "controls")[: control_count(images, share)]
        drawn |= set(mine)
        found[week] = [each for each in mine if each in files.controls]
    return found


def check_drawn(files: ContestFiles) -> None:
    """Raise CleansetError for answers of a judge in a week without all controls that were drawn, or with others."""
    given: dict[tuple[str, datetime.date], set[str]] = {}
    for each in files.answers:
        given.setdefault((each.judge, each.week), set()).update(each.answers.keys() & files.controls.keys())
    plans = {judge: drawn_controls(files, judge) for judge, _ in given}
    for (judge, week), controls in sorted(given.items()):
        expected = set(plans[judge].get(week, ()))
        if controls != expected:
            what = "lacking" if expected - controls else "with"
            raise CleansetError(
                f"answers of {judge} in the week of {week}: {what} control image "
                f"{short(min(expected - controls or controls - expected))}; expected answers to all {len(expected)} "
                "that were drawn for this judge, and to no other: finish the week at the judge page"
            )


def control_count(images: int, share: float) -> int:
    """The number of control images that, added to `images` submitted ones, make up at least this share of all."""
    # of the text: the float 0.1 is slightly more than 1/10, and would ask for one image too many
    exact = Fraction(str(share))
    return math.ceil(images * exact / (1 - exact))


def _shuffled(images: Iterable[str], seed: int, judge: str, what: str) -> list[str]:
    # by digest, not by a generator: an added image leaves the order of the others unchanged
    return sorted(images, key=lambda each: (_digest(seed, judge, what, each), each))


def _digest(*names: str | int) -> bytes:
    # as JSON, in which "a", "bc" and "ab", "c" differ
    return digest_of(json.dumps(names).encode()).digest()
