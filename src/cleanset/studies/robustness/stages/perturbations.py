"""Stage perturbations: one model's answers to the frames of the perturbation sequences."""

from cleanset.studies.robustness.stages.answering import answer
from cleanset.studies.robustness.study import Study


def run(study: Study, role: str) -> None:
    """Read images and the model's weights, write data/perturbations/<role>.parquet and .json.

    Raises CleansetError as `answer` does.
    """
    answer(study, role, ["perturbations"])
