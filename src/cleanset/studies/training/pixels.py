"""The pixels of training images, unchanged or in a scenario of the study of robustness."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.evaluation.sets import ImageFile
from cleanset.image_ids import IMAGE_SUFFIXES
from cleanset.images.preprocessing import PixelPlanes, Pixels, Resized, base_image
from cleanset.sets.folder import read_regular_file
from cleanset.statistics.basics import Ints
from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.images import base_pixels
from cleanset.studies.robustness.scenarios.params import GENERATED, ORIGINAL, RANDOM
from cleanset.studies.training.images import decoded, read_unchanged
from cleanset.studies.training.study import StudyInputs, TrainingStudy

# OpenCV and SciPy are loaded for scenarios only
if TYPE_CHECKING:
    from cleanset.studies.robustness.scenarios.changes import SceneImage, SceneMask
    from cleanset.studies.robustness.scenarios.photographs import StoredFile


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingPixels:
    """The pixels of training images in one scenario; a callable that can be pickled, for worker processes.

    All are the base images of the study of robustness, 224 x 224, resized to `size`: so an unchanged image differs from
    one in a scenario by the scenario alone.
    """

    folder: Path
    """The folder of the images."""
    files: Sequence[str]
    """Path of each image below the folder."""
    digests: Sequence[str]
    """SHA-256 of the bytes of each image."""
    labels: Ints
    """The network's class of each image, from 0."""
    size: int
    """Side of the pixels that the network gets."""
    scenario: str = ORIGINAL
    """The scenario, or ORIGINAL."""
    scenes: "SceneImage | None" = None
    """Makes the images of a scenario; None for ORIGINAL."""
    seed: int = 0
    """The study's seed, for scenarios that draw."""
    whole: bool = False
    """Whether an image stays uncropped, unless its background has the size of a base image."""
    generated: Path | None = None
    """The folder of images with generated backgrounds."""
    is_nearest: bool = False
    """Whether images are resized to `size` without a filter."""

    def __len__(self) -> int:
        return len(self.files)

    def image(self, place: int) -> Image.Image:
        """The image before it is resized. Raises CleansetError for a file that has changed."""
        path = self.folder / self.files[place]
        if self.scenario == ORIGINAL and self.whole:
            return decoded(read_unchanged(path, self.digests[place]), path)
        file = ImageFile(path, self.digests[place], self.files[place])
        if self.scenario == ORIGINAL:
            return Image.fromarray(base_pixels(file))
        assert self.scenes is not None
        if self.scenario == GENERATED:
            return Image.fromarray(self._generated(file, self.scenes.masks[path]))
        seed = image_seed(self.seed, file.image_id)
        if self.whole and self.scenario != RANDOM:
            return Image.fromarray(self.scenes.before_resizing(file, self.scenario, seed))
        return Image.fromarray(self.scenes(file, self.scenario, 0, seed))

    def _generated(self, file: ImageFile, mask: "SceneMask") -> Pixels:
        """The object of the base image on a generated image; the base image is taken, too."""
        from cleanset.studies.robustness.scenarios.changes import regions_of_mask
        from cleanset.studies.robustness.scenarios.scenes import object_put_back

        assert self.generated is not None
        path = generated_file(self.generated, file.image_id)
        generated = base_image(decoded(read_regular_file(path), path))
        return object_put_back(base_pixels(file), regions_of_mask(mask), generated)

    def __call__(self, place: int) -> PixelPlanes:
        """The pixels of an image, uint8 of shape (3, size, size), red first."""
        return Resized(self.size, self.is_nearest)(self.image(place))


def scenes_of(inputs: StudyInputs, images: pd.DataFrame, scenario: str) -> "SceneImage":
    """The function that makes the images of a scenario, from rows of TRAINING_IMAGES that all have a mask."""
    from cleanset.studies.robustness.scenarios.changes import SceneImage, SceneMask
    from cleanset.studies.robustness.scenarios.photographs import StoredFile

    data = inputs.params.data
    folder = inputs.study.folder
    masks = {}
    columns = (images[name] for name in ("file", "class_index", "mask", "mask_sha256"))
    for file, class_index, mask, digest in zip(*columns, strict=True):
        stored = StoredFile(folder / data.masks / mask, digest)
        masks[folder / data.images / file] = SceneMask(stored, data.mask_format, inputs.classes.keys[class_index], None)
    return SceneImage(masks, photographs_for(inputs.study, [scenario]))


def photographs_for(study: TrainingStudy, scenarios: Sequence[str]) -> "tuple[StoredFile, ...]":
    """The photographs of the robustness study, if random_background is among the scenarios; else none."""
    from cleanset.studies.robustness.scenarios.photographs import photograph_files

    if RANDOM not in scenarios:
        return ()
    # that study has compared them with the edition's images, so none is decoded here for its digest
    images: dict[str, Image.Image] = {}
    return photograph_files(study.robustness.backgrounds, images.__getitem__, {}, {})


def generated_file(folder: Path, file: str) -> Path:
    """The image with a generated background in a folder, named as a training image, with any suffix of images.

    Raises CleansetError if it is missing.
    """
    for suffix in IMAGE_SUFFIXES:
        path = folder / Path(file).with_suffix(suffix)
        if path.is_file():
            return path
    raise CleansetError(
        f"{folder / Path(file).with_suffix(IMAGE_SUFFIXES[-1])}: missing; expected an image with a generated "
        f"background for each image that is used: make it, or leave {GENERATED} out"
    )
