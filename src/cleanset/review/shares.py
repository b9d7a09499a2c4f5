"""Splitting the work: the classes that each reviewer is asked for, and those that all of them are asked for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cleanset.errors import CleansetError
from cleanset.parsing import parse_ranges
from cleanset.review.store import BOARD
from cleanset.validation import shown

MAX_PARTS = 1000


@dataclass(frozen=True, slots=True)
class Share:
    """The class indices that one reviewer is asked for; in those of `common`, whatever others have found.

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


def share_of(classes: Sequence[int], text: str, overlap: float) -> Share:
    """The share K/N of `classes`, such as 1/3: the common ones, and every N-th of the others from the K-th on."""
    numbers = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    part, parts = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    if not 1 <= part <= parts <= MAX_PARTS:
        raise CleansetError(f"--share {shown(text)}: expected K/N with 1 <= K <= N <= {MAX_PARTS:,}, such as 1/3")
    common = common_classes(classes, overlap)
    others = [class_index for class_index in classes if class_index not in common]
    return Share(common.union(others[part - 1 :: parts]), common)


def assigned_share(classes: Sequence[int], reviewer: str, assign: Mapping[str, str], overlap: float) -> Share | None:
    """The share that `review.assign` gives a reviewer; None for the board, and where nothing is assigned.

    Raises CleansetError for a reviewer who is not named there.
    """
    if not assign or reviewer == BOARD:
        return None
    if reviewer not in assign:
        raise CleansetError(
            f"reviewer {reviewer!r}: not in review.assign of params.yaml; expected one of {', '.join(sorted(assign))}: "
            "correct the name, or add a line"
        )
    common = common_classes(classes, overlap)
    return Share(parse_ranges(assign[reviewer]).intersection(classes) | common, common)
