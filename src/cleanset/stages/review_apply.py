"""Stage review_apply: fill one model's classes from its candidates and the human verdicts."""

from cleanset.after_crop import check_scored, reject_wrong_crops, said_of_crops
from cleanset.edition import Edition
from cleanset.params import read_params
from cleanset.review.consensus import UNREVIEWED, Decision
from cleanset.review.folder import checked_reviews, decisions
from cleanset.selection import fill, with_decisions
from cleanset.tables import CANDIDATES, CROP_SCORES, INDEX, REJECTED, SELECTION, read_table, write_table


def run(edition: Edition, role: str) -> None:
    """Read candidates, reviews and what is said of crops; write selection and rejected, data/*/<role>.parquet."""
    params = read_params(edition.folder)
    params.model(role)
    candidates = read_table(edition.candidates(role), CANDIDATES)
    votes = checked_reviews(edition.reviews, read_table(edition.index, INDEX))
    decided = decisions(votes, params.review.policy, params.review.min_reviewers)
    unreviewed = Decision("clean") if params.review.unreviewed == "clean" else UNREVIEWED
    candidates = with_decisions(candidates, decided, unreviewed)
    said = said_of_crops(read_table(edition.crop_scores(role), CROP_SCORES))
    check_scored(candidates, said, str(edition.crop_scores(role)))
    if params.review.wrong_after_crop == "reject":
        candidates = reject_wrong_crops(candidates, said)
    filled = fill(candidates, params.export.images_per_class)
    write_table(edition.selection(role), filled.selection, SELECTION)
    write_table(edition.rejected(role), filled.rejected, REJECTED)
