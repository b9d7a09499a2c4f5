"""Candidates and votes of an edition, and the decisions that its policy derives from them."""

from collections.abc import Mapping

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.edition.params import Params, ReviewPolicy
from cleanset.edition.paths import Edition, images_are_official
from cleanset.review.consensus import asking_for_box, consensus
from cleanset.review.queue import Candidate, Decisions, candidates_by_class
from cleanset.review.reasons import check_reasons
from cleanset.review.store import BOARD, Votes, accepted_votes, check_reviews, read_reviews
from cleanset.selection.crop_check import Predictions
from cleanset.selection.fill import UNREVIEWED, Decision


def candidates_of(edition: Edition, params: Params, classes: ClassTable) -> dict[int, dict[str, list[Candidate]]]:
    """The candidates of each class by role, as `candidates_by_class` gives them."""
    from cleanset.tables import CANDIDATES, read_table  # needs pyarrow, which a set's users may lack

    tables = {role: read_table(edition.candidates(role), CANDIDATES, classes) for role in params.models}
    return candidates_by_class(tables, params.dataset.class_list(classes))


def checked_votes(edition: Edition, params: Params, index: pd.DataFrame, classes: ClassTable) -> Votes:
    """All votes of an edition that decide, checked against its index as `check_reviews` does."""
    official = images_are_official(edition, params.dataset.images)
    votes = read_reviews(edition.reviews, classes)
    check_reviews(votes, index, classes, params.review.min_crop_pixels, official_images=official)
    return votes


def decide_all(policy: ReviewPolicy, votes: Votes, predictions: Mapping[str, Predictions]) -> Decisions:
    """The decisions that follow from `votes` under a policy; `predictions` on crops, by role."""
    return Decisions(
        decisions=decisions_under(policy, votes),
        # without predictions after_crop rejects nothing
        predictions=predictions if policy.wrong_after_crop == "reject" else {role: {} for role in predictions},
        unreviewed=Decision("clean") if policy.unreviewed == "clean" else UNREVIEWED,
        boxes_asked=policy.unknown_boxes == "open",
        accept=policy.accept,
    )


def decisions_under(policy: ReviewPolicy, votes: Votes) -> dict[tuple[int, str], Decision]:
    """The decision on each image that has a vote which counts under a policy, by class index and image id.

    Raises CleansetError for a reason that is neither usual nor one of the policy's.
    """
    check_reasons(votes, policy.reasons)
    found = {}
    for key, by_reviewer in accepted_votes(votes, policy.accept).items():
        board = by_reviewer.get(BOARD)
        others = [vote.review.verdict for reviewer, vote in sorted(by_reviewer.items()) if reviewer != BOARD]
        decision = consensus(
            others,
            board.review.verdict if board else None,
            policy.policy,
            policy.min_reviewers,
            box_tolerance=policy.box_tolerance,
        )
        found[key] = asking_for_box(decision) if policy.unknown_boxes == "open" else decision
    return found
