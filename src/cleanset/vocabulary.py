"""Closed lists: tiers, in the order that classes are filled from, verdicts, and reasons for leaving an image out.

And the name under which the published verdicts are stored.
"""

from typing import Literal, get_args

Tier = Literal["top5", "reserve", "relaxed"]
TIERS: tuple[str, ...] = get_args(Tier)
"""The tiers, in the order of filling a class."""

NO_TIER: Literal["none"] = "none"
"""In tables, in place of a tier, of the candidates of a set without a model, which are in one random order."""

TIER_ORDER = (NO_TIER, *TIERS)
"""All values of column `tier` of a table of candidates, in the order of filling a class."""

VerdictKind = Literal["clean", "crop", "reject", "unsure"]
"""The names of the verdicts, whose classes are in `review/verdicts.py`."""

Basis = Literal["explicit", "implied", "default"]
Seen = Literal["grid", "single"]
"""The way an image was seen: among those taken as clean together, or opened by itself."""

SCOOTER = "scooter"
"""The reviewer with the verdicts of SCOOTER's authors (imagenet/reviews/README.md)."""

VERDICTS: tuple[VerdictKind, ...] = get_args(VerdictKind)
REASONS = (
    "watermark", "text", "border", "collage", "filter", "noise", "blur", "drawing", "too_small",
    "artificial_background", "modification", "wrong_class", "several_objects", "duplicate", "other",
)  # fmt: skip
"""A reviewer's reasons for verdict crop or reject; modification: a visible one that is not further specified.

An edition adds others by `review.reasons` in params.yaml."""

Reason = str
REASON_FORM = "[a-z][a-z0-9_]{1,39}"
"""The names of all reasons."""

BASES: tuple[str, ...] = get_args(Basis)
"""The bases of a verdict: given on this very image, implied by one on several, or by default: nothing was found."""

WRONG_AFTER_CROP = "wrong_after_crop"
"""The reason of a candidate that the model misclassifies once it is cropped as the reviewers decided."""

SourceCheck = Literal["archive_md5", "image_sha256", "none"]
"""The check of an image's bytes: by the MD5 of its archive, by a table of digests, or by nothing from outside."""

BOX_UNKNOWN = "box_unknown"
"""The reason of a candidate that is to be cropped, by a box that nobody has drawn yet."""

EXCLUSION_REASONS = (
    *REASONS, "unsure", WRONG_AFTER_CROP, "conflict", "too_few_reviewers", BOX_UNKNOWN, "unreviewed", "not_needed",
)  # fmt: skip
"""The reasons why a candidate is not in the set, next to an edition's further ones."""
