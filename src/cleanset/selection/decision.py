"""The decision on a candidate, whoever made it."""

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
"""On an image that is to be cropped, and whose box is to be drawn first."""

Decide = Callable[[int, str], Decision]
"""The decision on a candidate, from its class index and image id."""
