"""What a reader of each family's measures has to know of the images: made here, or published ones."""

import pandas as pd

from cleanset.robustness.families import Family

MADE = {
    "corruptions": "No official ImageNet-C numbers: a subset of the validation images, and an own implementation of "
    "the corruptions.",
    "perturbations": "No official ImageNet-P numbers: a subset of the validation images, and frames made in memory "
    "without the benchmark's video codec.",
    "scenarios": "The scenarios of XIMAGENET-12, made from the images that have a mask; not its published images.",
}
BENCHMARKS = {"corruptions": "ImageNet-C", "perturbations": "ImageNet-P"}


def notice(family: Family, images: pd.DataFrame) -> str:
    """The notice for a family; `images` are all rows of STUDY_IMAGES."""
    if not family.is_published:
        return MADE[family.name]
    benchmark = BENCHMARKS.get(family.name)
    if family.is_official:
        return f"Published images: all of {benchmark}."
    found = "Published images, read from a folder."
    if benchmark is not None:
        found = f"Published images, but not all of {benchmark}: no official numbers."
    cropped = int(images["crop"].notna().sum())
    if cropped:
        found += f" Published images are whole: {cropped:,} that are cropped in the sets are left out."
    return found
