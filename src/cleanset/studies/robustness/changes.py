"""The changes of each family, as callables that worker processes can be sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.exports.folder import read_regular_file
from cleanset.files import sha256
from cleanset.images.boxes import Box
from cleanset.images.codec import decode
from cleanset.studies.robustness.changed_images import StudyFile, base_pixels, wide_pixels
from cleanset.studies.robustness.corruptions import corrupted
from cleanset.studies.robustness.image_masks import read_base_regions
from cleanset.studies.robustness.masks import Regions
from cleanset.studies.robustness.perturbations import Frames, frames_of
from cleanset.studies.robustness.scenarios import PLACING, Definition, Placing, scenario_image

Pixels = NDArray[np.uint8]


def corrupted_image(file: StudyFile, change: str, step: int, seed: int) -> Pixels:
    """The base image with a corruption; `step` is its severity."""
    (pixels,) = corrupted(base_pixels(file), change, [step], seed)
    return pixels


@dataclass(frozen=True, slots=True)
class PerturbedImage:
    """The frames of perturbations; `levels`: the level of each."""

    levels: Mapping[str, int]

    def __call__(self, file: StudyFile, change: str, step: int, seed: int) -> Pixels:
        """A frame; `step` is its number, from 0."""
        return _frames(file, change, self.levels[change], seed)(step)


@lru_cache(maxsize=1)  # the frames of a sequence follow each other
def _frames(file: StudyFile, change: str, level: int, seed: int) -> Frames:
    return frames_of(wide_pixels(file), change, seed, level=level)


class StoredFile(NamedTuple):
    """A file that is there when the study begins, and its SHA-256."""

    path: Path
    sha256: str

    def read(self) -> bytes:
        """Its bytes. Raises CleansetError if they have changed."""
        data = read_regular_file(self.path)
        if sha256(data) != self.sha256:
            raise CleansetError(f"{self.path}: changed while it was used; expected the same bytes: run again")
        return data


class SceneMask(NamedTuple):
    """The mask of an image: its file and format, and the class and crop of the image."""

    file: StoredFile
    format: str
    wnid: str
    crop: Box | None


@dataclass(frozen=True, slots=True)
class SceneImage:
    """The scenarios; `masks` and `generated` by the image's path, `photographs` in the order that they are drawn in."""

    masks: Mapping[Path, SceneMask]
    photographs: tuple[StoredFile, ...] = ()
    generated: Mapping[Path, StoredFile] | None = None
    definition: Definition = "as_written"
    matte: str = "black"
    placing: Placing = PLACING

    def __call__(self, file: StudyFile, change: str, step: int, seed: int) -> Pixels:
        """The base image in a scenario, which has no steps. Raises CleansetError as `scenario_image` does."""
        generated = (self.generated or {}).get(file.path)
        return scenario_image(
            base_pixels(file),
            regions_of_mask(self.masks[file.path]),
            change,
            seed,
            definition=self.definition,
            matte=self.matte,
            photographs=_photographs(self.photographs) if change == "random_background" else (),
            placing=self.placing,
            generated=decoded(generated) if generated and change == "generated_background" else None,
        )


@lru_cache(maxsize=1)
def regions_of_mask(mask: SceneMask) -> Regions:
    """The regions of a base image. Raises CleansetError as `read_base_regions` does."""
    return read_base_regions(mask.file.read(), mask.format, mask.wnid, mask.crop, str(mask.file.path))


@lru_cache(maxsize=1)
def _photographs(files: tuple[StoredFile, ...]) -> tuple[Pixels, ...]:
    return tuple(decoded(file) for file in files)


def decoded(file: StoredFile) -> Pixels:
    """The pixels of a photograph, uint8 of shape (height, width, 3). Raises CleansetError for no JPEG or PNG."""
    try:
        return np.asarray(decode(file.read(), ("JPEG", "PNG")).convert("RGB"))
    except ValueError as error:
        raise CleansetError(f"{file.path}: cannot be read ({error}); expected a whole JPEG or PNG: remove it") from None
