"""What each family of changes makes of which images, from a study's params. No model, no torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.paths import Edition
from cleanset.files import sha256
from cleanset.images.boxes import box_of
from cleanset.studies.robustness.backgrounds import generated_files, photograph_files
from cleanset.studies.robustness.changed_images import (
    Change,
    ChangedImages,
    ChangeName,
    SetImages,
    StudyFile,
    files_of,
)
from cleanset.studies.robustness.changes import PerturbedImage, SceneImage, SceneMask, StoredFile, corrupted_image
from cleanset.studies.robustness.image_masks import (
    MASKS,
    MaskedImage,
    MaskSource,
    find_masks,
    has_scenarios,
    mask_table,
)
from cleanset.studies.robustness.images import STUDY_IMAGES
from cleanset.studies.robustness.measured_images import measured_images
from cleanset.studies.robustness.names import UNCHANGED
from cleanset.studies.robustness.published_benchmarks import published_benchmark
from cleanset.studies.robustness.records import images_sha256
from cleanset.studies.robustness.scenarios import Placing
from cleanset.studies.robustness.settings import GENERATED, RANDOM, Scenarios, StudyParams
from cleanset.studies.robustness.study import Study
from cleanset.tables import INDEX, read_table


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """What one of FAMILIES changes: rows of STUDY_IMAGES, the changes of each by name and step, and how.

    `settings`: what the changed pixels depend on beside image, name, step, seed and JPEG quality. `is_published`: the
    changed images are read instead of made; `is_official`: a whole benchmark is, and these are all its images.
    """

    name: str
    images: pd.DataFrame
    changes: Sequence[tuple[str, int]]
    change: Change
    settings: Mapping[str, Any]
    is_published: bool = False
    is_official: bool = False

    def changed_images(self, files: Mapping[str, StudyFile], wanted: StudyParams) -> ChangedImages:
        """The changed images, from where the images of the family lie, by file."""
        return ChangedImages(files, self.change, wanted.jpeg, wanted.seed, self.is_published)

    def names(self) -> list[str]:
        """The names of all changed images and of the unchanged ones, sorted."""
        changes = [(UNCHANGED, 0), *self.changes]
        return sorted(str(ChangeName(file, *change)) for file in self.images["file"] for change in changes)

    def as_record(self) -> dict[str, Any]:
        """What the changed images depend on beside seed, JPEG quality and libraries."""
        images, steps = self.images, dict[str, list[int]]()
        for name, step in self.changes:
            steps.setdefault(name, []).append(step)
        return {
            "images": len(images),
            "images_sha256": images_sha256(images),
            "changes": {name: " ".join(map(str, found)) for name, found in steps.items()},
            "settings": dict(self.settings),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """What changed images are made of: rows of STUDY_IMAGES and MASKS, where each image lies, by its file, and the
    study whose folders hold masks, backgrounds and generated images.

    `edition`: that of the images; photographs are compared with all images of its index, where that is there.
    """

    images: pd.DataFrame
    masks: pd.DataFrame
    files: Mapping[str, StudyFile]
    study: Study
    edition: Edition | None = None

    @classmethod
    def read(cls, study: Study) -> Self:
        """Those of a study, as its stage images found them."""
        images = read_table(study.images, STUDY_IMAGES)
        files = files_of(study.edition, images)
        return cls(images, read_table(study.masks_table, MASKS), files, study, study.edition)

    def files_in(self, images: pd.DataFrame) -> dict[str, StudyFile]:
        """Where the images of some of the rows lie."""
        return {file: self.files[file] for file in images["file"]}

    def indexed_images(self) -> dict[str, str]:
        """The ids of all images of the edition by the SHA-256 of their pixels; none without its index."""
        if self.edition is None or not self.edition.index.is_file():
            return {}
        index = read_table(self.edition.index, INDEX)
        return dict(zip(index["pixels_sha256"], index["image_id"], strict=True))


def family_of(name: str, sources: Sources, wanted: StudyParams) -> Family:
    """One of FAMILIES on all images that it is measured on.

    Raises CleansetError for photographs and generated images that scenarios cannot use, and as `find_published` does.
    """
    images = measured_images(name, sources.images, sources.masks, wanted)
    if (folder := wanted.published(name)) is not None:
        files = list(sources.files_in(images).values())
        found = published_benchmark(name, sources.study.folder / folder, files, wanted)
        changes = wanted.changes(name)
        return Family(name, images, changes, found.change, found.settings(), True, found.is_official)
    return _MADE[name](sources, images, wanted)


def _corruptions(_: Sources, images: pd.DataFrame, wanted: StudyParams) -> Family:
    return Family("corruptions", images, wanted.changes("corruptions"), corrupted_image, {})


def _perturbations(_: Sources, images: pd.DataFrame, wanted: StudyParams) -> Family:
    levels = wanted.perturbations.levels()
    return Family("perturbations", images, wanted.changes("perturbations"), PerturbedImage(levels), {"levels": levels})


def _scenarios(sources: Sources, images: pd.DataFrame, wanted: StudyParams) -> Family:
    scenes = scene_images(sources, wanted.scenarios)
    return Family("scenarios", images, wanted.changes("scenarios"), scenes, settings_of(wanted.scenarios, scenes))


_MADE: dict[str, Callable[[Sources, pd.DataFrame, StudyParams], Family]] = {
    "corruptions": _corruptions,
    "perturbations": _perturbations,
    "scenarios": _scenarios,
}


def scene_images(sources: Sources, wanted: Scenarios) -> SceneImage:
    """The scenarios of the images that have a mask; photographs are compared with all images, also of the index."""
    images, study = has_scenarios(sources.images, sources.masks), sources.study
    changes = wanted.expanded()
    photographs: tuple[StoredFile, ...] = ()
    if RANDOM in changes:
        ids = {file: each.image_id for file, each in sources.files.items()}
        # the index only refuses a photograph: nothing that is written depends on it
        photographs = photograph_files(study.backgrounds, SetImages(sources.files), ids, sources.indexed_images())
    generated: dict[Path, StoredFile] = {}
    if GENERATED in changes:
        files = sources.files_in(images).values()
        by_id = generated_files(study.generated, [each.image_id for each in files])
        generated = {each.path: by_id[each.image_id] for each in files}
    placing = Placing((wanted.object_scales[0], wanted.object_scales[1]), wanted.object_weight, wanted.object_moved)
    masks = masks_of(sources, images)
    return SceneImage(masks, photographs, generated, wanted.definition, wanted.matte, placing)


def masks_of(sources: Sources, images: pd.DataFrame) -> dict[Path, SceneMask]:
    """The mask of each image, by the image's path; `images` are rows of `has_scenarios`."""
    names, found = wnids(), {}
    columns = (images[name] for name in ("file", "mask", "mask_sha256", "mask_format", "class_index", "crop"))
    for file, mask, digest, mask_format, class_index, crop in zip(*columns, strict=True):
        stored = StoredFile(sources.study.masks / mask, digest)
        found[sources.files[file].path] = SceneMask(stored, mask_format, names[class_index], box_of(crop))
    return found


def settings_of(wanted: Scenarios, scenes: SceneImage) -> dict[str, Any]:
    """What the changed pixels depend on, for the record: the params and the digests of all files."""
    used = [each.file for each in scenes.masks.values()] + list(scenes.photographs)
    used += list((scenes.generated or {}).values())
    digests = "\n".join(f"{each.path.name} {each.sha256}" for each in used)
    params = wanted.model_dump(exclude={"published", "names", "answers", "baselines"})
    return {**params, "files_sha256": sha256(digests.encode())}


def masks_found(
    images: pd.DataFrame,
    files: Mapping[str, StudyFile],
    study: Study,
    wanted: StudyParams,
    *,
    is_placed: bool | None = None,
) -> pd.DataFrame:
    """The rows of MASKS of some rows of STUDY_IMAGES, from the masks of a study; `files`: where the images lie.

    `is_placed`: images must suit a generated background; None: if the params name that scenario. Raises CleansetError
    as `find_masks` and `mask_table` do.
    """
    sources = [MaskSource(each.folder, each.format, each.origin) for each in wanted.masks]
    masks, read, names, masked = find_masks(study.masks, sources), SetImages(files), wnids(), []
    columns = (images[name] for name in ("file", "image_id", "class_index", "crop"))
    for file, image_id, class_index, crop in zip(*columns, strict=True):
        size = read(file).size if image_id in masks else (0, 0)  # of an image without a mask nothing is asked
        masked.append(MaskedImage(file, image_id, names[class_index], size, box_of(crop)))
    if is_placed is None:
        is_placed = wanted.scenarios.published is None and GENERATED in wanted.scenarios.expanded()
    return mask_table(masked, masks, is_placed=is_placed)
