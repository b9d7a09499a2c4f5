"""The corruptions that operations of training amount to: what is tested may not be trained on unseen (source 003)."""

from collections.abc import Mapping, Sequence

from cleanset.studies.robustness.corruptions.params import corruptions_of

_BLURS = ("defocus_blur", "gaussian_blur")

AMOUNTS_TO: Mapping[str, tuple[str, ...]] = {
    # of torchvision's AugMix; its authors leave out those that overlap with ImageNet-C
    "ShearX": (),
    "ShearY": (),
    "TranslateX": (),
    "TranslateY": (),
    "Rotate": (),
    "Posterize": (),
    "Solarize": (),
    "AutoContrast": (),
    "Equalize": (),
    "Brightness": ("brightness",),
    "Color": ("saturate",),
    "Contrast": ("contrast",),
    "Sharpness": _BLURS,
    "gaussian noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "projected gradient ascent": (),
    "shift_and_mirror": (),
    "random_resized_crop": (),
    # scenarios
    "blur_background": _BLURS,
    "blur_object": _BLURS,
    "image_grey": ("saturate",),
    "image_r": (),
    "image_g": (),
    "image_b": (),
    "image_rainbow": (),
    "image_brightness": ("brightness",),
    "segmented_image": (),
    "transparent_image": (),
    "random_background": (),
    "generated_background": (),
}
"""By operation, the corruptions of ImageNet-C that it amounts to."""

AUGMIX_OPERATIONS = (
    "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Posterize", "Solarize", "AutoContrast", "Equalize",
)  # fmt: skip
ALL_AUGMIX_OPERATIONS = (*AUGMIX_OPERATIONS, "Brightness", "Color", "Contrast", "Sharpness")


def operations_of(recipe: str, augmentation: str, scenario: str | None, *, all_ops: bool = False) -> list[str]:
    """Everything that is done to training images, by the names of AMOUNTS_TO; `all_ops` is AugMix's."""
    found = [augmentation] if augmentation != "none" else []
    if scenario is not None:
        found.append(scenario)
    if recipe in ("augmix", "augmix_mixing"):
        found += ALL_AUGMIX_OPERATIONS if all_ops else AUGMIX_OPERATIONS
    if recipe == "noise":
        found.append("gaussian noise")
    if recipe == "adversarial":
        found.append("projected gradient ascent")
    return found


def check_named(operations: Sequence[str], trained_on: Sequence[str]) -> None:
    """Raise ValueError for an operation that amounts to corruptions which are not among `trained_on`."""
    named = corruptions_of(trained_on)
    for operation in operations:
        missing = [name for name in AMOUNTS_TO[operation] if name not in named]
        if missing:
            raise ValueError(
                f"{operation} amounts to the test corruption{'s' * (len(missing) > 1)} {', '.join(missing)}; expected "
                f"trained_on to name what is trained on: add {', '.join(missing)} to it, or leave {operation} out"
            )
