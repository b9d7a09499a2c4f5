"""Stage further: the answers of a model that is not one of the edition's, to all families of changed images."""

from cleanset.studies.robustness.stages.answering import answer
from cleanset.studies.robustness.study import FAMILIES, Study


def run(study: Study, role: str) -> None:
    """Read images and the model's weights, write data/<family>/<role>.parquet and .json for each family.

    Raises CleansetError as `answer` does.
    """
    answer(study, role, FAMILIES)
