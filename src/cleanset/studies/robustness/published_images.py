"""Published images read from a folder instead of made: ImageNet-C, ImageNet-P, XIMAGENET-12, or any in their layout.

A file belongs to an image of the same name, its suffix aside, in the folder of the same class. One with the id of a
validation image of ILSVRC2012 in its name may be in any folder, or in none. It is shown to models unchanged, without a
further JPEG step.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.evaluation.sets import ImageFile
from cleanset.image_ids import IMAGE_SUFFIXES, VALIDATION_IMAGES, image_id_in
from cleanset.images.codec import decode, unreadable_image
from cleanset.images.preprocessing import BASE_SIZE, Pixels, base_image
from cleanset.plumbing.files import FileState, file_state
from cleanset.plumbing.progress import print_notice, tracked
from cleanset.sets.folder import read_regular_file
from cleanset.studies.robustness.family import Family

VIDEOS = (".mp4",)
"""Suffixes of published videos, in lower case."""

# this module reports what cannot be read; -8 is FFmpeg's AV_LOG_QUIET, which OpenCV reads when it first opens a video
os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")


Places = Mapping[tuple[str, int], str]
"""The folder inside the published one, by change and step; all frames of a video have one."""


@dataclass(frozen=True, slots=True)
class PublishedFiles:
    """The published file of each image."""

    folder: Path
    """The folder of all places."""
    of_place: Mapping[str, Mapping[Path, str]]
    """By place, then by the image's path, the file's path inside the place."""
    counts: Mapping[str, int]
    """The number of files in each place, those of other images included."""

    def path(self, place: str, image: Path) -> Path:
        """The path of an image's file."""
        return self.folder / place / self.of_place[place][image]

    def settings(self) -> dict[str, str]:
        """The entry of the record: a digest of all files, of each the path inside the folder, and its bytes."""
        found = sha256()
        total = sum(map(len, self.of_place.values()))
        files = ((place, name) for place, names in sorted(self.of_place.items()) for name in sorted(names.values()))
        for place, name in tracked(files, total, f"reading {self.folder.name}"):
            data = read_regular_file(self.folder / place / name)
            found.update(f"{place}/{name} {sha256(data).hexdigest()}\n".encode())
        return {"published_sha256": found.hexdigest()}

    def has_all_images(self) -> bool:
        """Whether every place holds all validation images, and all of them are measured."""
        return {*self.counts.values(), *map(len, self.of_place.values())} == {VALIDATION_IMAGES}


def find_published(
    folder: Path,
    family: Family,
    places: Sequence[str],
    images: Sequence[ImageFile],
    suffixes: tuple[str, ...] = IMAGE_SUFFIXES,
) -> PublishedFiles:
    """The published files of images, in each of the places.

    Raises CleansetError for a place or a file of an image that is missing or there twice.
    """
    layout = family.layout
    key = f"{family.name}.published"
    of_place = {}
    counts = {}
    if not folder.is_dir():
        raise CleansetError(f"{folder}: no folder; expected a folder with {layout}: correct {key} in params.yaml")
    first: dict[Path, str] = {}
    for place in places:
        if not (folder / place).is_dir():
            raise CleansetError(
                f"{folder / place}: missing; expected {layout} for all that {family.name} names in params.yaml: "
                f"add it, or correct {key}"
            )
        names = _files_in(folder / place, suffixes)
        counts[place] = sum(map(len, names.values()))
        found = {image.path: _file_of(image, names, folder / place, layout) for image in images}
        # places usually have the same names: kept once, and sent to worker processes once
        of_place[place] = first = first if found == first else found
    surplus = sum(counts.values()) - sum(map(len, of_place.values()))
    if surplus:
        print_notice(
            f"{key}: {surplus:,} of {sum(counts.values()):,} files in {folder} are of no image that is measured: "
            "they are not read"
        )
    return PublishedFiles(folder, of_place, counts)


def _files_in(place: Path, suffixes: tuple[str, ...]) -> dict[str, list[str]]:
    """The files in a place and in its folders by the image id in their name, or by their stem."""
    found: dict[str, list[str]] = {}
    for folder in (place, *sorted(path for path in place.iterdir() if path.is_dir())):
        for path in sorted(folder.iterdir()):
            if path.suffix.lower() in suffixes:
                found.setdefault(_key(path), []).append(path.relative_to(place).as_posix())
    return found


def _key(path: Path) -> str:
    return image_id_in(path.stem) or path.stem


def _file_of(image: ImageFile, names: Mapping[str, Sequence[str]], place: Path, layout: str) -> str:
    """The file of an image among those of a place. Raises CleansetError unless there is one."""
    stem = image.path.stem
    wnid = image.path.parent.name
    found = names.get(_key(image.path), [])
    own = [name for name in found if name.startswith(f"{wnid}/")]
    if not own and image_id_in(stem):
        own = list(found)
    if len(own) == 1:
        return own[0]
    problem = f"{' and '.join(own)} are one image twice" if own else f"no image {wnid}/{stem}"
    raise CleansetError(f"{place}: {problem}; expected every measured image exactly once, as {layout}")


@dataclass(frozen=True, slots=True)
class PublishedImages:
    """Published images as a change: a callable that can be pickled."""

    files: PublishedFiles
    """The files of the images."""
    places: Places
    """The place of each change and step."""
    behind: tuple[int, int, int] = (0, 0, 0)
    """The colour, red first, that a transparent image is seen over."""
    any_size: bool = False
    """Whether an image of another size than 224 x 224 is resized and cropped as base images are, else refused."""

    def __call__(self, file: ImageFile, change: str, step: int, _seed: int) -> Pixels:
        """The published image, uint8 of shape (224, 224, 3).

        Raises CleansetError for one that cannot be read or is of another size.
        """
        path = self.files.path(self.places[change, step], file.path)
        try:
            image = decode(read_regular_file(path))
            if image.size == (BASE_SIZE, BASE_SIZE):
                return np.array(self._opaque(image))
            if self.any_size:
                return base_image(self._opaque(image))
        except (OSError, ValueError) as error:
            raise unreadable_image(path, error) from None
        raise CleansetError(_other_size(path, *image.size))

    def _opaque(self, image: Image.Image) -> Image.Image:
        if not image.has_transparency_data:
            return image.convert("RGB")
        behind = Image.new("RGBA", image.size, (*self.behind, 255))
        return Image.alpha_composite(behind, image.convert("RGBA")).convert("RGB")


@dataclass(frozen=True, slots=True)
class PublishedFrames:
    """The frames of published videos as a change: a callable that can be pickled."""

    files: PublishedFiles
    """The files of the videos."""
    places: Places
    """The place of each change and frame."""
    counts: Mapping[str, int]
    """The number of frames, by change."""

    def __call__(self, file: ImageFile, change: str, step: int, _seed: int) -> Pixels:
        """A frame, uint8 of shape (224, 224, 3); `step` is its number, from 0. Raises CleansetError as `video` does."""
        path = self.files.path(self.places[change, step], file.path)
        try:
            found = file_state(path.stat())
        except OSError:
            raise CleansetError(f"{path}: {EXPECTED_VIDEO}") from None
        return _kept_video(path, self.counts[change], found)[step]


EXPECTED_VIDEO = "cannot be read; expected a whole MP4 video"


# the frames of a video follow each other
@lru_cache(maxsize=1)
def _kept_video(path: Path, count: int, _state: FileState) -> list[Pixels]:
    """The frames of a video; another file under its path has another state."""
    return video(path, count)


def video(path: Path, count: int) -> list[Pixels]:
    """All frames of a video, red first.

    Raises CleansetError for a video that cannot be read, or has another number of frames or another size than
    224 x 224.
    """
    frames: list[Pixels] = []
    # OpenCV's own messages; FFmpeg's are silenced above
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    capture = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
    try:
        # one more than expected shows that there are more
        while len(frames) <= count:
            is_read, frame = capture.read()
            if not is_read:
                break
            frames.append(np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), np.uint8))
    finally:
        capture.release()
    if not frames:
        raise CleansetError(f"{path}: {EXPECTED_VIDEO}")
    if len(frames) != count:
        found = f"more than {count}" if len(frames) > count else f"{len(frames)}"
        raise CleansetError(f"{path}: {found} frames; expected {count}: fetch it again")
    height, width = frames[0].shape[:2]
    if (width, height) != (BASE_SIZE, BASE_SIZE):
        raise CleansetError(_other_size(path, width, height))
    return frames


def _other_size(path: Path, width: int, height: int) -> str:
    return f"{path}: {width} x {height} pixels; expected {BASE_SIZE} x {BASE_SIZE}, as the benchmark has them"
