"""The photographs that objects are placed on, and finished images with generated backgrounds."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from PIL import Image

from cleanset.errors import CleansetError
from cleanset.exports.folder import read_regular_file
from cleanset.files import sha256
from cleanset.images.base import BASE_SIZE
from cleanset.images.codec import pixels_sha256
from cleanset.studies.robustness.changes import StoredFile, decoded
from cleanset.studies.robustness.scenarios import check_photographs

PHOTOGRAPH_SUFFIXES = (".jpg", ".jpeg", ".png")


def photograph_files(
    folder: Path, read: Callable[[str], Image.Image], images: Mapping[str, str], indexed: Mapping[str, str]
) -> tuple[StoredFile, ...]:
    """The photographs in a folder and the folders in it, sorted by path.

    `images` are the image ids of the study by file, which `read` decodes, `indexed` those of the edition by the SHA-256
    of their pixels. Raises CleansetError for no photographs, one that cannot be read or is smaller than a base image,
    and one with the pixels of one of these images.
    """
    found = tuple(_stored(path) for path in _named(folder, PHOTOGRAPH_SUFFIXES))
    if not found:
        raise CleansetError(f"{folder}: no photographs; expected at least one JPEG or PNG for random_background")
    known = {**indexed, **{pixels_sha256(read(file)): image_id for file, image_id in images.items()}}
    check_photographs({str(each.path): decoded(each) for each in found}, BASE_SIZE, BASE_SIZE, known)
    return found


def generated_files(folder: Path, image_ids: Iterable[str]) -> dict[str, StoredFile]:
    """The generated images, PNG of 224 x 224 pixels, by image id.

    Raises CleansetError for one that is missing or of another size.
    """
    found = {}
    for image_id in image_ids:
        path = folder / f"{image_id}.png"
        if not path.is_file():
            raise CleansetError(
                f"{path}: missing; expected an image with a generated background for each image with a mask: "
                "run cleanset robustness generate, or take generated_background out of scenarios.names"
            )
        found[image_id] = _stored(path)
        height, width = decoded(found[image_id]).shape[:2]
        if (width, height) != (BASE_SIZE, BASE_SIZE):
            raise CleansetError(f"{path}: {width} x {height} pixels; expected {BASE_SIZE} x {BASE_SIZE}")
    return found


def _named(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in suffixes)


def _stored(path: Path) -> StoredFile:
    return StoredFile(path, sha256(read_regular_file(path)))
