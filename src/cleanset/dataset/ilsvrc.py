"""ILSVRC2012's names and numbers: image ids, wnids, ILSVRC ids and class indices.

Three numberings meet here (source: "How to reproduce ImageNet validation results"). An *ILSVRC id*
(1..1000) is the devkit's own; a *wnid* ("n01440764") is WordNet's; a *class index* (0..999), which
every trained model and the reassessed labels use, is the place of the wnid among the sorted 1,000.
"""

import importlib.util
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from cleanset.dataset.matlab import read_structs
from cleanset.errors import CleansetError, reason
from cleanset.validation import shown

CLASSES = 1000

VALIDATION_IMAGES = 50_000
"""In ILSVRC2012's validation set."""

GROUND_TRUTH_NAME = "ILSVRC2012_validation_ground_truth.txt"
META_NAME = "meta.mat"

_ILSVRC_ID = re.compile(r"[0-9]{1,4}")
_IMAGE_NAME = re.compile(r"(ILSVRC2012_val_([0-9]{8}))(?:_(n[0-9]{8}))?\.JPEG")


def parse_image_name(name: str) -> tuple[str, str | None] | None:
    """Image id and wnid (None where the name holds none) of a file name, or None if it is no such name.

    "ILSVRC2012_val_00000001.JPEG" is the official form, "ILSVRC2012_val_00000001_n01751748.JPEG"
    that of the copy on Hugging Face.
    """
    match = _IMAGE_NAME.fullmatch(name)
    if match is None or int(match[2]) == 0:
        return None
    return match[1], match[3]


def image_id(number: int) -> str:
    """The image id of an image's number; numbers start at 1."""
    return f"ILSVRC2012_val_{number:08d}"


def image_number(image_id: str) -> int:
    """The number in an image id."""
    return int(image_id.rsplit("_", 1)[1])


@cache
def class_table() -> tuple[tuple[str, str, str], ...]:
    """Wnid, names and definition of the 1,000 classes by class index, from classes.tsv, which has timm's tables.

    The names are the class's synonyms in WordNet 3.0, the usual one first, with commas between.
    """
    text = (files("cleanset.dataset") / "classes.tsv").read_text(encoding="utf-8")
    return tuple((wnid, names, gloss) for wnid, names, gloss in (line.split("\t") for line in text.splitlines()))


def timm_info(name: str) -> Path:
    """A file of timm's own tables of ImageNet; found without importing timm, which takes seconds."""
    spec = importlib.util.find_spec("timm")
    if spec is None or not spec.submodule_search_locations:
        raise CleansetError("timm: not installed; its reassessed labels are needed: pip install 'cleanset[build]'")
    return Path(spec.submodule_search_locations[0]) / "data" / "_info" / name


@cache
def wnids() -> tuple[str, ...]:
    """The 1,000 wnids in the order of their class indices, which is the sorted order."""
    return tuple(wnid for wnid, _, _ in class_table())


@cache
def class_indices() -> dict[str, int]:
    """Class index of each of the 1,000 wnids."""
    return {wnid: index for index, wnid in enumerate(wnids())}


def read_meta(meta_mat: bytes, where: str) -> dict[int, int]:
    """Class index of each ILSVRC id, from the bytes of the devkit's `meta.mat`.

    The leaves (`num_children` 0) are the 1,000 classes; inner nodes of WordNet follow them and are
    left out. Raises CleansetError, naming `where`, if the leaves are not the classes of ILSVRC2012
    with the ids 1..1000.
    """
    try:
        synsets = read_structs(meta_mat, ("ILSVRC2012_ID", "WNID", "num_children"))
    except (ValueError, OverflowError) as error:
        raise CleansetError(
            f"{where}: no table of synsets as in ILSVRC2012's devkit ({reason(error)}); "
            "expected meta.mat of ILSVRC2012_devkit_t12.tar.gz"
        ) from None
    leaves = {synset["ILSVRC2012_ID"]: synset["WNID"] for synset in synsets if synset["num_children"] == 0}
    known = class_indices()
    common = len(set(leaves.values()) & set(known))
    if set(leaves) != set(range(1, CLASSES + 1)) or common != CLASSES:
        raise CleansetError(
            f"{where}: {len(leaves)} classes, {common} of them ILSVRC2012's; expected its 1,000 with "
            "the ids 1 to 1000: this is the devkit of another year or task, take ILSVRC2012_devkit_t12"
        )
    return {int(ilsvrc_id): known[wnid] for ilsvrc_id, wnid in leaves.items()}  # type: ignore[arg-type, index]  # as checked


def read_ground_truth(text: str, class_index_of: dict[int, int], where: str) -> list[int]:
    """Class index of each image, from the devkit's list of ILSVRC ids; line 1 is image 1."""
    labels = []
    for number, line in enumerate(text.splitlines(), start=1):
        label = class_index_of.get(int(line)) if _ILSVRC_ID.fullmatch(line.strip()) else None
        if label is None:
            raise CleansetError(
                f"{where}, line {number}: {shown(line.strip())}; expected an ILSVRC id from 1 to {CLASSES}"
            )
        labels.append(label)
    return labels
