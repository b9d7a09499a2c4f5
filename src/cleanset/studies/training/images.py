"""The training images on disk: their table, their search in folders or a table of labels, and their checked bytes."""

from pathlib import Path

from PIL import Image

from cleanset.classes import ClassTable
from cleanset.dataset.archives import visible_entries
from cleanset.dataset.folder import files_below, read_images
from cleanset.errors import CleansetError
from cleanset.image_ids import IMAGE_SUFFIXES
from cleanset.images.codec import decode_file
from cleanset.plumbing.files import sha256
from cleanset.plumbing.validation import shown
from cleanset.sets.folder import read_regular_file
from cleanset.tables import CLASS, FILE, NAME, SHA256, Table, nullable

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


def find_images(folder: Path, labels: Path | None, classes: ClassTable) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """File and class key of every image, sorted, and the group of each file, if the table `labels` has groups.

    Raises CleansetError for a missing folder, a class that is not one of `classes`, and no images.
    """
    if not folder.is_dir():
        raise CleansetError(f"{folder}: missing; expected a folder of training images for each class (data.images)")
    if labels is None and classes.is_imagenet:
        return _in_folders_of_wnids(folder, classes), {}
    # the edition knows its classes, and another one is refused below
    listed = read_images(folder, labels, None, classes_are_folders=True)
    if unknown := sorted(set(listed.classes.keys) - set(classes.keys)):
        raise CleansetError(
            f"{labels or folder}: class {shown(unknown[0])}, which the edition does not have; expected one of its "
            "classes: rename or remove it, or add images of it to the edition"
        )
    return [(file, listed.classes.keys[index]) for file, index in listed.class_of.items()], dict(listed.group_of)


def _in_folders_of_wnids(folder: Path, classes: ClassTable) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for each in (Path(entry.path) for entry in visible_entries(folder) if entry.is_dir()):
        if each.name not in classes.indices:
            raise CleansetError(f"{each}: expected folders named by the wnids of ILSVRC2012: rename or remove it")
        found += [
            (file, each.name) for file in files_below(each, each.name, 1) if file.lower().endswith(IMAGE_SUFFIXES)
        ]
    if not found:
        raise CleansetError(f"{folder}: no images; expected JPEG or PNG files in a folder for each wnid")
    return found


def read_unchanged(path: Path, digest: str) -> bytes:
    """The bytes of a file. Raises CleansetError for another SHA-256 than `digest`, which stage data found."""
    data = read_regular_file(path)
    if sha256(data) != digest:
        raise CleansetError(f"{path}: changed since stage data; expected SHA-256 {digest}: run dvc repro")
    return data


def decoded(data: bytes, path: Path) -> Image.Image:
    """The image in the bytes of a file. Raises CleansetError for bytes that cannot be read."""
    return decode_file(data, path, "a whole JPEG or PNG: remove it")
