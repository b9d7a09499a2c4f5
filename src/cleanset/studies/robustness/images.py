"""The images that a study is made on: those of the finished sets, each once."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.exports.manifest import Entry
from cleanset.files import sha256
from cleanset.tables import (
    BOX,
    CLASS,
    FILE,
    IMAGE_ID,
    NAMES,
    SHA256,
    Table,
    nullable,
)

STUDY_IMAGES = Table(
    key=("file",),
    file=FILE,  # in the folder of each set that holds it
    image_id=IMAGE_ID,
    class_index=CLASS,
    crop=nullable(BOX),  # null: the whole image
    file_sha256=SHA256,
    sets=NAMES,  # the roles in whose sets it is, in the order of params.yaml
)


def join_sets(sets: Mapping[str, Sequence[Entry]]) -> pd.DataFrame:
    """The columns of STUDY_IMAGES, from the manifests by role.

    Raises CleansetError where one file is another image in two sets, and where there is none.
    """
    found: dict[str, tuple[Entry, list[str]]] = {}
    for role, entries in sets.items():
        for entry in entries:
            first, roles = found.setdefault(entry.file, (entry, []))
            if (first.file_sha256, first.class_index) != (entry.file_sha256, entry.class_index):
                raise CleansetError(
                    f"{entry.file}: another image in the set of {role} than in that of {roles[0]}; expected one image "
                    "under one name: run dvc repro in the edition"
                )
            roles.append(role)
    if not found:
        raise CleansetError(f"the sets of {', '.join(sets)} have no images; expected at least one")
    rows = [
        (file, entry.image_id, entry.class_index, entry.crop, entry.file_sha256, roles)
        for file, (entry, roles) in sorted(found.items())
    ]
    return pd.DataFrame(rows, columns=STUDY_IMAGES.names)


def is_seen(images: pd.DataFrame, which: Literal["union", "own"], role: str) -> NDArray[np.bool_]:
    """Flags of the rows of STUDY_IMAGES that a model gets: all (union), or those of its own set (own)."""
    return np.array([which == "union" or role in sets for sets in images["sets"]], np.bool_)


def images_for(images: pd.DataFrame, which: Literal["union", "own"], role: str) -> pd.DataFrame:
    """The rows of STUDY_IMAGES that a model gets."""
    return images[is_seen(images, which, role)].reset_index(drop=True)


def first_images(images: pd.DataFrame, count: int | None) -> pd.DataFrame:
    """At most `count` rows of STUDY_IMAGES: the first image of each class by name, then the second, and so on."""
    if count is None:
        return images
    rounds = images.groupby("class_index").cumcount().to_numpy()
    # lexsort sorts by its last key first
    order = np.lexsort((images["file"], images["class_index"], rounds))
    return images.iloc[np.sort(order[:count])].reset_index(drop=True)


def images_sha256(images: pd.DataFrame) -> str:
    """A digest of the files of some rows of STUDY_IMAGES and of their bytes, in their order."""
    return sha256("\n".join(images["file"] + " " + images["file_sha256"]).encode())
