from cleanset.studies.robustness.corruptions import params as corruptions
from cleanset.studies.robustness.perturbations import params as perturbations
from cleanset.studies.robustness.scenarios import params as scenarios


def test_the_numbers_of_names() -> None:
    groups = ("noise", "blur", "weather", "digital")
    assert [len(corruptions.CORRUPTION_GROUPS[group]) for group in groups] == [3, 4, 4, 4]
    assert [len(perturbations.PERTURBATION_GROUPS[group]) for group in groups] == [2, 2, 2, 4]
    for known, number in (
        (corruptions.IMAGENET_C, 19),
        (corruptions.CORRUPTIONS, 15),
        (corruptions.CORRUPTIONS_3DCC, 12),
        ([name for name, entry in corruptions.CORRUPTION_ENTRIES.items() if entry.benchmark], 41),
        (perturbations.ALL_PERTURBATIONS, 14),
        (perturbations.PERTURBATIONS, 10),
        (scenarios.SCENARIOS, 12),
    ):
        assert len(known) == len(set(known)) == number
    assert corruptions.SEVERITIES == (1, 2, 3, 4, 5)


def test_the_amounts_of_imagenet_c_bar() -> None:
    """The sums over the severities of each corruption, of the authors' list."""
    sums = [round(sum(each), 2) for each in corruptions.C_BAR_AMOUNTS.values()]
    assert sums == [14.4, 39.5, 20, 35, 14, 15, 26.2, 26, 17, 32]


def test_the_corruptions_of_3dcc() -> None:
    """As RobustBench lists them, in its order."""
    assert corruptions.corruptions_of(["3dcc"]) == (
        "near_focus", "far_focus", "bit_error", "color_quant", "flash", "fog_3d", "h265_abr", "h265_crf", "iso_noise",
        "low_light", "xy_motion_blur", "z_motion_blur",
    )  # fmt: skip


def test_the_perturbations_of_noise_are_those_with_noise_in_their_names() -> None:
    """The published code looks for the word."""
    assert [name for name in perturbations.ALL_PERTURBATIONS if "noise" in name] == list(
        perturbations.NOISE_PERTURBATIONS
    )


def test_groups_are_replaced_by_their_members_in_the_order_of_the_benchmark() -> None:
    names = ("gaussian_noise", "shot_noise", "impulse_noise", "fog", "saturate")
    assert corruptions.corruptions_of(["saturate", "fog", "noise", "shot_noise"]) == names
    assert perturbations.perturbations_of(["blur", "shear"]) == ("motion_blur", "zoom_blur", "shear")
    assert scenarios.scenarios_of("blur") == ("blur_background", "blur_object")
    assert corruptions.corruptions_of([]) == ()
    changed = corruptions.Corruptions(names=["snow"], severities=[3, 1])
    assert changed.changes() == [("snow", 1), ("snow", 3)]
