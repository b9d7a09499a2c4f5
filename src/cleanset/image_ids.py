"""Image ids, and the only reader of the forms in which files, folders and lists name an image.

ImageNet's validation images have numbers from 1 to 50,000 and ids like ILSVRC2012_val_00000001. Studies write the id
alone, with a suffix (JPEG, PNG), in a folder (val/…, n01440764/…), with the wnid after it (the copy on Hugging Face),
or the number alone (SCOOTER: 00047683). The id of one of your own images is its path in the folder of all images, with
its suffix: melanoma/ISIC_0001.jpg.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from cleanset.classes import WNID, ClassTable, context_classes
from cleanset.errors import CleansetError, InputError
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.validation import hidden_character, join_names, shown

IMAGE_PREFIX = "ILSVRC2012_val_"
VALIDATION_IMAGES = 50_000
"""Number of images in ILSVRC2012's validation set."""

ID_PATTERN = rf"{IMAGE_PREFIX}[0-9]{{8}}"
"""The form of an image id of ImageNet's validation set, for columns that are checked in bulk."""

IMAGE_SUFFIXES = (".jpeg", ".jpg", ".png")
CROPPED = ".crop.png"
"""Suffix that a cropped image has in a finished set, after the name of the whole image."""

MAX_ID_BYTES = 200
_FORMS = re.compile(
    rf"(?:(?P<folder>(?:.*/)?)(?P<id>{ID_PATTERN})(?:_(?P<wnid>{WNID.pattern}))?|(?P<number>[0-9]{{1,8}}))"
    r"(?P<suffix>\.(?:JPEG|jpeg|JPG|jpg|PNG|png))?"
)
_WITHIN = re.compile(rf"{ID_PATTERN}(?![0-9])")


def image_id(number: int) -> str:
    """The image id of an image's number; numbers start at 1."""
    return f"{IMAGE_PREFIX}{number:08d}"


def image_number(image_id: str) -> int:
    """The number in an image id."""
    return int(image_id.rsplit("_", 1)[1])


def _of_number(number: int) -> str | None:
    return image_id(number) if 1 <= number <= VALIDATION_IMAGES else None


def parse_image_name(name: str) -> tuple[str, str | None] | None:
    """Image id and wnid (None if the name lacks it) of a validation image's file, or None for any other name.

    "ILSVRC2012_val_00000001.JPEG" is the official form, "ILSVRC2012_val_00000001_n01751748.JPEG"
    the form in the copy on Hugging Face; some copies end in .jpg or .jpeg.
    """
    match = _FORMS.fullmatch(name)
    if match is None or match["id"] is None or match["folder"] or match["suffix"] in (None, ".PNG", ".png"):
        return None
    found = _of_number(image_number(match["id"]))
    return None if found is None else (found, match["wnid"])


def parse_image_id(text: str, classes: ClassTable) -> str | None:
    """The id of the image that a list names, in any of the forms above; None for a text that names no image."""
    if not classes.is_imagenet:
        return text if _oddity(text) is None and _has_suffix(text) else None
    match = _FORMS.fullmatch(text)
    return None if match is None else _of_number(int(match["number"] or image_number(match["id"])))


def image_id_in(name: str) -> str | None:
    """The id of a validation image in the name of a file made from it, the last if there are several; None without."""
    found = _WITHIN.findall(name)
    return _of_number(image_number(found[-1])) if found else None


def is_image_id(text: str, classes: ClassTable) -> bool:
    """Whether a text is an image id in the one form that tables and reviews have."""
    return parse_image_id(text, classes) == text


def short_id(image_id: str) -> str:
    """An image id without what those of ImageNet have in common."""
    return image_id.removeprefix(IMAGE_PREFIX)


def example_id(classes: ClassTable) -> str:
    """An image id as messages show it."""
    return image_id(1) if classes.is_imagenet else "robin/0001.jpg"


def expected_id(classes: ClassTable) -> str:
    """The end of a message about a text that names no image."""
    numbers = f", 1 to {VALIDATION_IMAGES:,}" if classes.is_imagenet else ""
    return f"expected an image id such as {example_id(classes)}{numbers}"


def listed_id(text: str, classes: ClassTable, where: str, remedy: str = "") -> str:
    """The id of the image that a list names. Raises CleansetError, from `where` to `remedy`, for no image."""
    found = parse_image_id(text, classes)
    if found is None:
        raise CleansetError(f"{where}: {shown(text)}; {expected_id(classes)}{remedy and ': ' + remedy}")
    return found


def listed_ids(
    texts: Iterable[tuple[str, str]], classes: ClassTable, known: Collection[str] | None = None, place: str = ""
) -> dict[str, str]:
    """The images that a list names, in its order, with the place of each, from the place and text of each row.

    Raises CleansetError for a text that names no image, an image that is not among the `known` ones, which are of
    `place`, and an image that is listed twice.
    """
    found = dict[str, str]()
    for where, text in texts:
        name = listed_id(text, classes, where)
        if known is not None and name not in known:
            raise CleansetError(f"{where}: {shown(text)}; expected one of the {len(known):,} images of {place}")
        if name in found:
            raise CleansetError(
                f"{where}: {name} a second time, after {found[name].rpartition(', ')[2]}; expected each image once"
            )
        found[name] = where
    return found


def check_matched(matched: int, total: int, what: str, expected: str) -> None:
    """Print how many of the listed images were found, "12 of 500 images are in FILE", unless all were.

    `what`: the words after the numbers. Raises InputError, with what was `expected`, if none was.
    """
    if total and not matched:
        raise InputError(f"0 of {total:,} {what}; expected {expected}")
    if matched < total:
        print_notice(f"{matched:,} of {total:,} {what}")


def _listed(text: str, info: ValidationInfo) -> str:
    classes = context_classes(info)
    found = parse_image_id(text, classes)
    if found is None:
        raise ValueError(expected_id(classes))
    return found


def _written(text: str, info: ValidationInfo) -> str:
    if not is_image_id(text, context_classes(info)):
        raise ValueError(expected_id(context_classes(info)))
    return text


ListedId = Annotated[str, AfterValidator(_listed)]
"""A cell that names an image in any form; the class table, which separates ImageNet's from your own, is the context."""

ImageId = Annotated[str, AfterValidator(_written)]
"""A cell with an image id as cleanset writes it; the class table is the validation context."""


class ImageNames:
    """Finds the image that a file was made from, such as a mask or an attacked image, by the name of the file.

    ImageNet's images have their id in the name. For your own, the name ends as an image's, whatever the suffixes; its
    folders may be left out if no other image has the same name.
    """

    def __init__(self, image_ids: Iterable[str], classes: ClassTable, files: Mapping[str, str] | None = None) -> None:
        """`image_ids`: the images; `files`: further names of them, such as the paths in a finished set."""
        self.classes = classes
        self._of_name = dict[str, str | None]()
        pairs = [] if classes.is_imagenet else [*((each, each) for each in image_ids), *(files or {}).items()]
        for name, image_id in pairs:
            path = _without_suffixes(name)
            for end in {path, path.rpartition("/")[2]}:
                # None: shared by two images
                self._of_name[end] = image_id if self._of_name.get(end, image_id) == image_id else None

    def find(self, name: str) -> str | None:
        """The image's id; None without one, and for a name of two images."""
        if self.classes.is_imagenet:
            return image_id_in(name)
        parts = _without_suffixes(name).split("/")
        ends = ["/".join(parts[place:]) for place in range(max(1, len(parts) - 1))]
        return next((self._of_name[end] for end in ends if end in self._of_name), None)


def _without_suffixes(name: str) -> str:
    while (path := PurePosixPath(name)).suffix.lower() in (*IMAGE_SUFFIXES, ".crop", ".json"):
        name = path.with_suffix("").as_posix()
    return name


def check_image_names(image_ids: Collection[str], where: str) -> None:
    """Raise CleansetError, naming `where` and them all, for image ids other than plain relative paths of images."""
    odd = {image_id: oddity for image_id in image_ids if (oddity := _oddity(image_id)) is not None}
    if odd:
        raise CleansetError(
            f"{where}: {join_names(f'{shown(each)}{oddity}' for each, oddity in odd.items())} as the name of an image; "
            "expected a path below the folder of the images, of printable characters without \\, .. and blanks at an "
            f"end, at most {MAX_ID_BYTES} bytes: rename it"
        )
    others = [shown(image_id) for image_id in image_ids if not _has_suffix(image_id)]
    if others:
        raise CleansetError(
            f"{where}: {join_names(others)}: not the name of an image; expected {', '.join(IMAGE_SUFFIXES)}: "
            "convert or move it"
        )


def _oddity(image_id: str) -> str | None:
    """Words for what makes an image id no plain path, perhaps empty; None for one that is."""
    try:
        length = len(image_id.encode())
    except UnicodeEncodeError:  # bytes that are not UTF-8, as surrogates
        length = MAX_ID_BYTES + 1
    parts = image_id.split("/")
    plain = all(part not in ("", ".", "..") for part in parts)
    blank = " with a blank at an end" if any(part != part.strip() for part in parts) else ""
    if not plain or blank or "\\" in image_id or not image_id.isprintable() or length > MAX_ID_BYTES:
        return blank or hidden_character(image_id)
    return None


def _has_suffix(image_id: str) -> bool:
    return PurePosixPath(image_id).suffix.lower() in IMAGE_SUFFIXES
