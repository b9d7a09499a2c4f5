"""The command `evaluate`: from names on the command line to the measures of each model, as tables or JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.params import Params, Score, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, reason
from cleanset.files import write_text
from cleanset.measure.comparability import CardInterval, ComparabilityCard, card_model, clean_card
from cleanset.measure.compare.model_index import check_hub, write_hub
from cleanset.measure.compare.result_files import RESULTS, parse_results
from cleanset.measure.measures import (
    CORRECTION,
    INTERVAL,
    TEST,
    Accuracy,
    Answers,
    Bin,
    Confusion,
    Measures,
    Pair,
    measures,
    pairs_of,
)
from cleanset.measure.prediction_files import (
    PredictionsFile,
    parse_prediction_files,
    read_predictions,
    write_predictions_csv,
)
from cleanset.measure.sets import EvaluationSet, open_list, open_set
from cleanset.measure.specs import EXPECTED, Spec, file_stems, parse_specs
from cleanset.progress import cache_folder
from cleanset.validation import first_problem

CALIBRATION = "ECE of Guo et al. 2017, 15 bins of equal width"


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A model with its measures; `record` says what its predictions were computed with, `path` where they are.

    `correct`: whether each image is classified correctly, by file.
    """

    name: str
    measures: Measures
    record: dict[str, Any]
    path: Path | None
    correct: dict[str, bool]

    @property
    def is_deterministic(self) -> bool | None:
        """Whether two runs over the same images gave the same scores; None for predictions made elsewhere."""
        return self.record.get("deterministic")


def by_accuracy(rows: Sequence[MeasuredModel]) -> list[MeasuredModel]:
    """The models by accuracy, the highest first; equal ones in the order in which they were given."""
    return sorted(rows, key=lambda row: -row.measures.overall.share)


def pairs(rows: Sequence[MeasuredModel]) -> list[Pair]:
    """Every two models, the more accurate one first."""
    return pairs_of([Answers(row.name, row.correct) for row in by_accuracy(rows)])


def as_json(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> str:
    """The set, and every model with all of its measures, by accuracy."""
    return json.dumps(content(images, rows), indent=2)


def content(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> dict[str, Any]:
    """The content of the JSON; shares and confidences are between 0 and 1."""
    return {
        "set": {
            "name": images.name,
            "kind": images.kind,
            "images": len(images.items),
            "classes": len({item.class_index for item in images.items}),
            "checked_against": images.checked,
            "notes": list(images.notes),
        },
        "interval": "Wilson, 95 %",
        "comparability": card(images, rows).as_json(),
        "models": [_model(row) for row in by_accuracy(rows)],
        "pairs": {
            "test": TEST,
            "interval": INTERVAL,
            "correction": CORRECTION,
            "of": [_pair(pair) for pair in pairs(rows)],
        },
    }


def card(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> ComparabilityCard:
    """The comparability card of the measures on a set."""
    # of predictions made elsewhere the record has none
    pixels = next(filter(None, (row.record.get("pixels_sha256") for row in rows)), None)
    return clean_card(
        [(item.class_index, item.sha256) for item in images.items],
        pixels,
        CardInterval(kind="Wilson", level=0.95),
        {row.name: card_model(row.record) for row in rows},
        images.manifest_sha256,
        of_predictions=images.predicted_classes,
    )


def _model(row: MeasuredModel) -> dict[str, Any]:
    measures, record = row.measures, row.record
    # predictions made elsewhere have the digest of their file instead
    kept = ("source_sha256", "preprocessing", "weights_sha256", "precision", "against_float64", "versions")
    return {
        "model": row.name,
        **_accuracy(measures.overall),
        "top5": None if measures.top5 is None else _accuracy(measures.top5),
        "mean_confidence": measures.mean_confidence,
        "calibration": None if measures.bins is None else _calibration(measures, measures.bins),
        "tiers": {tier: _accuracy(accuracy) for tier, accuracy in measures.tiers.items()},
        "classes": {wnids()[each]: _accuracy(accuracy) for each, accuracy in measures.classes.items()},
        "confusions": [_confusion(each) for each in measures.confusions],
        "deterministic": row.is_deterministic,
        **{key: record.get(key) for key in kept},
        "predictions": None if row.path is None else row.path.name,
    }


def _calibration(measures: Measures, bins: Sequence[Bin]) -> dict[str, Any]:
    return {"definition": CALIBRATION, "error": measures.calibration_error, "bins": [asdict(each) for each in bins]}


def _confusion(confusion: Confusion) -> dict[str, Any]:
    return {
        "wnid": wnids()[confusion.label],
        "predicted": wnids()[confusion.prediction],
        "images": confusion.images,
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        "difference": pair.counts.difference,
        "interval": list(pair.interval),
        "p": pair.p,
        "p_holm": pair.p_holm,
        "both": pair.counts.both,
        "neither": pair.counts.neither,
        "only_first": list(pair.only_first),
        "only_second": list(pair.only_second),
    }


def _accuracy(accuracy: Accuracy) -> dict[str, Any]:
    return {
        "images": accuracy.images,
        "correct": accuracy.correct,
        "accuracy": accuracy.share,
        "interval": list(accuracy.interval),
    }


@dataclass(frozen=True, slots=True)
class ModelsToRun:
    """The models of a request, how to compute, and the roles of the edition."""

    specs: Sequence[Spec]
    score: Score
    roles: Sequence[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request to measure models, as named on the command line, on a set or on the images of a list."""

    name: str | None
    models: Sequence[str]
    architecture: str | None = None
    images: Path | None = None
    role: str | None = None
    precision: str | None = None
    device: str | None = None
    out: Path | None = None
    predictions: Sequence[str] = ()
    report: Path | None = None
    hub: Path | None = None
    restricted: bool = False

    def models_to_run(self, edition: Edition) -> ModelsToRun:
        """The models by their specs. Checks names, options and `out`, and imports no torch; raises CleansetError."""
        params = read_params(edition.folder) if edition.params_yaml.is_file() else None
        roles = params.models if params else {}
        score = score_settings(params, self.precision, self.device)
        weights = edition.folder if params else cache_folder()
        specs: list[Spec] = []
        if self.models or not self.predictions:
            specs = parse_specs(self.models, self.architecture, roles, edition.folder, weights)
        elif self.architecture is not None:
            raise CleansetError(f"--architecture {self.architecture}: goes with --model; expected a file of weights")
        for folder in (self.out, self.report):
            if folder is not None and folder.exists() and not folder.is_dir():
                raise CleansetError(f"{folder}: a file; expected a folder, new or of an earlier evaluation")
        if self.hub is not None:
            check_hub(self.hub, [*self.models, *self.predictions])
        return ModelsToRun(specs, score, list(roles))


def run(edition: Edition, wanted: Wanted) -> tuple[EvaluationSet, list[MeasuredModel]]:
    """Measure the models, then the predictions, in their order; write what `out`, `report` and `hub` ask for.

    Names and predictions are checked and all images are read before torch is imported, which predictions made
    elsewhere do without. Raises CleansetError that says what to do.
    """
    if not wanted.models and not wanted.predictions:
        raise CleansetError(f"evaluate: neither --model nor --predictions; {EXPECTED}")
    if wanted.restricted and wanted.predictions:
        raise CleansetError("--restricted: goes with --model, whose logits are known; expected no --predictions")
    asked = wanted.models_to_run(edition)
    files = parse_prediction_files(wanted.predictions, wanted.models)
    if wanted.report is not None:
        # needs jinja2: whether that is there shows before anything is computed
        from cleanset.measure.page import write_page
    images = _images(edition, wanted, asked.roles)
    if wanted.restricted:
        images = restricted_set(images)
    given = _given(files, images, wanted)
    rows = [*(_of_models(asked, images, wanted) if asked.specs else ()), *given]
    if wanted.out is not None:
        write_text(wanted.out / RESULTS, as_json(images, rows) + "\n")
    if wanted.report is not None:
        write_page(wanted.report, images, rows)
    if wanted.hub is not None:
        names = [row.name for row in rows]
        stems = dict(zip(names, file_stems(names), strict=True))
        write_hub(wanted.hub, parse_results(content(images, rows), images.name), stems)
    return images, rows


def restricted_set(images: EvaluationSet) -> EvaluationSet:
    """The set with a note that predictions are among its classes."""
    count = len({item.class_index for item in images.items})
    notes = [*images.notes, f"predictions among the {count:,} classes of the images alone"]
    return replace(images, notes=notes, predicted_classes=count)


def _of_models(asked: ModelsToRun, images: EvaluationSet, wanted: Wanted) -> list[MeasuredModel]:
    try:
        # imports torch, which takes seconds: a wrong name is reported before
        from cleanset.measure.run import evaluate
        from cleanset.scoring.engine import settings_for
    except ModuleNotFoundError:
        raise
    except Exception as error:  # builds of torch and torchvision that do not fit raise whatever they meet first
        raise CleansetError(
            f"torch, torchvision and timm cannot be imported ({reason(error)}); expected versions and builds that fit "
            "together: install them from the same index"
        ) from None

    evaluated = evaluate(asked.specs, images, settings_for(asked.score), wanted.out, restricted=wanted.restricted)
    return [measured(each.name, each.predictions, each.record, each.path) for each in evaluated]


def _given(files: Sequence[PredictionsFile], images: EvaluationSet, wanted: Wanted) -> list[MeasuredModel]:
    """The measures of predictions made elsewhere, whose checked copies are kept beside those of the models."""
    read = [read_predictions(file.path, images) for file in files]
    names = [file.name.removesuffix(file.path.suffix) for file in files]
    stems = file_stems([*wanted.models, *names])[len(wanted.models) :]
    rows = []
    for file, stem, (predictions, digest) in zip(files, stems, read, strict=True):
        path = None if wanted.out is None else wanted.out / f"{stem}.csv"
        if path is not None:
            write_predictions_csv(path, predictions)
        rows.append(measured(file.name, predictions, {"source_sha256": digest}, path))
    return rows


def measured(name: str, predictions: pd.DataFrame, record: dict[str, Any], path: Path | None = None) -> MeasuredModel:
    """The measures of predictions that have the columns of `checked_table`."""
    correct = dict(zip(predictions["file"].tolist(), map(bool, predictions["correct"]), strict=True))
    return MeasuredModel(name, measures(predictions), record, path, correct)


def _images(edition: Edition, wanted: Wanted, roles: Sequence[str]) -> EvaluationSet:
    if (wanted.name is None) == (wanted.images is None):
        found = "neither" if wanted.name is None else "both"
        raise CleansetError(f"evaluate: {found} a set and --images; expected one of the two")
    if wanted.images is not None:
        return open_list(wanted.images, edition, wanted.role)
    if wanted.role is not None:
        raise CleansetError(f"--role {wanted.role}: goes with --images; expected the role as the set")
    return open_set(str(wanted.name), edition, roles)


def score_settings(params: Params | None, precision: str | None, device: str | None) -> Score:
    """Settings of the computation: the edition's params, or the defaults of stage score, overridden by the options."""
    score = params.score if params else Score()
    options = {"precision": precision, "device": device}
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Score.model_validate(score.model_dump() | given)
    except ValidationError as error:
        raise CleansetError(f"--{first_problem(error)}") from None
