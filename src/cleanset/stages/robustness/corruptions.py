"""Stage corruptions: one model's answers to the corrupted images."""

from cleanset.robustness.study import Study
from cleanset.stages.robustness.answering import answer


def run(study: Study, role: str) -> None:
    """Read images and the model's weights, write data/corruptions/<role>.parquet and .json.

    Raises CleansetError as `answer` does.
    """
    answer(study, role, ["corruptions"])
