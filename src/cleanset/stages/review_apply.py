"""Stage review_apply: fill one model's classes from its candidates and the verdicts; the result of its audit."""

from dataclasses import dataclass
from functools import partial

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.plumbing.files import write_text
from cleanset.review.audit_files import AuditFiles, audit_json, read_audit_files, result_of_audit
from cleanset.review.decided import checked_votes, decide_all
from cleanset.review.guidelines import GUIDELINES, own_guidelines
from cleanset.review.store import Votes, accepted_votes
from cleanset.review.vote_table import vote_table
from cleanset.selection.crop_check import Predictions, check_scored, known_crops, predictions_of_crops
from cleanset.selection.fill import Filled, fill, with_decisions
from cleanset.tables import CANDIDATES, CROP_SCORES, INDEX, REJECTED, SELECTION, VOTES, read_table, write_table


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewInputs:
    """All that the stage reads."""

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


def run(edition: Edition, role: str) -> None:
    """Read candidates, reviews and the scores of crops; write votes, selection, rejected, audit: data/*/<role>.*."""
    read = read_inputs(edition, role)
    filled = filled_classes(read)
    audit = result_of_audit(
        read.audit, votes=read.votes, index=read.index, selection=filled.selection, classes=read.classes
    )
    accepted = vote_table(accepted_votes(read.votes, read.params.review.accept), filled)
    texts = {GUIDELINES: read.guidelines} if read.guidelines else None
    write_table(edition.votes(role), accepted, VOTES, read.classes, texts=texts)
    write_table(edition.selection(role), filled.selection, SELECTION, read.classes)
    write_table(edition.rejected(role), filled.rejected, REJECTED, read.classes)
    write_text(edition.audit(role), audit_json(audit))


def filled_classes(read: ReviewInputs) -> Filled:
    """The classes of the model, filled by the verdicts. Raises CleansetError for a crop without a prediction."""
    params = read.params
    decided = decide_all(params.review, read.votes, {read.role: read.predictions})
    reviewed = with_decisions(read.candidates, partial(decided.for_candidate, read.role))
    # a published list has no prediction of a crop
    if not params.model(read.role).is_list:
        check_scored(known_crops(reviewed), read.predictions, read.crop_scores)
    return fill(reviewed, params.export.images_per_class, params.review.crops == "in_rank")
