"""The entry of a trained network in `further_models` of the robustness study, from the record of its training."""

import os
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from cleanset.dataset.ilsvrc import wnids
from cleanset.errors import CleansetError
from cleanset.files import read_text, sha256
from cleanset.parsing import parse_json
from cleanset.studies.robustness.further import TrainedModel
from cleanset.studies.training.study import RunFiles, TrainingStudy
from cleanset.validation import first_problem

REMEDY = "train the run, or run dvc checkout"


def model_entry(study: TrainingStudy, files: RunFiles, weights: Path | None = None) -> dict[str, Any]:
    """The keys of a fold's network; `weights`: a copy of its weights, None: those of the fold.

    Raises CleansetError for a fold that is not trained, a network that does not classify, and other weights.
    """
    record = read_record(files.record)
    settings, path = record["settings"], weights or files.weights
    if settings["task"] != "classification":
        raise CleansetError(f"{record['run']}: a run of {settings['task']}; expected one that classifies")
    if not path.is_file() or sha256(path.read_bytes()) != record["weights_sha256"]:
        raise CleansetError(f"{path}: missing, or not the weights of {files.record}; expected these: {REMEDY}")
    network, classes = settings["network"], record["classes"]
    entry = {
        "source": network["source"],
        "name": network["name"],
        "weights": Path(os.path.relpath(path.resolve(), study.edition.folder.resolve())).as_posix(),
        "sha256": record["weights_sha256"],
        # all 1,000 in their order are what a network has anyway
        **({} if classes == list(wnids()) else {"classes": classes}),
        "size": settings["size"],
        "trained_on": settings["trained_on"],
    }
    try:
        TrainedModel.model_validate(entry)
    except ValidationError as error:
        raise CleansetError(f"{files.record}: {first_problem(error)}; expected what a study can measure") from None
    return entry


def read_record(path: Path) -> dict[str, Any]:
    """A record of training. Raises CleansetError if it is missing or none."""
    record = parse_json(read_text(path, REMEDY), str(path), f"the record of a training: {REMEDY}")
    if not isinstance(record, dict) or not {"settings", "classes", "weights_sha256"} <= set(record):
        raise CleansetError(f"{path}: not the record of a training; expected settings, classes, weights: {REMEDY}")
    return record


def as_yaml(role: str, entry: dict[str, Any]) -> str:
    """The entry as the lines of a params.yaml below `further_models`."""
    text = yaml.safe_dump({role: entry}, sort_keys=False, default_flow_style=None, width=110)
    return "".join(f"  {line}\n" for line in text.splitlines())
