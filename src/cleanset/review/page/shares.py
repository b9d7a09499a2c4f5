"""The classes that one of several reviewers is asked for."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cleanset.classes import parse_ranges
from cleanset.edition.params import ReviewPolicy
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown
from cleanset.review.store import BOARD

MAX_PARTS = 1000


@dataclass(frozen=True, slots=True)
class Share:
    """The class indices that one reviewer is asked for; in the classes of `common`, whatever others have found.

    Agreement is measured on the classes of `common`, which every reviewer has.
    """

    classes: frozenset[int]
    common: frozenset[int]


def common_classes(classes: Sequence[int], overlap: float) -> frozenset[int]:
    """The share `overlap` of the classes, evenly spread and rounded down."""
    # of each position: whether the number of common classes so far grows here
    return frozenset(
        class_index
        for position, class_index in enumerate(classes)
        if int((position + 1) * overlap + 1e-9) > int(position * overlap + 1e-9)
    )


def share_of(classes: Sequence[int], text: str, overlap: float, copies: int = 1) -> Share:
    """The share K/N of `classes`, such as 1/3: the common ones, and every N-th of the others, starting with the K-th.

    `copies`: in how many shares each of the others is, as many as have to review it.
    """
    numbers = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    part, parts = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    if not 1 <= part <= parts <= MAX_PARTS:
        raise CleansetError(f"--share {shown(text)}: expected K/N with 1 <= K <= N <= {MAX_PARTS:,}, such as 1/3")
    common = common_classes(classes, overlap)
    others = [class_index for class_index in classes if class_index not in common]
    own = (each for position, each in enumerate(others) if (part - 1 - position) % parts < copies)
    return Share(common.union(own), common)


def share_in_team(classes: Sequence[int], reviewer: str, team: Collection[str], review: ReviewPolicy) -> Share:
    """The share of a reviewer in a team: by `review.assign`, or else an equal one, by the order of the names.

    All classes for the board, and for one who reviews alone. Raises CleansetError for a reviewer whom `review.assign`
    does not name.
    """
    assign = review.assign
    overlap = review.overlap
    if reviewer == BOARD or not (assign or team):
        return Share(frozenset(classes), frozenset())
    if not assign:
        members = sorted({*team} - {BOARD})
        return share_of(classes, f"{members.index(reviewer) + 1}/{len(members)}", overlap, review.min_reviewers)
    if reviewer not in assign:
        raise CleansetError(
            f"reviewer {reviewer!r}: not in review.assign of params.yaml; expected one of {', '.join(sorted(assign))}: "
            "correct the name, or add a line"
        )
    common = common_classes(classes, overlap)
    return Share(parse_ranges(assign[reviewer]).intersection(classes) | common, common)
