"""A changed image by its name: a function of image, change, severity or frame, and seed alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.images.codec import decode
from cleanset.images.preprocessing import base_image, through_jpeg, wide_image
from cleanset.sets.folder import read_regular_file
from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.results import UNCHANGED


class ChangeName(NamedTuple):
    """A changed image: the file that it is made of, the change, and its step, a severity or a frame; 0 for neither.

    Its text is the image's id where the engine that runs models takes one: in shards, and in what workers are sent.
    """

    file: str
    change: str
    step: int

    def __str__(self) -> str:
        # two digits, so that frames sorted by name are in order
        return f"{self.file} {self.change} {self.step:02d}"

    @classmethod
    def parsed(cls, text: str) -> Self:
        """The inverse of `str`."""
        # from the right: only the name of a file may contain spaces
        file, change, step = text.rsplit(" ", 2)
        return cls(file, change, int(step))


class StudyFile(NamedTuple):
    """A file of a finished set, and the id of the image in it."""

    path: Path
    sha256: str
    image_id: str


Change = Callable[[StudyFile, str, int, int], NDArray[np.uint8]]
"""Function from file, change, step and the image's seed to pixels, uint8 of shape (224, 224, 3)."""


@dataclass(frozen=True, slots=True)
class SetImages:
    """The images as exported, by file; a callable that can be pickled, for worker processes."""

    files: Mapping[str, StudyFile]

    def __call__(self, file: str) -> Image.Image:
        """The decoded image. Raises CleansetError if its bytes are not those of the manifest."""
        return _decoded(self.files[file])


@dataclass(frozen=True, slots=True)
class ChangedImages:
    """Changed images of 224 x 224 pixels, by the text of a ChangeName; a callable that can be pickled.

    `jpeg`: the quality at which each is stored and read again; None leaves that out, as `is_published` does for all
    but the unchanged ones. `seed`: that of the study.
    """

    files: Mapping[str, StudyFile]
    change: Change
    jpeg: int | None
    seed: int
    is_published: bool = False

    def __call__(self, name: str) -> Image.Image:
        """The changed image. Raises CleansetError if the file's bytes are not those of the manifest."""
        file, change, step = ChangeName.parsed(name)
        source = self.files[file]
        if change == UNCHANGED:
            return Image.fromarray(through_jpeg(base_pixels(source), self.jpeg))
        pixels = self.change(source, change, step, image_seed(self.seed, source.image_id))
        return Image.fromarray(pixels if self.is_published else through_jpeg(pixels, self.jpeg))


# the changes of an image follow each other
@lru_cache(maxsize=4)
def base_pixels(file: StudyFile) -> NDArray[np.uint8]:
    """The base image of a file, read-only. Raises CleansetError if its bytes are not those of the manifest."""
    return _read_only(base_image(_decoded(file)))


@lru_cache(maxsize=4)
def wide_pixels(file: StudyFile) -> NDArray[np.uint8]:
    """The image before the base image is cut out of it, read-only; errors as `base_pixels`."""
    return _read_only(wide_image(_decoded(file)))


def _read_only(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    pixels.setflags(write=False)
    return pixels


def _decoded(file: StudyFile) -> Image.Image:
    data = read_regular_file(file.path)
    if (found := sha256(data)) != file.sha256:
        raise CleansetError(
            f"{file.path}: SHA-256 {found}, expected {file.sha256} as in the manifest; see cleanset verify"
        )
    try:
        return decode(data)
    except ValueError as error:
        raise CleansetError(f"{file.path}: cannot be read ({error}); expected a whole JPEG or PNG") from None
