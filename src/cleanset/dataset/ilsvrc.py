"""ILSVRC2012's names and numbers: image ids, wnids, ILSVRC ids and class indices.

Three numberings meet here (source: "How to reproduce ImageNet validation results"). An *ILSVRC id*
(1..1000) is the devkit's own; a *wnid* ("n01440764") is WordNet's; a *class index* (0..999), which
every trained model and the reassessed labels use, is the place of the wnid among the sorted 1,000.
"""

import importlib.util
import re
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath

from cleanset.classes import IMAGE_ID, IMAGE_PREFIX, WNID
from cleanset.errors import CleansetError, install_command

CLASSES = 1000

VALIDATION_IMAGES = 50_000
"""Number of images in ILSVRC2012's validation set."""

OFFICIAL_IMAGES_MD5 = "29b22e2961454d5413ddabcf34fc5622"
"""MD5 of ILSVRC2012_img_val.tar, as image-net.org gives it."""

_IMAGE_NAME = re.compile(rf"({IMAGE_ID.pattern})(?:_({WNID.pattern}))?\.(?:JPEG|jpeg|JPG|jpg)")


def parse_image_name(name: str) -> tuple[str, str | None] | None:
    """Image id and wnid (None if the name lacks it) of a file name, or None for any other name.

    "ILSVRC2012_val_00000001.JPEG" is the official form, "ILSVRC2012_val_00000001_n01751748.JPEG"
    the form in the copy on Hugging Face; some copies end in .jpg or .jpeg.
    """
    match = _IMAGE_NAME.fullmatch(name)
    # the first image has number 1
    if match is None or image_number(match[1]) == 0:
        return None
    return match[1], match[2]


def image_id_of(file: str) -> str | None:
    """The image id in the name of a validation image's file, whole or cropped, in any folder; None for another file."""
    parsed = parse_image_name(f"{PurePosixPath(file).stem}.JPEG")
    return None if parsed is None else parsed[0]


def image_id(number: int) -> str:
    """The image id of an image's number; numbers start at 1."""
    return f"{IMAGE_PREFIX}{number:08d}"


def image_number(image_id: str) -> int:
    """The number in an image id."""
    return int(image_id.rsplit("_", 1)[1])


def timm_info(name: str) -> Path:
    """A file of timm's own tables of ImageNet; found without importing timm, which takes seconds."""
    spec = importlib.util.find_spec("timm")
    if spec is None or not spec.submodule_search_locations:
        raise CleansetError(f"timm: not installed; its reassessed labels are needed: {install_command('build')}")
    return Path(spec.submodule_search_locations[0]) / "data" / "_info" / name


@cache
def class_of_ilsvrc_id() -> dict[int, int]:
    """Class index of each ILSVRC id, by the second column of classes.tsv, from the devkit's meta.mat."""
    text = (files("cleanset.dataset") / "classes.tsv").read_text(encoding="utf-8")
    return {int(line.split("\t")[1]): index for index, line in enumerate(text.splitlines())}
