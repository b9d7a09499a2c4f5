"""The names of the corruptions, perturbations and scenarios, and the groups that they are in.

Corruptions and perturbations: Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions
and Perturbations" (ICLR 2019), ImageNet-C and ImageNet-P; scenarios: XIMAGENET-12. The order is that of their tables.
"""

from collections.abc import Callable, Iterable, Mapping

from cleanset.errors import CleansetError
from cleanset.validation import check_known, shown

CORRUPTION_GROUPS: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
}
"""The 15 test corruptions of ImageNet-C, over which mCE is the mean."""

CORRUPTIONS: tuple[str, ...] = tuple(name for group in CORRUPTION_GROUPS.values() for name in group)
"""The 15 test corruptions."""

VALIDATION_CORRUPTIONS: tuple[str, ...] = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
"""The 4 corruptions that ImageNet-C adds for tuning; they are not part of mCE and are in none of the four groups."""

ALL_CORRUPTIONS: tuple[str, ...] = CORRUPTIONS + VALIDATION_CORRUPTIONS
"""The 15 test corruptions and then the 4 validation ones."""

SEVERITIES: tuple[int, ...] = (1, 2, 3, 4, 5)

PERTURBATION_GROUPS: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise"),
    "blur": ("motion_blur", "zoom_blur"),
    "weather": ("snow", "brightness"),
    "digital": ("translate", "rotate", "tilt", "scale"),
}
"""The 10 test perturbations of ImageNet-P, over which mFP, mFR and mT5D are the mean."""

PERTURBATIONS: tuple[str, ...] = tuple(name for group in PERTURBATION_GROUPS.values() for name in group)
"""The 10 test perturbations."""

VALIDATION_PERTURBATIONS: tuple[str, ...] = ("speckle_noise", "gaussian_blur", "spatter", "shear")
"""The 4 perturbations that ImageNet-P adds for tuning."""

ALL_PERTURBATIONS: tuple[str, ...] = PERTURBATIONS + VALIDATION_PERTURBATIONS
"""The 10 test perturbations and then the 4 validation ones."""

NOISE_PERTURBATIONS: tuple[str, ...] = ("gaussian_noise", "shot_noise", "speckle_noise")
"""Perturbations that the published code of ImageNet-P compares with frame 1; their frames depend on difficulty."""

LEVELS = (1, 2, 3)
"""Difficulties at which noise is made; for all others the difficulty is a step between frames."""

FRAMES, TRANSLATE_FRAMES, FRAMES_IN_TEXT = 31, 41, 30
"""Frames of a published sequence, of translate, and of every sequence in the paper's text."""

SCENARIO_GROUPS: dict[str, tuple[str, ...]] = {
    "blur": ("blur_background", "blur_object"),
    "color": ("image_grey", "image_r", "image_g", "image_b", "image_rainbow", "image_brightness"),
    "segmented": ("segmented_image",),
    "transparent": ("transparent_image",),
    "random": ("random_background",),
    "generated": ("generated_background",),
}
"""The six scenarios of XIMAGENET-12 and the sets of images that each stands for."""

SCENARIOS: tuple[str, ...] = tuple(name for group in SCENARIO_GROUPS.values() for name in group)
"""The 12 sets of images of XIMAGENET-12's scenarios."""

UNCHANGED = "unchanged"
"""The base image that corruptions and scenarios start from."""

CLEAN = "clean"
"""The image with the model's own preprocessing."""


def frame_count(name: str, *, as_in_text: bool = False) -> int:
    """The number of frames of a perturbation: 31, of translate 41; as in the text 30 of each, the first.

    Raises CleansetError for an unknown perturbation.
    """
    check_known("perturbation", name, ALL_PERTURBATIONS)
    if as_in_text:
        return FRAMES_IN_TEXT
    return TRANSLATE_FRAMES if name == "translate" else FRAMES


def corruptions_of(names_or_groups: Iterable[str]) -> tuple[str, ...]:
    """The corruptions that are named, each group replaced by its members; in the order of ALL_CORRUPTIONS, each once.

    Raises CleansetError for a name that is neither a corruption nor a group.
    """
    return _expanded("corruption", names_or_groups, CORRUPTION_GROUPS, ALL_CORRUPTIONS)


def perturbations_of(names_or_groups: Iterable[str]) -> tuple[str, ...]:
    """The perturbations that are named, each group replaced by its members, as `corruptions_of` does."""
    return _expanded("perturbation", names_or_groups, PERTURBATION_GROUPS, ALL_PERTURBATIONS)


def scenarios_of(names_or_groups: Iterable[str]) -> tuple[str, ...]:
    """The sets of images that are named, each scenario replaced by its members, as `corruptions_of` does."""
    return _expanded("scenario", names_or_groups, SCENARIO_GROUPS, SCENARIOS)


def known_names(names: list[str], expanded: Callable[[list[str]], object]) -> list[str]:
    """The names, as pydantic's validators take them: ValueError for one that `expanded` does not know."""
    try:
        expanded(names)
    except CleansetError as error:
        raise ValueError(str(error)) from None
    return names


def _expanded(
    what: str, wanted: Iterable[str], groups: Mapping[str, tuple[str, ...]], known: tuple[str, ...]
) -> tuple[str, ...]:
    """The names and the members of the groups among `wanted`, in the order of `known`."""
    # a single name is a sequence of letters otherwise
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    found: set[str] = set()
    for name in wanted:
        if name not in groups and name not in known:
            raise CleansetError(
                f"unknown {what} {shown(name)}; expected one of {', '.join(known)}, or a group: {', '.join(groups)}"
            )
        found.update(groups.get(name, (name,)))
    return tuple(name for name in known if name in found)
