"""Stage perturbations: one model's answers to the frames of the perturbation sequences."""

from cleanset.robustness.study import Study
from cleanset.stages.robustness.answering import answer


def run(study: Study, role: str) -> None:
    """Read images and the model's weights, write data/perturbations/<role>.parquet and .json.

    Raises CleansetError as `answer` does.
    """
    answer(study, role, ["perturbations"])
