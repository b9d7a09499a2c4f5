"""Stage perturbations: one model's answers to the frames of the perturbation sequences."""

from cleanset.edition.params import read_params
from cleanset.robustness.changes import PerturbedImage
from cleanset.robustness.images import STUDY_IMAGES, first_images, images_for
from cleanset.robustness.names import perturbations_of
from cleanset.robustness.predicting import Family, predict
from cleanset.robustness.settings import read_study_params
from cleanset.robustness.study import Study
from cleanset.tables import read_table


def run(study: Study, role: str) -> None:
    """Read the images and the model's weights, write data/perturbations/<role>.parquet and .json.

    Raises CleansetError as `predict` does.
    """
    wanted = read_study_params(study.params_yaml, list(read_params(study.edition.folder).models))
    chosen = first_images(read_table(study.images, STUDY_IMAGES), wanted.perturbations.max_images)
    levels = {name: wanted.perturbations.level(name) for name in perturbations_of(wanted.perturbations.names)}
    images, changes = images_for(chosen, wanted.images, role), wanted.perturbations.changes()
    predict(study, role, wanted, Family("perturbations", images, changes, PerturbedImage(levels), {"levels": levels}))
