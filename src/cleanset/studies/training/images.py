"""The training images: their table, and their pixels as they are or in a scenario."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from cleanset.dataset.ilsvrc import class_indices, wnids
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.images.codec import decode
from cleanset.images.preprocessing import Resized, base_image
from cleanset.sets.folder import read_regular_file
from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.changed_images import FORMATS, StudyFile, base_pixels
from cleanset.studies.robustness.scenarios.params import GENERATED, RANDOM
from cleanset.studies.training.params import ORIGINAL, Data
from cleanset.studies.training.study import TrainingStudy
from cleanset.tables import CLASS, FILE, NAME, SHA256, Table, nullable

# OpenCV and SciPy are loaded for scenarios only
if TYPE_CHECKING:
    from cleanset.studies.robustness.scenarios.scenes import SceneImage, SceneMask, StoredFile

SUFFIXES = (".jpg", ".jpeg", ".png")
TRAINING_IMAGES = Table(
    key=("file",),
    file=FILE,  # relative to the folder of images
    class_index=CLASS,
    sha256=SHA256,  # of the bytes
    pixels_sha256=SHA256,
    mask=nullable(FILE),  # relative to the folder of masks
    mask_sha256=nullable(SHA256),
    left_out=nullable(NAME),  # why it is in no scenario, as in the study of robustness; null: it is
)


def find_images(folder: Path, classes: Iterable[str] | None = None) -> list[tuple[str, str]]:
    """File and wnid of every image, sorted; `classes` are the wnids that are wanted, None: all.

    Raises CleansetError for a missing folder, one that is not named by a wnid, and a class without images.
    """
    if not folder.is_dir():
        raise CleansetError(f"{folder}: missing; expected a folder of training images for each class (data.images)")
    wanted = None if classes is None else set(classes)
    found: list[tuple[str, str]] = []
    for each in sorted(path for path in folder.iterdir() if path.is_dir()):
        if each.name not in class_indices():
            raise CleansetError(f"{each}: expected folders named by the wnids of ILSVRC2012: rename or remove it")
        if wanted is None or each.name in wanted:
            files = sorted(path for path in each.rglob("*") if path.suffix.lower() in SUFFIXES)
            found += [(path.relative_to(folder).as_posix(), each.name) for path in files]
    present = {wnid for _, wnid in found}
    for wnid in sorted(wanted - present) if wanted else []:
        raise CleansetError(f"{folder / wnid}: no images; expected JPEG or PNG files")
    if not found:
        raise CleansetError(f"{folder}: no images; expected JPEG or PNG files in a folder for each wnid")
    return found


def read_image(path: Path, digest: str | None = None) -> Image.Image:
    """The decoded image. Raises CleansetError for another SHA-256 than `digest`, and one that cannot be read."""
    data = read_regular_file(path)
    if digest is not None and sha256(data) != digest:
        raise CleansetError(f"{path}: changed since stage data; expected SHA-256 {digest}: run dvc repro")
    try:
        return decode(data, FORMATS)
    except ValueError as error:
        raise CleansetError(f"{path}: cannot be read ({error}); expected a whole JPEG or PNG: remove it") from None


@dataclass(frozen=True, eq=False)
class TrainingPixels:
    """The pixels of training images in one scenario; a callable that can be pickled, for worker processes.

    All are the base images of the study of robustness, 224 x 224, resized to `size`: so an image as it is differs from
    one in a scenario by the scenario alone. `whole` leaves an image as it is uncropped. `files` and `digests` have a
    value for each image. `generated`: the folder of images with generated backgrounds.
    """

    folder: Path
    files: Sequence[str]
    digests: Sequence[str]
    size: int
    scenario: str = ORIGINAL
    scenes: "SceneImage | None" = None
    seed: int = 0
    whole: bool = False
    generated: Path | None = None

    def __len__(self) -> int:
        return len(self.files)

    def image(self, place: int) -> Image.Image:
        """The image before it is resized. Raises CleansetError for a file that has changed."""
        path = self.folder / self.files[place]
        if self.scenario == ORIGINAL and self.whole:
            return read_image(path, self.digests[place])
        file = StudyFile(path, self.digests[place], self.files[place])
        if self.scenario == ORIGINAL:
            return Image.fromarray(base_pixels(file))
        assert self.scenes is not None
        if self.scenario == GENERATED:
            return Image.fromarray(self._generated(file, self.scenes.masks[path]))
        return Image.fromarray(self.scenes(file, self.scenario, 0, image_seed(self.seed, file.image_id)))

    def _generated(self, file: StudyFile, mask: "SceneMask") -> NDArray[np.uint8]:
        """The object of the base image on a generated image, of which the base image is taken, too."""
        from cleanset.studies.robustness.scenarios.changes import object_put_back
        from cleanset.studies.robustness.scenarios.scenes import regions_of_mask

        assert self.generated is not None
        generated = base_image(read_image(generated_file(self.generated, file.image_id)))
        return object_put_back(base_pixels(file), regions_of_mask(mask), generated)

    def __call__(self, place: int) -> NDArray[np.uint8]:
        """The pixels of an image, uint8 of shape (3, size, size), red first."""
        return Resized(self.size)(self.image(place))


def pixels_of(
    study: TrainingStudy, data: Data, images: pd.DataFrame, size: int, scenario: str, seed: int, *, whole: bool = False
) -> TrainingPixels:
    """The pixels of rows of TRAINING_IMAGES in a scenario, all of which must be in it (see `in_scenario`)."""
    folder = study.folder / data.images
    scenes = None if scenario == ORIGINAL else _scenes(study, data, images, scenario)
    columns = images["file"].tolist(), images["sha256"].tolist()
    return TrainingPixels(folder, *columns, size, scenario, scenes, seed, whole, study.folder / data.generated)


def in_scenario(images: pd.DataFrame, scenario: str) -> pd.DataFrame:
    """The rows of TRAINING_IMAGES that a scenario has; of the originals all.

    Raises CleansetError where there is none.
    """
    found = images if scenario == ORIGINAL else images[images["mask"].notna() & images["left_out"].isna()]
    if found.empty:
        raise CleansetError(
            f"{scenario}: no training image has a mask that shows an object; expected some in data.masks"
        )
    return found.reset_index(drop=True)


def _scenes(study: TrainingStudy, data: Data, images: pd.DataFrame, scenario: str) -> "SceneImage":
    from cleanset.studies.robustness.scenarios.scenes import SceneImage, SceneMask, StoredFile

    folder, names, masks = study.folder / data.images, wnids(), {}
    columns = (images[name] for name in ("file", "class_index", "mask", "mask_sha256"))
    for file, class_index, mask, digest in zip(*columns, strict=True):
        stored = StoredFile(study.folder / data.masks / mask, digest)
        masks[folder / file] = SceneMask(stored, data.mask_format, names[class_index], None)
    return SceneImage(masks, photographs_for(study, [scenario]))


def photographs_for(study: TrainingStudy, scenarios: Sequence[str]) -> "tuple[StoredFile, ...]":
    """The photographs of the robustness study, where random_background is among the scenarios."""
    from cleanset.studies.robustness.scenarios.scenes import photograph_files

    def decoded(file: str) -> Image.Image:
        raise KeyError(file)

    # that study has compared them with the edition's images, so none is decoded here for its digest
    return photograph_files(study.robustness.backgrounds, decoded, {}, {}) if RANDOM in scenarios else ()


def generated_file(folder: Path, file: str) -> Path:
    """The image with a generated background in a folder, named as a training image, of any suffix.

    Raises CleansetError if there is none.
    """
    for suffix in SUFFIXES:
        path = folder / Path(file).with_suffix(suffix)
        if path.is_file():
            return path
    raise CleansetError(
        f"{folder / Path(file).with_suffix(SUFFIXES[-1])}: missing; expected an image with a generated background for "
        f"each image that is used: make it, or leave {GENERATED} out"
    )
