"""Submitted images that are results of the attacks of the edition's study of robustness."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cleanset.errors import CleansetError

NONE = "none"
"""The attack that changes nothing: its files are what the models see of the images."""
COLUMNS = ["image_id", "png", "png_sha256"]


@dataclass(frozen=True, slots=True)
class AttackedImage:
    """A file that an attack on a model made, of which image; `clean` is that image's file, if it is stored, too."""

    attack: str
    role: str
    image_id: str
    clean: Path | None


def attacked_images(study: Path, wanted: Collection[str]) -> dict[str, AttackedImage]:
    """By SHA-256, those of the files that an attack of the study made; the first by attack and model.

    Nothing where no attack has run. Raises CleansetError for a table that cannot be read.
    """
    found: dict[str, AttackedImage] = {}
    attacks = study / "data" / "attacks"
    for table in sorted(attacks.glob("*/*/attacked.parquet")) if wanted else []:
        attack, role = table.parent.parent.name, table.parent.name
        if attack == NONE:
            continue
        rows = read(table)
        for image_id, png, sha256 in rows[rows["png_sha256"].isin(wanted)].itertuples(index=False):
            clean = attacks / NONE / role / png
            found.setdefault(sha256, AttackedImage(attack, role, image_id, clean if clean.is_file() else None))
    return found


def read(table: Path) -> pd.DataFrame:
    """The columns that say what a file is."""
    try:
        return pd.read_parquet(table, columns=COLUMNS)
    except (OSError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise CleansetError(
            f"{table}: cannot be read ({first}); expected the results of an attack: dvc checkout"
        ) from None
