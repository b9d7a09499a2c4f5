"""The closed lists: tiers, verdicts, and why an image is not in a set."""

from typing import Literal, get_args

Tier = Literal["top5", "reserve", "relaxed"]
TIERS: tuple[str, ...] = get_args(Tier)
"""In the order in which a class is filled."""

Verdict = Literal["clean", "crop", "reject", "unsure"]
Reason = Literal[
    "watermark",
    "text",
    "border",
    "collage",
    "filter",
    "noise",
    "blur",
    "drawing",
    "wrong_class",
    "several_objects",
    "duplicate",
    "other",
]
VERDICTS: tuple[str, ...] = get_args(Verdict)
REASONS: tuple[str, ...] = get_args(Reason)
"""Of a reviewer, for verdict crop or reject."""

WRONG_AFTER_CROP = "wrong_after_crop"
"""Of a candidate that the model misclassifies once it is cropped as the reviewers decided."""

EXCLUSION_REASONS = (
    *REASONS, "unsure", WRONG_AFTER_CROP, "conflict", "too_few_reviewers", "unreviewed", "not_needed",
)  # fmt: skip
"""Why a candidate is not in the set."""
