"""The reviews of an edition applied to one model's candidates: selected images, votes that decide, audit."""

from dataclasses import dataclass
from functools import partial

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.review.audit import AuditResult
from cleanset.review.audit_files import AuditFiles, read_audit_files, result_of_audit
from cleanset.review.decided import checked_votes, decide_all
from cleanset.review.guidelines import own_guidelines
from cleanset.review.reasons import check_reasons
from cleanset.review.store import Votes, accepted_votes
from cleanset.review.vote_table import vote_table
from cleanset.selection.crop_check import Predictions, check_scored, known_crops, predictions_of_crops
from cleanset.selection.fill import Filled, fill, with_decisions
from cleanset.tables import CANDIDATES, CROP_SCORES, INDEX, read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewInputs:
    """All that stage review_apply reads."""

    role: str
    params: Params
    classes: ClassTable
    index: pd.DataFrame
    candidates: pd.DataFrame
    votes: Votes
    """The verdicts of all reviewers, checked against the index."""

    predictions: Predictions
    """The model's predictions on crops."""

    crop_scores: str
    """The file of these predictions, for messages."""

    audit: AuditFiles | None
    guidelines: str | None
    """The edition's own guidelines for reviewers, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedReviews:
    """What the verdicts make of a model's candidates."""

    filled: Filled
    votes: pd.DataFrame
    """The votes that decide, as `vote_table` gives them."""

    audit: AuditResult | None


def read_inputs(edition: Edition, role: str) -> ReviewInputs:
    """Read params, tables and the folder of reviews. Raises CleansetError for an unknown role and for wrong reviews."""
    params = read_params(edition.folder)
    params.model(role)
    classes = edition.read_classes()
    candidates = read_table(edition.candidates(role), CANDIDATES, classes)
    index = read_table(edition.index, INDEX, classes)
    return ReviewInputs(
        role=role,
        params=params,
        classes=classes,
        index=index,
        candidates=candidates,
        votes=checked_votes(edition, params, index, classes),
        predictions=predictions_of_crops(read_table(edition.crop_scores(role), CROP_SCORES, classes)),
        crop_scores=str(edition.crop_scores(role)),
        audit=read_audit_files(edition.reviews, role, roles=list(params.models), classes=classes),
        # with the votes, from which export takes them: the stage must not read reviews that its set does not need
        guidelines=own_guidelines(edition.reviews),
    )


def apply_reviews(read: ReviewInputs) -> AppliedReviews:
    """Fill the classes of a model by the verdicts.

    Raises CleansetError for a crop without a prediction, and for a reason that the edition does not have.
    """
    filled = _filled_classes(read)
    if read.audit is not None:
        check_reasons(read.audit.votes, read.params.review.reasons)
    audit = result_of_audit(
        read.audit, votes=read.votes, index=read.index, selection=filled.selection, classes=read.classes
    )
    votes = vote_table(accepted_votes(read.votes, read.params.review.accept), filled)
    return AppliedReviews(filled=filled, votes=votes, audit=audit)


def _filled_classes(read: ReviewInputs) -> Filled:
    params = read.params
    decided = decide_all(params.review, read.votes, {read.role: read.predictions})
    reviewed = with_decisions(read.candidates, partial(decided.for_candidate, read.role))
    # a published list has no prediction of a crop
    if not params.model(read.role).is_list:
        check_scored(known_crops(reviewed), read.predictions, read.crop_scores)
    return fill(reviewed, params.export.images_per_class, params.review.crops == "in_rank")
