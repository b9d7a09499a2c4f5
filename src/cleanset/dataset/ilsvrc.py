"""ILSVRC2012's numberings of classes: wnids, ILSVRC ids and class indices.

Three numberings meet here (source: "How to reproduce ImageNet validation results"). An *ILSVRC id*
(1..1000) is the devkit's own; a *wnid* ("n01440764") is WordNet's; a *class index* (0..999), which
every trained model and the reassessed labels use, is the place of the wnid among the sorted 1,000.
"""

import importlib.util
from functools import cache
from importlib.resources import files
from pathlib import Path

from cleanset.errors import CleansetError, install_command

CLASSES = 1000

OFFICIAL_IMAGES_MD5 = "29b22e2961454d5413ddabcf34fc5622"
"""MD5 of ILSVRC2012_img_val.tar, as image-net.org gives it."""


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
