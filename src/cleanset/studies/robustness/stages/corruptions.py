"""Stage corruptions: one model's answers to the corrupted images."""

from cleanset.studies.robustness.stages.answering import answer
from cleanset.studies.robustness.study import Study


def run(study: Study, role: str) -> None:
    """Read images and the model's weights, write data/corruptions/<role>.parquet and .json.

    Raises CleansetError as `answer` does.
    """
    answer(study, role, ["corruptions"])
