"""Stage crops: every crop that anybody has drawn, whatever becomes of it; so that a vote alone runs no model."""

from cleanset.crops import crops_csv
from cleanset.edition import Edition
from cleanset.files import write_text
from cleanset.review.folder import checked_reviews, drawn
from cleanset.tables import INDEX, read_table


def run(edition: Edition) -> None:
    """Read the reviews and the index, write data/crops.csv."""
    votes = checked_reviews(edition.reviews, read_table(edition.index, INDEX))
    write_text(edition.crops, crops_csv(drawn(votes)))
