"""Which of a study's images each family is measured on."""

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.studies.robustness.image_masks import has_scenarios
from cleanset.studies.robustness.images import first_images
from cleanset.studies.robustness.settings import StudyParams


def measured_images(family: str, images: pd.DataFrame, masks: pd.DataFrame, wanted: StudyParams) -> pd.DataFrame:
    """The rows of STUDY_IMAGES that one of FAMILIES is measured on; for scenarios that are made, with those of MASKS.

    Published images show whole images: those that are cropped in a set are left out. Raises CleansetError where none
    is left.
    """
    if family == "scenarios" and wanted.scenarios.published is None:
        return has_scenarios(images, masks)
    if wanted.published(family) is not None:
        images = _whole(images, family)
    return first_images(images, wanted.perturbations.max_images) if family == "perturbations" else images


def _whole(images: pd.DataFrame, family: str) -> pd.DataFrame:
    whole = images[images["crop"].isna()].reset_index(drop=True)
    if whole.empty:
        raise CleansetError(
            f"{family}.published: all {len(images):,} images are cropped, and published images are whole; expected "
            "published: null"
        )
    return whole
