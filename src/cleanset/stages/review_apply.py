"""Stage review_apply: fill one model's classes from its candidates and the verdicts; the result of its audit."""

from functools import partial

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.files import write_text
from cleanset.review.audit_files import audit_json, read_audit
from cleanset.review.decided import checked_votes, decide_all
from cleanset.review.guidelines import GUIDELINES, own_guidelines
from cleanset.review.store import accepted_votes
from cleanset.review.vote_table import vote_table
from cleanset.selection.crop_check import check_scored, known_crops, predictions_of_crops
from cleanset.selection.fill import fill, with_decisions
from cleanset.tables import CANDIDATES, CROP_SCORES, INDEX, REJECTED, SELECTION, VOTES, read_table, write_table


def run(edition: Edition, role: str) -> None:
    """Read candidates, reviews and the scores of crops; write votes, selection, rejected, audit: data/*/<role>.*."""
    params = read_params(edition.folder)
    model = params.model(role)
    classes = edition.read_classes()
    candidates = read_table(edition.candidates(role), CANDIDATES, classes)
    index = read_table(edition.index, INDEX, classes)
    votes = checked_votes(edition, params, index, classes)
    predictions = predictions_of_crops(read_table(edition.crop_scores(role), CROP_SCORES, classes))
    decided = decide_all(params.review, votes, {role: predictions})
    reviewed = with_decisions(candidates, partial(decided.for_candidate, role))
    # a published list has no prediction of a crop
    if not model.is_list:
        check_scored(known_crops(reviewed), predictions, str(edition.crop_scores(role)))
    filled = fill(reviewed, params.export.images_per_class, params.review.crops == "in_rank")
    # with the votes, from which export takes them: the stage must not read reviews that its set does not need
    guidelines = own_guidelines(edition.reviews)
    texts = {GUIDELINES: guidelines} if guidelines else None
    accepted = vote_table(accepted_votes(votes, params.review.accept), filled)
    write_table(edition.votes(role), accepted, VOTES, classes, texts=texts)
    write_table(edition.selection(role), filled.selection, SELECTION, classes)
    write_table(edition.rejected(role), filled.rejected, REJECTED, classes)
    audit = read_audit(
        edition.reviews,
        role,
        roles=list(params.models),
        votes=votes,
        index=index,
        selection=filled.selection,
        classes=classes,
    )
    write_text(edition.audit(role), audit_json(audit))
