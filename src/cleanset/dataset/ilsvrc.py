"""ILSVRC2012's names and numbers: image ids, wnids, ILSVRC ids and class indices.

Three numberings meet here (source: "How to reproduce ImageNet validation results"). An *ILSVRC id*
(1..1000) is the devkit's own; a *wnid* ("n01440764") is WordNet's; a *class index* (0..999), which
every trained model and the reassessed labels use, is the place of the wnid among the sorted 1,000.

The names of the classes, from WordNet, and the search for classes by name.
"""

import importlib.util
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from cleanset.errors import CleansetError, install_command

CLASSES = 1000

VALIDATION_IMAGES = 50_000
"""Number of images in ILSVRC2012's validation set."""

OFFICIAL_IMAGES_MD5 = "29b22e2961454d5413ddabcf34fc5622"
"""MD5 of ILSVRC2012_img_val.tar, as image-net.org gives it."""

_IMAGE_NAME = re.compile(r"(ILSVRC2012_val_([0-9]{8}))(?:_(n[0-9]{8}))?\.JPEG")


def parse_image_name(name: str) -> tuple[str, str | None] | None:
    """Image id and wnid (None where the name holds none) of a file name, or None for any other name.

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


class ClassRow(NamedTuple):
    """A line of classes.tsv: `names` are the synonyms in WordNet 3.0, the usual one first, with commas between."""

    wnid: str
    ilsvrc_id: int
    names: str
    gloss: str


@cache
def class_table() -> tuple[ClassRow, ...]:
    """The 1,000 classes by class index, from classes.tsv: ILSVRC ids from the devkit's meta.mat, texts from timm."""
    text = (files("cleanset.dataset") / "classes.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines())
    return tuple(ClassRow(wnid, int(ilsvrc_id), names, gloss) for wnid, ilsvrc_id, names, gloss in rows)


def timm_info(name: str) -> Path:
    """A file of timm's own tables of ImageNet; found without importing timm, which takes seconds."""
    spec = importlib.util.find_spec("timm")
    if spec is None or not spec.submodule_search_locations:
        raise CleansetError(f"timm: not installed; its reassessed labels are needed: {install_command('build')}")
    return Path(spec.submodule_search_locations[0]) / "data" / "_info" / name


@cache
def wnids() -> tuple[str, ...]:
    """The 1,000 wnids in the order of their class indices, which is the sorted order."""
    return tuple(row.wnid for row in class_table())


@cache
def class_indices() -> dict[str, int]:
    """Class index of each of the 1,000 wnids."""
    return {wnid: index for index, wnid in enumerate(wnids())}


@cache
def class_of_ilsvrc_id() -> dict[int, int]:
    """Class index of each ILSVRC id."""
    return {row.ilsvrc_id: index for index, row in enumerate(class_table())}


@dataclass(frozen=True, slots=True)
class ClassName:
    """A class: `names` are its synonyms, the usual one first; `gloss` is the definition."""

    class_index: int
    wnid: str
    names: str
    gloss: str

    @property
    def name(self) -> str:
        """The usual name."""
        return self.names.partition(", ")[0]

    @property
    def others(self) -> str:
        """The other names."""
        return self.names.partition(", ")[2]

    @property
    def searched(self) -> str:
        """The text that a search looks at."""
        return f"{self.wnid} {self.names}".casefold()


@cache
def class_names() -> tuple[ClassName, ...]:
    """The 1,000 classes, by class index."""
    return tuple(ClassName(index, row.wnid, row.names, row.gloss) for index, row in enumerate(class_table()))


@cache
def label_names() -> tuple[str, ...]:
    """The names of the 1,000 classes by class index, each once, as tables and lists of labels need them.

    The usual name; where two classes share it (crane, maillot), each with its wnid: "crane (n02012849)".
    """
    shared = Counter(each.name for each in class_names())
    return tuple(each.name if shared[each.name] == 1 else f"{each.name} ({each.wnid})" for each in class_names())


def search_classes(names: Iterable[ClassName], typed: str, most: int = 12) -> list[ClassName]:
    """The classes in which every typed word occurs: as a word first, then as the beginning of one, then within."""
    words = typed.casefold().split()

    def place(each: ClassName) -> int:
        forms = (r"\b{}\b", r"\b{}", "{}")
        fits = (all(re.search(form.format(re.escape(word)), each.searched) for word in words) for form in forms)
        return next((place for place, fit in enumerate(fits) if fit), len(forms))

    hits = [each for each in names if all(word in each.searched for word in words)]
    return sorted(hits, key=lambda each: (place(each), each.class_index))[:most]
