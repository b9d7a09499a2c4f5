"""The record of a training that lies beside its weights, and the entry for `further_models` that follows from it."""

import os
from pathlib import Path

import yaml

from cleanset.errors import CleansetError
from cleanset.evaluation.specs import TrainedModel
from cleanset.plumbing.files import read_text, sha256
from cleanset.plumbing.json_files import JsonObject, parse_json
from cleanset.plumbing.validation import validate
from cleanset.studies.training.run_params import Network
from cleanset.studies.training.study import RunFiles, TrainingStudy

RUN_REMEDY = "train the run, or run dvc checkout"
RECORD_KEYS = {"run", "classes", "weights_sha256"}
"""The keys of a record that are read, beside its settings."""
SETTINGS_KEYS = {"task", "network", "size", "resizing", "trained_on"}
"""The keys of a record's settings that are read."""


def model_entry(study: TrainingStudy, files: RunFiles, weights: Path | None = None) -> JsonObject:
    """The keys of a fold's network; `weights`: a copy of its weights, None: the fold's.

    Raises CleansetError for a fold that is not trained, a network that does not classify, and other weights.
    """
    path = weights or files.weights
    record = record_of_weights(files.record, path)
    known = study.read_classes()
    settings = record["settings"]
    network = network_of_record(record)
    classes = record["classes"]
    if network.source == "module" or not network.normalised:
        found = "is a module's" if network.source == "module" else "sees pixels without normalisation"
        raise CleansetError(
            f"{record['run']}: {network.name} {found}; expected a normalised network of timm or torchvision: see "
            f"cleanset evaluate --model {path}"
        )
    entry: JsonObject = {
        "source": network.source,
        "name": network.name,
        "weights": Path(os.path.relpath(path.resolve(), study.edition.folder.resolve())).as_posix(),
        "sha256": record["weights_sha256"],
        # all 1,000 in their order are what a network has anyway
        **({} if classes == list(known.keys) else {"classes": classes}),
        "size": settings["size"],
        "trained_on": settings["trained_on"],
    }
    validate(TrainedModel, entry, files.record, "; expected a network that a study can measure", context=known)
    return entry


def record_of_weights(
    path: Path, weights: Path, wanted: str = "classification", remedy: str = RUN_REMEDY
) -> JsonObject:
    """The record of the training of these weights.

    Raises CleansetError, which ends in `remedy`, for a record that is missing or not one, for other weights, and for
    another task than the wanted one.
    """
    record = parse_json(read_text(path, remedy), str(path), f"the record of a training: {remedy}")
    if (
        not isinstance(record, dict)
        or not isinstance(settings := record.get("settings"), dict)
        or SETTINGS_KEYS - set(settings)
        or RECORD_KEYS - set(record)
    ):
        raise CleansetError(f"{path}: not the record of a training; expected settings, classes, weights: {remedy}")
    validate(Network, settings["network"], f"{path}: settings.network", f"; expected a run's record: {remedy}")
    task = settings["task"]
    if task != wanted:
        raise CleansetError(f"{record['run']}: a run of {task}; expected a run of {wanted}")
    if not weights.is_file() or sha256(weights.read_bytes()) != record["weights_sha256"]:
        raise CleansetError(f"{weights}: missing, or not the weights of {path}; expected these: {remedy}")
    return record


def network_of_record(record: JsonObject) -> Network:
    """The network of a record of training, whose weights take the place of published ones."""
    return Network.model_validate(record["settings"]["network"] | {"pretrained": False})


def as_yaml(role: str, entry: JsonObject) -> str:
    """The entry as the lines of a params.yaml below `further_models`."""
    text = yaml.safe_dump({role: entry}, sort_keys=False, default_flow_style=None, width=110)
    return "".join(f"  {line}\n" for line in text.splitlines())
