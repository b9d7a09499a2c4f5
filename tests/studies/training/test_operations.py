"""Operations and the corruptions that they amount to: all of torchvision's, all scenarios."""

import pytest
from torchvision.transforms import v2

from cleanset.studies.robustness.corruptions.params import ALL_CORRUPTIONS
from cleanset.studies.robustness.scenarios.params import SCENARIOS
from cleanset.studies.training.params import (
    ALL_AUGMIX_OPERATIONS,
    AMOUNTS_TO,
    AUGMIX_OPERATIONS,
    check_named,
    operations_of,
)


def test_the_operations_are_those_of_torchvision() -> None:
    assert set(AUGMIX_OPERATIONS) == set(v2.AugMix._PARTIAL_AUGMENTATION_SPACE)
    assert set(ALL_AUGMIX_OPERATIONS) == set(v2.AugMix._AUGMENTATION_SPACE)


def test_every_operation_has_its_corruptions() -> None:
    assert {*ALL_AUGMIX_OPERATIONS, *SCENARIOS} <= set(AMOUNTS_TO)
    assert {name for names in AMOUNTS_TO.values() for name in names} <= set(ALL_CORRUPTIONS)
    assert not any(AMOUNTS_TO[name] for name in AUGMIX_OPERATIONS)


def test_an_operation_without_its_corruptions_is_named() -> None:
    operations = operations_of("augmix", "none", None, all_ops=True)
    with pytest.raises(ValueError, match="Contrast amounts to the test corruption contrast; expected trained_on"):
        check_named(operations, ["brightness", "saturate"])
    check_named(operations, ["brightness", "saturate", "contrast", "defocus_blur", "gaussian_blur"])


def test_groups_name_corruptions_too() -> None:
    check_named(["gaussian noise"], ["noise", "speckle_noise"])


@pytest.mark.parametrize(
    ("recipe", "augmentation", "scenario", "found"),
    [
        ("standard", "none", None, []),
        ("standard", "shift_and_mirror", "blur_object", ["shift_and_mirror", "blur_object"]),
        ("adversarial", "none", None, ["projected gradient ascent"]),
        ("noise", "none", None, ["gaussian noise"]),
        ("augmix_mixing", "none", None, list(AUGMIX_OPERATIONS)),
    ],
)
def test_operations(recipe: str, augmentation: str, scenario: str | None, found: list[str]) -> None:
    assert operations_of(recipe, augmentation, scenario) == found
