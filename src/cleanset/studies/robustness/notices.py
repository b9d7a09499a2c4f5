"""What a reader of each family's measures has to know of the images: made here, or published ones."""

import pandas as pd

from cleanset.studies.robustness.settings import StudyParams

MADE = {
    "corruptions": "No official ImageNet-C numbers: a subset of the validation images, and an own implementation of "
    "the corruptions.",
    "perturbations": "No official ImageNet-P numbers: a subset of the validation images, and frames made in memory "
    "without the benchmark's video codec.",
    "scenarios": "The scenarios of XIMAGENET-12, made from the images that have a mask; not its published images.",
}
BENCHMARKS = {"corruptions": "ImageNet-C", "perturbations": "ImageNet-P"}
CORRECT = {
    "all": "A prediction is correct if the class is the most probable of all 1,000 (answers: all).",
    "restricted": "A prediction is correct if the class is the most probable of the edition's classes "
    "(answers: restricted).",
}


def notice(name: str, wanted: StudyParams, images: pd.DataFrame, *, is_official: bool = False) -> str:
    """The notice for one of FAMILIES; `images` are all rows of STUDY_IMAGES.

    `is_official`: all of a published benchmark was read, which a study of finished sets never does.
    """
    found = MADE[name] if wanted.published(name) is None else _of_published(name, images, is_official)
    return f"{found} {CORRECT[wanted.scenarios.answers]}" if name == "scenarios" else found


def _of_published(name: str, images: pd.DataFrame, is_official: bool) -> str:
    benchmark = BENCHMARKS.get(name)
    if is_official:
        return f"Published images: all of {benchmark}."
    found = "Published images, read from a folder."
    if benchmark is not None:
        found = f"Published images, but not all of {benchmark}: no official numbers."
    cropped = int(images["crop"].notna().sum())
    if cropped:
        found += f" Published images are whole: {cropped:,} that are cropped in the sets are left out."
    return found
