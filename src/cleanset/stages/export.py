"""Stage export: write one model's finished set, its manifest, and what describes it."""

import json
import os
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.boxes import box_of
from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.files import replacing, sha256, write_text
from cleanset.ilsvrc import wnids
from cleanset.images import Read, pixels_sha256
from cleanset.params import read_params
from cleanset.pictures import VerifiedPictures
from cleanset.progress import tracked
from cleanset.sets.card import Made, card
from cleanset.sets.folder import CARD, write_manifest
from cleanset.sets.manifest import Entry, file_name
from cleanset.sets.picture_files import picture_file
from cleanset.tables import INDEX, REJECTED, SELECTION, read_table


def run(edition: Edition, role: str) -> None:
    """Read selection, index and pictures, write data/export/<role>/.

    The rejected candidates, and what the scores were computed with, go into its data card.
    """
    params = read_params(edition.folder)
    params.model(role)
    classes, per_class = params.dataset.class_list(), params.export.images_per_class
    selection = read_table(edition.selection(role), SELECTION)
    if params.export.strict:
        check_full(selection, classes, per_class, role)
    rejected = read_table(edition.rejected(role), REJECTED)
    made = Made(role, classes, per_class, params.review.unreviewed == "clean", read_scored_with(edition, role))
    index = read_table(edition.index, INDEX)
    rows = selection.merge(index[["image_id", "sha256", "pixels_sha256"]], on="image_id", validate="one_to_one")
    if len(rows) != len(selection):
        lost = sorted(set(selection["image_id"]) - set(rows["image_id"]))
        raise CleansetError(f"{edition.selection(role)}: {lost[0]} is not in {edition.index}: run dvc repro")
    read = VerifiedPictures(edition, params.dataset.images, index).read
    with replacing(edition.export(role)) as folder:
        write_set(folder, role, rows, read)
        write_text(folder / CARD, card(made, selection, rejected))


def read_scored_with(edition: Edition, role: str) -> dict[str, Any]:
    """What a model's scores were computed with. Raises CleansetError if that is missing or of an older form."""
    path = edition.scored_with(role)
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; run dvc repro, or dvc pull to fetch it") from None
    except ValueError as error:
        raise CleansetError(f"{path}: not JSON ({error}); run dvc repro") from None
    if "versions" not in facts:
        raise CleansetError(f"{path}: no key versions; expected what this version of score writes: run dvc repro")
    return facts


def check_full(selection: pd.DataFrame, classes: list[int], images_per_class: int, role: str) -> None:
    """Raise CleansetError if a class has fewer pictures than it should."""
    counts = selection["class_index"].value_counts()
    short = [index for index in classes if counts.get(index, 0) < images_per_class]
    if short:
        raise CleansetError(
            f"{role}: short classes: {len(short)}, the first is {wnids()[short[0]]} with "
            f"{counts.get(short[0], 0)} of {images_per_class} pictures: review more, "
            "or set export.strict: false (then data/short_classes.csv lists them all)"
        )


def write_set(folder: Path, role: str, rows: pd.DataFrame, read: Read) -> None:
    """Write the pictures of `rows` and their manifest into `folder`."""
    folder.mkdir()
    for class_index in rows["class_index"].unique():
        (folder / wnids()[class_index]).mkdir()
    # threads suffice: reading, writing and hashing release the lock
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        written = pool.map(lambda row: _write_one(folder, role, row, read), rows.to_dict("records"))
        entries = list(tracked(written, len(rows), f"export {role}"))
    write_manifest(folder, entries)


def _write_one(folder: Path, role: str, row: dict[Hashable, Any], read: Read) -> Entry:
    crop = box_of(row["crop"])
    made = picture_file(read(row["image_id"]), crop)
    wnid = wnids()[row["class_index"]]
    file = file_name(wnid, row["image_id"], crop)
    (folder / file).write_bytes(made.data)
    return Entry(
        model=role,
        wnid=wnid,
        class_index=row["class_index"],
        rank=row["place"],
        image_id=row["image_id"],
        tier=row["tier"],
        confidence=row["confidence"],
        crop=crop,
        file=file,
        source_sha256=row["sha256"],
        # of a whole picture the index has both
        file_sha256=row["sha256"] if made.part is None else sha256(made.data),
        pixels_sha256=row["pixels_sha256"] if made.part is None else pixels_sha256(made.part),
        encoder=made.encoder,
    )
