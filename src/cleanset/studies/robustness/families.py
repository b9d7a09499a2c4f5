"""The families of image changes, and the changed images that each makes of a study's images. No model, no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.studies.robustness.changed_images import ChangedImages, ChangeName, StudyFile, files_of
from cleanset.studies.robustness.corruptions.family import CORRUPTIONS
from cleanset.studies.robustness.family import Changing, Family, FamilySection
from cleanset.studies.robustness.images import STUDY_IMAGES, images_sha256
from cleanset.studies.robustness.names import UNCHANGED
from cleanset.studies.robustness.perturbations.family import PERTURBATIONS
from cleanset.studies.robustness.scenarios.family import SCENARIOS
from cleanset.studies.robustness.scenarios.image_masks import MASKS
from cleanset.studies.robustness.study import Study
from cleanset.tables import INDEX, read_table

if TYPE_CHECKING:
    from cleanset.studies.robustness.settings import StudyParams

FAMILIES: tuple[Family, ...] = (CORRUPTIONS, PERTURBATIONS, SCENARIOS)
"""All families; each is a stage, a folder of answers, a section of the params and a page."""


def families_in(params: "StudyParams") -> list[Family]:
    """The families with at least one change in the params."""
    return [family for family in FAMILIES if section_of(family, params).names]


def family_named(name: str) -> Family:
    """The family of that name."""
    return next(family for family in FAMILIES if family.name == name)


def section_of(family: Family, params: "StudyParams") -> FamilySection:
    """The section of a family."""
    section: FamilySection = params.section(family.name)
    return section


def measured_images(family: Family, images: pd.DataFrame, masks: pd.DataFrame, params: "StudyParams") -> pd.DataFrame:
    """The rows of STUDY_IMAGES that a family is measured on.

    Published images show whole images: those that are cropped in a set are left out. Raises CleansetError where none
    is left.
    """
    # benchmarks were made from whole images: a crop has no counterpart in them
    if section_of(family, params).published is not None:
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


def notice(family: Family, params: "StudyParams", images: pd.DataFrame, *, is_official: bool = False) -> str:
    """The notice beside a family's numbers; `images` are all rows of STUDY_IMAGES.

    `is_official`: all of a published benchmark was read, which a study of finished sets never does.
    """
    is_made = section_of(family, params).published is None
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
class Sources:
    """The sources of changed images: rows of STUDY_IMAGES and MASKS, the path of each image by file, and the study
    whose folders hold masks, backgrounds and generated images.

    `edition`: that of the images; photographs are compared with all images of its index, where that is there.
    """

    images: pd.DataFrame
    masks: pd.DataFrame
    files: Mapping[str, StudyFile]
    study: Study
    edition: Edition | None = None

    @classmethod
    def read(cls, study: Study) -> Self:
        """The sources of a study, as its stage images found them."""
        images = read_table(study.images, STUDY_IMAGES)
        files = files_of(study.edition, images)
        return cls(images, read_table(study.masks_table, MASKS), files, study, study.edition)

    def files_in(self, images: pd.DataFrame) -> dict[str, StudyFile]:
        """The paths of the images in some rows, by file."""
        return {file: self.files[file] for file in images["file"]}

    def indexed_images(self) -> dict[str, str]:
        """The ids of all images of the edition by the SHA-256 of their pixels; empty without its index."""
        if self.edition is None or not self.edition.index.is_file():
            return {}
        index = read_table(self.edition.index, INDEX)
        return dict(zip(index["pixels_sha256"], index["image_id"], strict=True))


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

    def changed_images(self, files: Mapping[str, StudyFile], params: "StudyParams") -> ChangedImages:
        """The changed images; `files`: where the images of the family lie, by file."""
        return ChangedImages(files, self.changing.change, params.jpeg, params.seed, self.is_published)

    def names(self) -> list[ChangeName]:
        """All changed images and the unchanged ones, sorted by their texts."""
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


def change_plan(family: Family, sources: Sources, params: "StudyParams") -> ChangePlan:
    """The changed images of a family, of all images that it is measured on.

    Raises CleansetError for photographs and generated images that scenarios cannot use, and as `find_published` does.
    """
    images, section = measured_images(family, sources.images, sources.masks, params), section_of(family, params)
    if section.published is None:
        return ChangePlan(family, images, section.changes(), family.making(sources, images, params))
    files = list(sources.files_in(images).values())
    changing = family.published(sources.study.folder / section.published, files, params)
    return ChangePlan(family, images, section.changes(), changing, True)
