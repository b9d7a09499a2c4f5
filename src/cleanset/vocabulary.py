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
    "too_small",
    "artificial_background",
    "modification",
    "wrong_class",
    "several_objects",
    "duplicate",
    "other",
]
Basis = Literal["explicit", "implied", "default"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
REASONS: tuple[str, ...] = get_args(Reason)
"""Of a reviewer, for verdict crop or reject; modification is a visible one that is not further specified."""

BASES: tuple[str, ...] = get_args(Basis)
"""What a verdict rests on: given on this very image, implied by one on several, or by nothing found against it."""

WRONG_AFTER_CROP = "wrong_after_crop"
"""Of a candidate that the model misclassifies once it is cropped as the reviewers decided."""

BOX_UNKNOWN = "box_unknown"
"""Of a candidate that is to be cropped, by a box that nobody has drawn yet."""

EXCLUSION_REASONS = (
    *REASONS, "unsure", WRONG_AFTER_CROP, "conflict", "too_few_reviewers", BOX_UNKNOWN, "unreviewed", "not_needed",
)  # fmt: skip
"""Why a candidate is not in the set."""
