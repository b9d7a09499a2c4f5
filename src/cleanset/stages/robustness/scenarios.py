"""Stage scenarios: one model's answers to images with another background, or with it or the object changed."""

from cleanset.robustness.study import Study
from cleanset.stages.robustness.answering import answer


def run(study: Study, role: str) -> None:
    """Read images and the model's weights, write data/scenarios/<role>.parquet and .json.

    Raises CleansetError as `answer` does.
    """
    answer(study, role, ["scenarios"])
