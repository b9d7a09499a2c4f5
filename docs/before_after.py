"""Draw docs/before_after.png: one model's candidates before review, and its finished classes after.

Run `python docs/before_after.py` in the root after `dvc repro`.
"""

import io
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw, ImageFont, ImageOps

from cleanset.classes import imagenet
from cleanset.dataset.archives import locate
from cleanset.dataset.ilsvrc import timm_info
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.tables import REJECTED, SELECTION, read_table

ROLE = "norm_robust"
CLASSES = ("n02782093", "n04254680", "n04507155", "n06874185")
SHOWN = 6
CELL = 150
CAPTION = 22
LABEL = 110
INK, GREEN, AMBER, RED = "#222222", "#2e7d32", "#b26a00", "#b3261e"


def main() -> None:
    """Write the image."""
    edition = Edition(Path())
    locations = locate(edition.path(read_params(edition.folder).dataset.images))
    kept = read_table(edition.selection(ROLE), SELECTION, imagenet())
    others = read_table(edition.rejected(ROLE), REJECTED, imagenet())
    every = pd.concat([kept, others]).sort_values(["class_index", "rank"])
    width = LABEL + (SHOWN + 3) * CELL + 40
    sheet = Image.new("RGB", (width, 30 + len(CLASSES) * (CELL + CAPTION + 8)), "white")
    _text(sheet, (LABEL, 6), "the first six candidates, as reviewed", INK)
    _text(sheet, (LABEL + SHOWN * CELL + 40, 6), "the finished class", INK)
    for row, wnid in enumerate(CLASSES):
        top = 30 + row * (CELL + CAPTION + 8)
        _text(sheet, (6, top + CELL // 2 - 10), _name(wnid), INK)
        of_class = every[every["class_index"] == imagenet().indices[wnid]].head(SHOWN)
        for column, candidate in enumerate(of_class.to_dict("records")):
            image = Image.open(io.BytesIO(locations[candidate["image_id"]].read())).convert("RGB")
            caption, colour = _verdict(candidate)
            _paste(sheet, image, (LABEL + column * CELL, top), caption, colour, candidate["crop"])
        folder = edition.export(ROLE) / wnid
        finished = kept[kept["class_index"] == imagenet().indices[wnid]].sort_values("place")
        for column, image_id in enumerate(finished["image_id"]):
            image = ImageOps.exif_transpose(Image.open(next(folder.glob(f"{image_id}.*"))).convert("RGB"))
            _paste(sheet, image, (LABEL + (SHOWN + column) * CELL + 40, top), "", GREEN, None)
    sheet.save("docs/before_after.png", optimize=True)


def _name(wnid: str) -> str:
    lines = timm_info("imagenet_synset_to_lemma.txt").read_text().splitlines()
    names = dict(line.split("\t", 1) for line in lines)
    return names[wnid].split(",")[0]


def _verdict(row: dict[Hashable, Any]) -> tuple[str, str]:
    """Caption and colour."""
    if not isinstance(row["reason"], str):
        return ("cropped", AMBER) if isinstance(row["crop"], np.ndarray) else ("clean", GREEN)
    if row["reason"] == "not_needed":
        return "not needed", INK
    return row["reason"].replace("_", " "), RED


def _paste(
    sheet: Image.Image, image: Image.Image, at: tuple[int, int], caption: str, colour: str, crop: object
) -> None:
    """A thumbnail with its frame and caption; the crop box is drawn into it."""
    scale = (CELL - 14) / max(image.size)
    small = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS)
    if isinstance(crop, np.ndarray):
        ImageDraw.Draw(small).rectangle([round(edge * scale) for edge in crop], outline=AMBER, width=3)
    left = at[0] + (CELL - small.width) // 2
    top = at[1] + (CELL - small.height) // 2
    sheet.paste(small, (left, top))
    frame = (left - 3, top - 3, left + small.width + 2, top + small.height + 2)
    ImageDraw.Draw(sheet).rectangle(frame, outline=colour, width=2)
    _text(sheet, (at[0] + 8, at[1] + CELL), caption, colour)


def _text(sheet: Image.Image, at: tuple[int, int], text: str, colour: str) -> None:
    ImageDraw.Draw(sheet).text(at, text, fill=colour, font=ImageFont.load_default(15))


if __name__ == "__main__":
    main()
