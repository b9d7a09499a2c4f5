"""Stage crops: every crop box that a reviewer has drawn, so that a changed verdict alone runs no model."""

import pandas as pd

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.review.decided import checked_votes
from cleanset.review.store import drawn_crops
from cleanset.tables import CROPS, INDEX, read_table, write_table


def run(edition: Edition) -> None:
    """Read the reviews and the index, write data/crops.parquet."""
    params = read_params(edition.folder)
    classes = edition.read_classes()
    votes = checked_votes(edition, params, read_table(edition.index, INDEX, classes), classes)
    write_table(edition.crops, pd.DataFrame(sorted(drawn_crops(votes)), columns=CROPS.names), CROPS, classes)
