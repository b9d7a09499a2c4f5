"""Stage corruptions: one model's answers to the corrupted images."""

from cleanset.edition.params import read_params
from cleanset.robustness.changes import corrupted_image
from cleanset.robustness.images import STUDY_IMAGES, images_for
from cleanset.robustness.predicting import Family, predict
from cleanset.robustness.settings import read_study_params
from cleanset.robustness.study import Study
from cleanset.tables import read_table


def run(study: Study, role: str) -> None:
    """Read the images and the model's weights, write data/corruptions/<role>.parquet and .json.

    Raises CleansetError as `predict` does.
    """
    wanted = read_study_params(study.params_yaml, list(read_params(study.edition.folder).models))
    images = images_for(read_table(study.images, STUDY_IMAGES), wanted.images, role)
    predict(study, role, wanted, Family("corruptions", images, wanted.corruptions.changes(), corrupted_image, {}))
