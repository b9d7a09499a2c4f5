"""Stage score: what one model says of every picture. No decision is made here."""

import json
import sys
from dataclasses import replace
from functools import partial
from importlib.metadata import version

import pandas as pd

from cleanset import images
from cleanset.edition import Edition
from cleanset.files import sha256, write_text
from cleanset.images import Read
from cleanset.params import Params, read_params
from cleanset.pictures import VerifiedPictures
from cleanset.progress import rate_bar
from cleanset.scoring import decoding, models, scorer
from cleanset.scoring.engine import Settings, score_few, score_shards, settings_for
from cleanset.scoring.exactness import Distance, distance, sample
from cleanset.scoring.models import LoadedModel, describe, load_model
from cleanset.scoring.on_ray import score_shards_on_ray
from cleanset.scoring.shards import Shards, fingerprint
from cleanset.tables import INDEX, SCORES, read_table, write_table


def run(edition: Edition, role: str) -> None:
    """Read the index, the pictures and the model's weights, write data/scores/<role>.parquet and .json.

    The JSON says what was run; through it DVC locks the weights that were used.
    What is finished is kept beside them until all of it is, for a run that is interrupted.
    """
    params = read_params(edition.folder)
    index = read_table(edition.index, INDEX)
    image_ids = index["image_id"].tolist()
    settings = settings_for(params.score)
    model = load_model(params.model(role), edition.folder)
    read = VerifiedPictures(edition, params.dataset.images, index).read
    facts = described(params, role, model, len(image_ids))
    name = fingerprint(
        facts | {"index": sha256(edition.index.read_bytes())} | machine(settings),
        [str(module.__file__) for module in (decoding, images, models, scorer)],
    )
    shards = Shards(edition.partial_scores(role), name, image_ids, settings.batch_size)
    with rate_bar(len(image_ids), f"score {role}") as done:
        done(len(image_ids) - sum(len(shards.image_ids(number)) for number in shards.missing), 0.0)
        if params.score.engine == "ray":
            folder = Edition(edition.folder.resolve())
            load = partial(load_model, params.model(role), folder.folder)
            score_shards_on_ray(load, partial(open_pictures, folder, params.dataset.images), settings, shards, done)
        else:
            score_shards(model, read, settings, shards, done, say)
    scores = shards.table()
    against = None
    if settings.precision != "float64":
        against = against_float64(model, read, settings, index, scores)
        say(f"score {role}: {settings.precision} against float64: {against}")
    write_table(edition.scores(role), scores, SCORES)
    facts["against_float64"] = against and against.as_json()
    facts["versions"] = {name: number.partition("+")[0] for name, number in versions().items()}
    write_text(edition.scored_with(role), json.dumps(facts, indent=2) + "\n")
    shards.remove()


def say(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr)


def open_pictures(edition: Edition, images: str) -> Read:
    """What reads the pictures of an edition and checks them."""
    return VerifiedPictures(edition, images, read_table(edition.index, INDEX)).read


def described(params: Params, role: str, model: LoadedModel, pictures: int) -> dict[str, object]:
    """What is run, for people and for the fingerprint."""
    what = describe(params.model(role), model)
    return {"role": role, **what, "precision": params.score.precision, "pictures": pictures}


def versions() -> dict[str, str]:
    """Of the libraries that compute."""
    return {name: version(name) for name in ("numpy", "pillow", "robustbench", "timm", "torch")}


def machine(settings: Settings) -> dict[str, object]:
    """What else a result may depend on while it is in the making; batch and device only below float64."""
    if settings.precision == "float64":
        return {**versions()}
    return {**versions(), "batch_size": settings.batch_size, "device": settings.devices[0].type}


def against_float64(
    model: LoadedModel, read: Read, settings: Settings, index: pd.DataFrame, scores: pd.DataFrame
) -> Distance:
    """How far `scores` are from what float64 gives for a sample of the pictures."""
    exact = score_few(model, read, replace(settings, precision="float64"), sample(index))
    return distance(index, exact, scores)
