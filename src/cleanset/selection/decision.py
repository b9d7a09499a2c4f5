"""The decision on a candidate, whoever made it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cleanset.images.boxes import Box


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on an image.

    `verdict` undecided means that no verdict counts yet, and `reason` is why: `unreviewed`,
    `too_few_reviewers` or `conflict`. For reject it is the reviewers' reason, or `unsure`.
    """

    verdict: Literal["clean", "crop", "reject", "undecided"]
    reason: str | None = None
    crop: Box | None = None


UNREVIEWED = Decision("undecided", "unreviewed")
CONFLICT = Decision("undecided", "conflict")

Decide = Callable[[int, str], Decision]
"""The decision on a candidate, from its class index and image id."""
