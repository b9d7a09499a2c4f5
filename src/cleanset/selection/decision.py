"""The decision on a candidate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cleanset.images.boxes import Box
from cleanset.vocabulary import BOX_UNKNOWN


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on an image.

    `verdict` undecided means that no verdict counts yet, and `reason` is why: `unreviewed`,
    `too_few_reviewers`, `conflict` or `box_unknown`. For reject it is the reviewers' reason, or `unsure`.
    `box_unknown`: a crop that is kept although nobody has drawn its box; then `crop` is None.
    """

    verdict: Literal["clean", "crop", "reject", "undecided"]
    reason: str | None = None
    crop: Box | None = None
    box_unknown: bool = False


UNREVIEWED = Decision("undecided", "unreviewed")
CONFLICT = Decision("undecided", "conflict")
TO_BE_CROPPED = Decision("undecided", BOX_UNKNOWN)
"""Decision on an image to be cropped whose box has not been drawn yet."""

Decide = Callable[[int, str], Decision]
"""Function from class index and image id to the decision on the candidate."""
