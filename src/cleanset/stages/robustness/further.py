"""Stage further: the answers of a model that is not one of the edition's, to all families of changed images."""

from cleanset.robustness.study import FAMILIES, Study
from cleanset.stages.robustness.answering import answer


def run(study: Study, role: str) -> None:
    """Read images and the model's weights, write data/<family>/<role>.parquet and .json for each family.

    Raises CleansetError as `answer` does.
    """
    answer(study, role, FAMILIES)
