"""The images that a judge is asked about, in an order drawn for each judge, with control images among them."""

import datetime
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256 as digest_of

from cleanset.studies.contest.files import ContestFiles, until
from cleanset.studies.contest.standing import standing

SIDES = ("left", "right", "top", "bottom")


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """An image that a judge is asked about in a week; of equally large objects the one nearest to `side` counts."""

    week: datetime.date
    sha256: str
    side: str


def tasks(files: ContestFiles, judge: str, on: datetime.date) -> list[JudgeTask]:
    """The images of one judge on a day, by week, oldest first; drawn by seed and judge within a week.

    They are the submitted images of weeks that have ended, except those with a final verdict that this judge has not
    answered, and the share of control images that the rules ask for, each asked once.
    """
    seed, share = files.rules.judges.seed, files.rules.judges.controls
    own = {each.week: each.answers for each in files.answers if each.judge == judge}
    images = standing(until(files, on), on).images
    controls = _shuffled([each for each in files.controls if each not in images], seed, judge, "controls")
    asked_before = {sha256 for answers in own.values() for sha256 in answers}
    found: list[JudgeTask] = []
    for week in sorted({each.week for each in files.submissions if each.week < on}):
        answered = own.get(week, {})
        submitted = [image.sha256 for each in files.submissions if each.week == week for image in each.manifest.images]
        asked = [each for each in submitted if each in answered or images[each].stage != "final"]
        # controls that this judge has answered in the week stay in it, whatever the share is now
        there = [each for each in controls if each in answered]
        fresh = [each for each in controls if each not in asked_before]
        mixed_in = (there + fresh)[: max(control_count(len(asked), share), len(there))]
        controls = [each for each in controls if each not in mixed_in]
        order = _shuffled([*asked, *mixed_in], seed, judge, str(week))
        found += [JudgeTask(week, each, SIDES[_digest(seed, judge, each)[0] % len(SIDES)]) for each in order]
    return found


def control_count(images: int, share: float) -> int:
    """The number of control images that, added to `images` submitted ones, make up at least this share of all."""
    # of the text: the float 0.1 is slightly more than 1/10, and would ask for one image too many
    exact = Fraction(str(share))
    return math.ceil(images * exact / (1 - exact))


def _shuffled(images: Sequence[str], seed: int, judge: str, what: str) -> list[str]:
    # by digest, not by a generator: an added image leaves the order of the others unchanged
    return sorted(images, key=lambda each: (_digest(seed, judge, what, each), each))


def _digest(*names: str | int) -> bytes:
    # as JSON, in which "a", "bc" and "ab", "c" differ
    return digest_of(json.dumps(names).encode()).digest()
