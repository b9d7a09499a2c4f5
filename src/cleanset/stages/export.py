"""Stage export: write one model's finished set and its manifest.

A whole picture is copied byte for byte; a cropped one becomes a PNG.
"""

import os
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.files import replacing, sha256, write_text
from cleanset.ilsvrc import wnids
from cleanset.images import Read, cropped, pixels_sha256, png
from cleanset.manifest import Entry, manifest_csv
from cleanset.params import read_params
from cleanset.pictures import VerifiedPictures
from cleanset.progress import tracked
from cleanset.tables import INDEX, SELECTION, read_table


def run(edition: Edition, role: str) -> None:
    """Read selection, index and pictures, write data/export/<role>/."""
    params = read_params(edition.folder)
    params.model(role)
    selection = read_table(edition.selection(role), SELECTION)
    if params.export.strict:
        check_full(selection, params.dataset.class_list(), params.export.images_per_class, role)
    index = read_table(edition.index, INDEX)
    rows = selection.merge(index[["image_id", "sha256", "pixels_sha256"]], on="image_id", validate="one_to_one")
    if len(rows) != len(selection):
        lost = sorted(set(selection["image_id"]) - set(rows["image_id"]))
        raise CleansetError(f"{edition.selection(role)}: {lost[0]} is not in {edition.index}: run dvc repro")
    read = VerifiedPictures(edition, params.dataset.images, index).read
    with replacing(edition.export(role)) as folder:
        write_set(folder, role, rows, read)


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
    """Write the pictures of `rows` and manifest.csv into `folder`."""
    folder.mkdir()
    for class_index in rows["class_index"].unique():
        (folder / wnids()[class_index]).mkdir()
    # threads suffice: reading, writing and hashing release the lock
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        written = pool.map(lambda row: _write_one(folder, role, row, read), rows.to_dict("records"))
        entries = list(tracked(written, len(rows), f"export {role}"))
    write_text(folder / "manifest.csv", manifest_csv(entries))


def _write_one(folder: Path, role: str, row: dict[Hashable, Any], read: Read) -> Entry:
    source = read(row["image_id"])
    if row["crop"] is None:
        crop, data, suffix = None, source, ".JPEG"
        file_sha256, pixels = row["sha256"], row["pixels_sha256"]
    else:
        left, top, right, bottom = map(int, row["crop"])  # beside missing boxes pandas reads them as floats
        crop = (left, top, right, bottom)
        part = cropped(source, crop)
        data, suffix = png(part), ".png"
        file_sha256, pixels = sha256(data), pixels_sha256(part)
    wnid = wnids()[row["class_index"]]
    file = f"{wnid}/{row['image_id']}{suffix}"
    (folder / file).write_bytes(data)
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
        file_sha256=file_sha256,
        pixels_sha256=pixels,
    )
