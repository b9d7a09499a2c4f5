"""The files that scenarios put objects on: photographs, and images with generated backgrounds."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from cleanset.dataset.folder import files_below
from cleanset.errors import CleansetError
from cleanset.image_ids import IMAGE_SUFFIXES
from cleanset.images.codec import decode_file, pixels_sha256
from cleanset.images.preprocessing import BASE_SIZE, Pixels
from cleanset.plumbing.files import is_there, sha256
from cleanset.sets.folder import read_regular_file


def check_photographs(photographs: Mapping[str, Pixels], width: int, height: int, images: Mapping[str, str]) -> None:
    """Raise CleansetError without photographs, or for one smaller than the frame or among the edition's images.

    `images` are the image ids of the edition by the SHA-256 of their pixels (`images.codec.pixels_sha256`).
    """
    if not photographs:
        raise CleansetError("random_background: no photographs; expected at least one: put some into the folder")
    for name, pixels in sorted(photographs.items()):
        if pixels.shape[0] < height or pixels.shape[1] < width:
            raise CleansetError(
                f"{name}: background of {pixels.shape[1]} x {pixels.shape[0]} pixels; "
                f"expected at least {width} x {height}: remove it"
            )
        image_id = images.get(sha256(pixels.tobytes())) if images else None
        if image_id is not None:
            raise CleansetError(
                f"{name}: background is image {image_id} of the edition: remove it, and add another photograph"
            )


def photograph_paths(folder: Path) -> list[Path]:
    """The photographs in a folder and the folders in it, also those that links lead to, sorted by path.

    Hidden files are left out. Nothing is decoded, so that a wrong folder shows at once. Raises CleansetError for a
    folder that is missing or has no photographs, for a link back to a folder above, and for a broken link.
    """
    if not folder.is_dir():
        found = "a file" if folder.exists() else "a link that leads nowhere" if folder.is_symlink() else "missing"
        raise CleansetError(f"{folder}: {found}; expected a folder of photographs for random_background")
    files = (folder / name for name in files_below(folder, ".", 1) if name.lower().endswith(IMAGE_SUFFIXES))
    paths = sorted(path for path in files if is_there(path))
    if not paths:
        raise CleansetError(f"{folder}: no photographs; expected at least one JPEG or PNG for random_background")
    return paths


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


def decode_photograph(file: StoredFile) -> Pixels:
    """The pixels of a photograph, uint8 of shape (height, width, 3). Raises CleansetError for no JPEG or PNG."""
    return np.asarray(decode_file(file.read(), file.path, "a whole JPEG or PNG: remove it").convert("RGB"))


def photograph_files(
    folder: Path, read: Callable[[str], Image.Image], images: Mapping[str, str], indexed: Mapping[str, str]
) -> tuple[StoredFile, ...]:
    """The photographs in a folder and the folders in it, sorted by path.

    `images` are the image ids of the study by file, which `read` decodes, `indexed` the edition's image ids by
    the SHA-256 of their pixels. Raises CleansetError as `photograph_paths`, for one that cannot be read or is
    smaller than a base image, and for one with the pixels of one of these images.
    """
    found = tuple(map(_stored, photograph_paths(folder)))
    known = {**indexed, **{pixels_sha256(read(file)): image_id for file, image_id in images.items()}}
    check_photographs({str(each.path): decode_photograph(each) for each in found}, BASE_SIZE, BASE_SIZE, known)
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
        height, width = decode_photograph(found[image_id]).shape[:2]
        if (width, height) != (BASE_SIZE, BASE_SIZE):
            raise CleansetError(f"{path}: {width} x {height} pixels; expected {BASE_SIZE} x {BASE_SIZE}")
    return found


def _stored(path: Path) -> StoredFile:
    return StoredFile(path, sha256(read_regular_file(path)))
