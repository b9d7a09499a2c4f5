import pytest

from cleanset.errors import CleansetError
from cleanset.studies.robustness import names


def test_the_numbers_of_names() -> None:
    assert [len(names.CORRUPTION_GROUPS[group]) for group in ("noise", "blur", "weather", "digital")] == [3, 4, 4, 4]
    assert [len(names.PERTURBATION_GROUPS[group]) for group in ("noise", "blur", "weather", "digital")] == [2, 2, 2, 4]
    for known, number in (
        (names.ALL_CORRUPTIONS, 19),
        (names.CORRUPTIONS, 15),
        (names.ALL_PERTURBATIONS, 14),
        (names.PERTURBATIONS, 10),
        (names.SCENARIOS, 12),
    ):
        assert len(known) == len(set(known)) == number
    assert names.SEVERITIES == (1, 2, 3, 4, 5)


def test_the_perturbations_of_noise_are_those_with_noise_in_their_names() -> None:
    """The published code looks for the word."""
    assert [name for name in names.ALL_PERTURBATIONS if "noise" in name] == list(names.NOISE_PERTURBATIONS)


def test_groups_are_replaced_by_their_members_in_the_order_of_the_benchmark() -> None:
    assert names.corruptions_of(["saturate", "fog", "noise", "shot_noise"]) == (
        "gaussian_noise",
        "shot_noise",
        "impulse_noise",
        "fog",
        "saturate",
    )
    assert names.perturbations_of(["blur", "shear"]) == ("motion_blur", "zoom_blur", "shear")
    assert names.scenarios_of("blur") == ("blur_background", "blur_object")
    assert names.corruptions_of([]) == ()


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (names.corruptions_of, "corruption"),
        (names.perturbations_of, "perturbation"),
        (names.scenarios_of, "scenario"),
    ],
)
def test_unknown_names_are_refused_with_the_list(call: object, what: str) -> None:
    assert callable(call)
    with pytest.raises(CleansetError, match=f"unknown {what} 'nois'; expected one of .*, or a group: "):
        call(["brightness" if what != "scenario" else "blur", "nois"])
