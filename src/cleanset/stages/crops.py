"""Stage crops: every crop box that a reviewer has drawn, so that a changed verdict alone runs no model."""

import pandas as pd

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.review.store import checked_reviews, drawn
from cleanset.tables import CROPS, INDEX, read_table, write_table


def run(edition: Edition) -> None:
    """Read the reviews and the index, write data/crops.parquet."""
    min_crop_pixels = read_params(edition.folder).review.min_crop_pixels
    votes = checked_reviews(edition.reviews, read_table(edition.index, INDEX), min_crop_pixels)
    write_table(edition.crops, pd.DataFrame(sorted(drawn(votes)), columns=CROPS.names), CROPS)
