"""Stage crops: every crop box that a reviewer has drawn, so that a changed verdict alone runs no model."""

import pandas as pd

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.review.store import checked_reviews, drawn_crops
from cleanset.tables import CROPS, INDEX, read_table, write_table


def run(edition: Edition) -> None:
    """Read the reviews and the index, write data/crops.parquet."""
    params = read_params(edition.folder)
    official = images_are_official(edition, params.dataset.images)
    index = read_table(edition.index, INDEX)
    votes = checked_reviews(edition.reviews, index, params.review.min_crop_pixels, official)
    write_table(edition.crops, pd.DataFrame(sorted(drawn_crops(votes)), columns=CROPS.names), CROPS)
