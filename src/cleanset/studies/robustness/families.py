"""The families of image changes, and the changed images that each makes of a study's images. No model, no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.studies.robustness.changed_images import ChangedImages, ChangeName, StudyFile
from cleanset.studies.robustness.corruptions.family import CORRUPTION_FAMILY
from cleanset.studies.robustness.family import Changing, Family
from cleanset.studies.robustness.images import Sources, images_sha256
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.perturbations.family import PERTURBATION_FAMILY
from cleanset.studies.robustness.sampled import UNCHANGED
from cleanset.studies.robustness.scenarios.family import SCENARIO_FAMILY

FAMILIES: tuple[Family, ...] = (CORRUPTION_FAMILY, PERTURBATION_FAMILY, SCENARIO_FAMILY)
"""All families; each is a stage, a folder of answers, a section of the params and a page."""


def families_in(params: CommonParams) -> list[Family]:
    """The families with at least one change in the params."""
    return [family for family in FAMILIES if family.section_in(params).names]


def family_named(name: str) -> Family:
    """The family of that name."""
    return next(family for family in FAMILIES if family.name == name)


def measured_images(family: Family, images: pd.DataFrame, masks: pd.DataFrame, params: CommonParams) -> pd.DataFrame:
    """The rows of STUDY_IMAGES that a family is measured on.

    Published images show whole images: those that are cropped in a set are left out. Raises CleansetError where none
    is left.
    """
    # benchmarks were made from whole images: a crop has no counterpart in them
    if family.section_in(params).published is not None:
        images = _whole(images, family)
    return family.measured_images(images, masks, params)


def _whole(images: pd.DataFrame, family: Family) -> pd.DataFrame:
    whole = images[images["crop"].isna()].reset_index(drop=True)
    if whole.empty:
        raise CleansetError(
            f"{family.name}.published: all {len(images):,} images are cropped, and published images are whole; "
            "expected published: null"
        )
    return whole


def notice(family: Family, params: CommonParams, images: pd.DataFrame, *, is_official: bool = False) -> str:
    """The notice beside a family's numbers; `images` are all rows of STUDY_IMAGES.

    `is_official`: all of a published benchmark was read, which a study of finished sets never does.
    """
    is_made = family.section_in(params).published is None
    found = family.notice_if_made if is_made else _of_published(family, images, is_official)
    return f"{found} {remark}" if (remark := family.remark(params)) else found


def _of_published(family: Family, images: pd.DataFrame, is_official: bool) -> str:
    if is_official:
        return f"Published images: all of {family.benchmark}."
    found = "Published images, read from a folder."
    if family.benchmark is not None:
        found = f"Published images, but not all of {family.benchmark}: no official numbers."
    cropped = int(images["crop"].notna().sum())
    if cropped:
        found += f" Published images are whole: {cropped:,} that are cropped in the sets are left out."
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ChangePlan:
    """The changed images of a family: rows of STUDY_IMAGES, the changes of each by name and step, and how.

    `is_published`: the changed images are read instead of made.
    """

    family: Family
    images: pd.DataFrame
    changes: Sequence[tuple[str, int]]
    changing: Changing
    is_published: bool = False

    @property
    def name(self) -> str:
        """The name of the family."""
        return self.family.name

    @property
    def is_official(self) -> bool:
        """Whether a whole published benchmark is read, and these are all its images."""
        return self.changing.is_official

    def changed_images(self, files: Mapping[str, StudyFile], params: CommonParams) -> ChangedImages:
        """The changed images; `files`: where the images of the family lie, by file."""
        return ChangedImages(files, self.changing.change, params.jpeg, params.seed, self.is_published)

    def names(self) -> list[ChangeName]:
        """All changed images and the unchanged ones, sorted by their texts."""
        # every family has it, so that its measures need no other family's answers
        changes = [(UNCHANGED, 0), *self.changes]
        # by text, as shards and tables are sorted
        return sorted((ChangeName(file, *change) for file in self.images["file"] for change in changes), key=str)

    def as_record(self) -> dict[str, Any]:
        """Everything that the changed images depend on except seed, JPEG quality and libraries."""
        images, steps = self.images, dict[str, list[int]]()
        for name, step in self.changes:
            steps.setdefault(name, []).append(step)
        return {
            "images": len(images),
            "images_sha256": images_sha256(images),
            "changes": {name: " ".join(map(str, found)) for name, found in steps.items()},
            "settings": dict(self.changing.settings),
        }


def change_plan(family: Family, sources: Sources, params: CommonParams) -> ChangePlan:
    """The changed images of a family, of all images that it is measured on.

    Raises CleansetError for photographs and generated images that scenarios cannot use, and as `find_published` does.
    """
    images, section = measured_images(family, sources.images, sources.masks, params), family.section_in(params)
    if section.published is None:
        return ChangePlan(family, images, section.changes(), family.make_images(sources, images, params))
    files = list(sources.files_in(images).values())
    changing = family.read_images(sources.study.folder / section.published, files, params)
    return ChangePlan(family, images, section.changes(), changing, True)
