"""Load the models to be measured, and run them over a set one by one."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset import tables
from cleanset.errors import CleansetError
from cleanset.evaluation.comparability import images_digest
from cleanset.evaluation.measured_models import MeasuredModel, measured_model
from cleanset.evaluation.models import NamedModel, check_model, open_model, preprocessing_digest
from cleanset.evaluation.predictions import scored_table
from cleanset.evaluation.request import Request
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet
from cleanset.evaluation.user_model import AmongClasses
from cleanset.images.codec import pixels_sha256
from cleanset.plumbing.files import partial_shards, remove_abandoned, sha256
from cleanset.plumbing.json_files import JsonObject, with_digest, write_json
from cleanset.plumbing.progress import found_in_threads, print_notice
from cleanset.scoring.checked_network import output_note
from cleanset.scoring.engine import ScoringRun, Settings, dependence_of, settings_for
from cleanset.scoring.gate import NetworkError
from cleanset.scoring.parts import FinishedPart
from cleanset.scoring.shards import finished_shards
from cleanset.scoring.validity import MadeFrom, library_versions, made_from_images, read_finished
from cleanset.tables import Table, nullable, read_table, write_table

PREDICTIONS = Table(
    key=("file",),
    file=tables.FILE,  # within the set
    class_index=tables.CLASS,  # of the set
    tier=nullable(tables.TIER),
    sha256=tables.SHA256,  # of the bytes of the file
    prediction=tables.CLASS,  # the top-1 class
    confidence=tables.PROBABILITY,  # its softmax probability
    correct=tables.FLAG,
    top5_class=tables.TOP5_CLASSES,
    top5_probability=tables.TOP5_PROBABILITIES,
    log_odds=tables.LOG_ODDS,  # of the top-1 class
)
_SCORES: dict[str, Any] = tables.SCORES.columns | {"image_id": tables.FILE}
# SCORES of images that have any names
NAMED_SCORES = Table(**_SCORES)


def measure_models(request: Request[None]) -> list[MeasuredModel]:
    """The measures of each model of a request, in their order.

    If they are kept, predictions are written with their records, finished shards are kept until a model is finished,
    and finished results of an earlier run are reused. Raises CleansetError, naming the model, if one
    cannot be loaded or does not give finite logits, one for each class; those before it stay finished.
    """
    for spec in request.specs.values():  # what is known to be missing shows before hours are spent on another
        check_model(spec)
    settings = settings_for(request.score)
    settings.start_workers()
    if request.is_kept:
        remove_abandoned(request.out)
    images = request.images
    pixels = cache(partial(pixels_digest, images))
    found = []
    for name in request.specs:
        model = load_for(request, name, settings)
        path = predictions_path(request, name)
        predictions, record = predict(model, images, settings, path, pixels)
        found.append(measured_model(name, predictions, images, record, path=path))
    return found


def predictions_path(request: Request[None], name: str) -> Path | None:
    """The table of the predictions of a model; None if they are not kept."""
    return request.out / f"{request.stems[name]}.parquet" if request.is_kept else None


def load_for(request: Request[None], name: str, settings: Settings) -> NamedModel:
    """A model to be measured, restricted to the classes of the images if they ask for it.

    Raises CleansetError as `open_model` does.
    """
    images = request.images
    model = open_model(request.specs[name], settings, images.classes)
    if not images.is_restricted:
        return model
    shown = sorted({index for item in images.items for index in item.labels})
    network = AmongClasses(model.loaded.network, shown, images.classes).eval()
    digest = sha256(" ".join(map(str, shown)).encode())[:32]
    identity = f"{model.identity}, among classes {digest}"
    return NamedModel(model.name, replace(model.loaded, network=network), identity)


def has_begun(path: Path) -> bool:
    """Whether an earlier run has left predictions, or some of them; `path`: their table."""
    return path.is_file() or _partial(path).is_dir()


def finished_part(model: NamedModel, images: EvaluationSet, settings: Settings, path: Path) -> FinishedPart:
    """What an earlier run of the same has kept: the predictions of all images, or of those in finished shards.

    `path`: the table of the predictions.
    """
    facts = _made_from(model, images, settings)
    if read_finished(path.with_suffix(".json"), facts, path) is not None:
        return FinishedPart(images=len(images.items))
    return finished_shards(_partial(path), facts.fingerprint)


def _partial(path: Path) -> Path:
    """The folder of the finished shards of predictions."""
    return partial_shards(path.with_suffix(""))


def pixels_digest(images: EvaluationSet) -> str:
    """The digest of a set's images as decoded here, before any preprocessing."""

    return images_digest(found_in_threads(partial(digest_of_pixels, images), images.items, "digests of the images"))


def digest_of_pixels(images: EvaluationSet, item: EvaluationImage) -> tuple[int, str]:
    """The class index of an image of a set, and the SHA-256 of its pixels as decoded here."""
    return item.class_index, pixels_sha256(images.read(item.file))


def predict(
    model: NamedModel, images: EvaluationSet, settings: Settings, path: Path | None, pixels: Callable[[], str]
) -> tuple[pd.DataFrame, JsonObject]:
    """The predictions of a model, with the columns of PREDICTIONS, and the record of what they were computed with.

    `path`: their table, whose finished shards are kept next to it; None: nothing is kept. `pixels`: digests the images.
    """
    facts = _made_from(model, images, settings)
    if path is not None and (record := read_finished(path.with_suffix(".json"), facts, path)) is not None:
        return read_table(path, PREDICTIONS, images.classes), record
    run = ScoringRun(
        name=model.name,
        model=model.loaded,
        read=images.read,
        settings=settings,
        index=_index(images),
        classes=images.classes,
        title=f"evaluate {model.name}",
    )
    shards = None if path is None else run.shards(_partial(path), facts, NAMED_SCORES)
    record = {**facts.facts, "fingerprint": facts.fingerprint, "against_float64": None}
    try:
        files = [each.file for each in images.items]
        record["deterministic"] = dependence_of(model.loaded, images.read, files, settings) is None
        with run:
            scores = run.scores(shards)
            record["against_float64"] = _against_float64(run, scores)
        if (note := output_note(model.loaded.network)) is not None:
            record["outputs"] = note
    except CleansetError as error:
        text = str(error)
        # an error of a custom network or preprocessing begins with its name already
        raise CleansetError(text if text.startswith(model.name) else f"{model.name}: {text}") from None
    record["preprocessing_sha256"] = preprocessing_digest(model.loaded.preprocessing)
    record["pixels_sha256"] = pixels()
    table = scored_table(images.items, scores)
    if path is not None and shards is not None:
        write_table(path, table, PREDICTIONS, images.classes)
        write_json(path.with_suffix(".json"), with_digest(record, path))
        # after the predictions are written, so that a kill in between loses nothing
        shards.remove()
    return table, record


def _against_float64(run: ScoringRun, scores: pd.DataFrame) -> JsonObject | None:
    """The differences of scores from float64 on a sample; None in it, and for a network that does not run in it."""
    try:
        against = run.against_float64(scores)
    except NetworkError:  # a constant of float32 outside its parameters and buffers
        precision = run.settings.precision
        print_notice(f"{run.name}: {precision} not compared with float64, which the network does not run in")
        return None
    return None if against is None else against.as_json()


def _made_from(model: NamedModel, images: EvaluationSet, settings: Settings) -> MadeFrom:
    listed = [[item.file, *item.labels, item.tier, item.sha256] for item in images.items]
    record = {
        "model": model.name,
        "preprocessing": model.loaded.preprocessing.name,
        "weights_sha256": model.loaded.weights_sha256,
        "identity": model.identity,
        "precision": settings.precision,
        "images": len(listed),
        "versions": library_versions(),
    }
    return made_from_images(
        record,
        images={"images_sha256": sha256(json.dumps(listed).encode())[:32]},
        classes=images.classes,
        code=["scoring"],
        model=model.loaded,
        settings=settings,
    )


def _index(images: EvaluationSet) -> pd.DataFrame:
    """The set as an index whose images have one label, the class of the set."""
    classes = [item.class_index for item in images.items]
    return pd.DataFrame(
        {
            "image_id": [item.file for item in images.items],
            "ilsvrc_class": classes,
            "real_classes": [[each] for each in classes],
            "single": True,
        }
    )
