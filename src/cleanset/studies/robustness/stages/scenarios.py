"""Stage scenarios: one model's answers to images with another background, or with it or the object changed."""

from cleanset.studies.robustness.stages.answering import answer
from cleanset.studies.robustness.study import Study


def run(study: Study, role: str) -> None:
    """Read images and the model's weights, write data/scenarios/<role>.parquet and .json.

    Raises CleansetError as `answer` does.
    """
    answer(study, role, ["scenarios"])
