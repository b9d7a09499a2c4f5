"""What the sample must show: how far the training of its models protects them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cleanset.attacks.results import ATTACKED, attacked_folder
from cleanset.attacks.settings import AttackSettings
from cleanset.robustness.study import Study
from cleanset.stages.robustness import attacks, images
from cleanset.tables import read_table
from tests.checkouts import Checkout

ROLES = ("standard", "corruption_robust", "norm_robust")
PGD = AttackSettings.model_validate(
    {"search_precision": "float32", "attacks": {"pgd": {"eps": "4/255", "steps": 10, "group": 8}, "none": {}}}
)


@pytest.fixture(scope="module")
def error(built: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], float]:
    """The share of misclassified images by attack and role."""
    clone = built.clone_with_data(tmp_path_factory.mktemp("attacked") / "cleanset")
    study = Study(Path(clone.folder) / "studies" / "robustness")
    images.run(study)

    def run(name: str, role: str) -> float:
        attacks.run(study, role, name, PGD)
        return float(read_table(attacked_folder(study.folder, name, role).table, ATTACKED)["is_error"].mean())

    return run


def test_pgd_on_the_71_images(error: Callable[[str, str], float]) -> None:
    """As measured beforehand: .90, .37, .16."""
    found = [error("pgd", role) for role in ROLES]
    assert found == pytest.approx([0.90, 0.37, 0.16], abs=0.03)
    assert found[0] - found[2] >= 0.4


def test_none_is_the_clean_error(error: Callable[[str, str], float]) -> None:
    """One image of 71; every image got its stored scores, else the stage would have failed."""
    assert error("none", "norm_robust") == pytest.approx(1 / 71)
