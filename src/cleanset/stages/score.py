"""Stage score: what one model says of every picture. No decision is made here."""

import json
import os

from cleanset.edition import Edition
from cleanset.files import write_text
from cleanset.models import describe, load_model
from cleanset.params import read_params
from cleanset.pictures import VerifiedPictures
from cleanset.progress import tracked
from cleanset.scoring import CPU_BATCH, batches, choose_device, make_exact, score
from cleanset.tables import INDEX, SCORES, read_table, write_table


def run(edition: Edition, role: str) -> None:
    """Read the index, the pictures and the model's weights, write data/scores/<role>.parquet and .json.

    The JSON says what was run; through it DVC locks the weights that were used.
    """
    params = read_params(edition.folder)
    index = read_table(edition.index, INDEX)
    image_ids = index["image_id"].tolist()
    device = choose_device(params.score.device)
    make_exact()
    model = load_model(params.model(role), edition.folder)
    batch_size = params.score.batch_size
    if device.type == "cpu":
        batch_size = min(batch_size, CPU_BATCH)
    verified = VerifiedPictures(edition, params.dataset.images, index)
    pictures = batches(
        image_ids,
        verified.read,
        model.preprocessing,
        batch_size,
        workers=len(os.sched_getaffinity(0)),
        pin=device.type == "cuda",
    )
    bar = tracked(pictures, len(image_ids), f"score {role}", batch_size)
    write_table(edition.scores(role), score(model, image_ids, bar, device, params.score.precision), SCORES)
    run_with = describe(params.model(role), model) | {"precision": params.score.precision}
    write_text(edition.scored_with(role), json.dumps(run_with, indent=2) + "\n")
