"""Small editions with any number of models, taken through the stages that read only tables."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from PIL import Image

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.image_ids import image_id
from cleanset.images.codec import inspect
from cleanset.plumbing.files import sha256
from cleanset.scoring.logits import log_odds_of
from cleanset.stages import count, intersect, report, review_apply, select
from cleanset.tables import CROP_SCORES, INDEX, SCORES, write_table

TENCH, GOLDFISH = 0, 1
LABELS = [TENCH, TENCH, TENCH, TENCH, GOLDFISH, GOLDFISH]
"""Reviews of images 1 to 6."""


def made(folder: Path, roles: Sequence[str], unreviewed: str) -> Path:
    """The report of an edition of six images, two in a full class."""
    params = {
        "root": ".",
        "dataset": {"images": "images", "classes": ["n01440764", "n01443537"]},
        "models": {role: {"source": "timm", "name": "any"} for role in roles},
        "review": {"unreviewed": unreviewed},
        "export": {"images_per_class": 2},
    }
    edition = Edition(folder)
    edition.reviews.mkdir(parents=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    write_table(edition.index, index(folder / "images"), INDEX, imagenet())
    for place, role in enumerate(roles):
        write_table(edition.scores(role), scores(place), SCORES, imagenet())
        write_table(edition.crop_scores(role), pd.DataFrame(columns=CROP_SCORES.names), CROP_SCORES, imagenet())
    intersect.run(edition)
    for role in roles:
        select.run(edition, role)
        review_apply.run(edition, role)
    count.run(edition)
    report.run(edition)
    return edition.report


def index(folder: Path) -> pd.DataFrame:
    """Draws the images too, each of another grey."""
    folder.mkdir()
    rows = []
    for number, label in enumerate(LABELS, start=1):
        out = io.BytesIO()
        Image.new("RGB", (50, 30), (40 * number,) * 3).save(out, "JPEG")
        (folder / f"{image_id(number)}.JPEG").write_bytes(out.getvalue())
        facts = inspect(out.getvalue())
        rows.append(
            {
                "image_id": image_id(number), "size": len(out.getvalue()), "sha256": sha256(out.getvalue()),
                "width": facts.width, "height": facts.height, "mode": facts.mode,
                "pixels_sha256": facts.pixels_sha256, "ilsvrc_class": label, "real_classes": [label], "single": True,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def scores(place: int) -> pd.DataFrame:
    """The model at an odd place takes image 1 for something else; later models are less sure of image 2."""
    labels = [9 if place % 2 and number == 0 else label for number, label in enumerate(LABELS)]
    confidences = np.array([0.99, 0.9 - place / 20, 0.8, 0.7, 0.6, 1.0], dtype=np.float32)
    return pd.DataFrame(
        {
            "image_id": [image_id(number) for number in range(1, len(LABELS) + 1)],
            "top5_class": [[label, *range(20, 24)] for label in labels],
            "top5_probability": [[confidence, 0, 0, 0, 0] for confidence in confidences.tolist()],
            "log_odds": log_odds_of(confidences),
        }
    )
