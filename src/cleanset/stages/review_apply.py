"""Stage review_apply: fill one model's classes from its candidates and the verdicts; the result of its audit."""

from cleanset.edition.paths import Edition
from cleanset.plumbing.files import write_text
from cleanset.review.applied import apply_reviews, read_inputs
from cleanset.review.audit_files import audit_json
from cleanset.review.guidelines import GUIDELINES
from cleanset.tables import REJECTED, SELECTION, VOTES, write_table


def run(edition: Edition, role: str) -> None:
    """Read candidates, reviews and the scores of crops; write votes, selection, rejected, audit: data/*/<role>.*."""
    read = read_inputs(edition, role)
    applied = apply_reviews(read)
    texts = {GUIDELINES: read.guidelines} if read.guidelines else None
    write_table(edition.votes(role), applied.votes, VOTES, read.classes, texts=texts)
    write_table(edition.selection(role), applied.filled.selection, SELECTION, read.classes)
    write_table(edition.rejected(role), applied.filled.rejected, REJECTED, read.classes)
    write_text(edition.audit(role), audit_json(applied.audit))
