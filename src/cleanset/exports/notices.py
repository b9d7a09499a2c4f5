"""What limits a set as a whole, in sentences for the data card and the report."""

from cleanset.dataset.ilsvrc import VALIDATION_IMAGES


def sample_notice(images: int) -> str | None:
    """A warning where a set was made from so many images and not from ImageNet's validation set."""
    if images == VALIDATION_IMAGES:
        return None
    return (
        f"Made from {images:,} images, not from the {VALIDATION_IMAGES:,} of ImageNet's validation set: a sample or a "
        "trial, not for a study."
    )


def unreviewed_notice(unreviewed_clean: bool) -> str | None:
    """A warning where images that nobody has reviewed are in the set."""
    if not unreviewed_clean:
        return None
    return "Images that nobody has reviewed were taken for clean: a first look, not for a study."
