"""Reading the images that an edition's index lists."""

import pandas as pd

from cleanset.dataset.layouts import VerifiedImages
from cleanset.edition.paths import Edition


def verified_images(edition: Edition, images: str, index: pd.DataFrame) -> VerifiedImages:
    """The images of an edition; `images` is dataset.images of its params."""
    return VerifiedImages(edition.path(images), edition.locations, index)
