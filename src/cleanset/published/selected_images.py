"""The images of a published set, from lists and verdicts alone."""

from dataclasses import dataclass
from functools import partial

import pandas as pd

from cleanset.edition.params import Params, checked_params
from cleanset.published.choice import PublishedChoice
from cleanset.published.inputs import published_candidates, published_verdicts, with_further_reviews
from cleanset.review.decisions import decide_all
from cleanset.review.store import Votes
from cleanset.review.vote_table import vote_table
from cleanset.selection.fill import Filled, fill, with_decisions

IMAGES_PER_CLASS = 3
_NAMES: dict[str, dict[str, str]] = {
    "norm_robust": {"source": "robustbench", "name": "Salman2020Do_R50", "threat_model": "Linf"},
    "standard": {"source": "timm", "name": "resnet50.a1_in1k"},
    "corruption_robust": {"source": "robustbench", "name": "Erichson2022NoisyMix_new", "threat_model": "corruptions"},
}
"""The networks behind the published lists."""


@dataclass(frozen=True, slots=True)
class SelectedImages:
    """A set by its lists and verdicts, before any image is read: `filled` with the votes that decided it."""

    choice: PublishedChoice
    params: Params
    votes: Votes
    candidates: pd.DataFrame
    filled: Filled
    vote_table: pd.DataFrame


def select_images(choice: PublishedChoice) -> SelectedImages:
    """The images of a set, by the rules of stage review_apply with `protocol: as_published`."""
    choice.check()
    # nobody has scored a crop; one without a box takes its place, as published, and is left out later
    review = {"unknown_boxes": "count", "wrong_after_crop": "accept", "unreviewed": choice.unreviewed}
    params = checked_params(
        {
            "root": ".",
            "protocol": "as_published",
            "dataset": {"images": "ILSVRC2012_img_val.tar"},
            "models": {choice.model: _NAMES[choice.model]},
            "review": review,
        },
        "the published set",
    )
    votes = with_further_reviews(published_verdicts(), choice.reviews)
    candidates = published_candidates(choice.model)
    decided = decide_all(params.review, votes, {choice.model: {}})
    reviewed = with_decisions(candidates, partial(decided.for_candidate, choice.model))
    filled = fill(reviewed, IMAGES_PER_CLASS, params.review.crops_in_rank)
    return SelectedImages(choice, params, votes, candidates, filled, vote_table(votes, filled))
