"""The command `evaluate`: from names on the command line to the measures of each model, as tables or JSON."""

import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import PACKAGE, CleansetError, install_command, reason
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.compare.model_index import check_hub, write_results
from cleanset.evaluation.custom_measures import check_names
from cleanset.evaluation.factors import factors_of, read_annotations
from cleanset.evaluation.image_lists import open_set_or_list
from cleanset.evaluation.measured_models import MeasuredModel, measured_model, results_content
from cleanset.evaluation.predictions import parse_prediction_files, read_predictions, write_predictions_csv
from cleanset.evaluation.rendering import write_page
from cleanset.evaluation.request import Request
from cleanset.evaluation.sets import EvaluationSet, with_studies
from cleanset.evaluation.specs import EXPECTED_SPEC, file_stems


def request_of(edition: Edition, wanted: Arguments) -> Request[None]:
    """What the arguments of a command ask for: names are checked, all images are read; no model is loaded.

    Raises CleansetError with the remedy; imports no torch.
    """
    specs, score, roles = wanted.models_to_run(edition)
    if wanted.hub is not None:
        check_hub(wanted.hub, [*wanted.names, *wanted.predictions])
    check_names(wanted.measures)
    annotations = None if wanted.factors is None else read_annotations(wanted.factors)
    images = open_set_or_list(wanted.name, edition, roles, wanted.role)
    if wanted.restricted:
        note = f"predictions among the {images.class_count:,} classes of the images alone"
        images = replace(images, limits=[*images.limits, note], is_restricted=True)
    images = replace(images, measures=wanted.measures)
    if wanted.labels is not None:
        images = with_studies(images, wanted.labels)
    if annotations is not None:
        of_images = factors_of(annotations, {item.file: item.class_index for item in images.items})
        images = replace(images, limits=[*images.limits, of_images.note], factors=of_images)
    out = wanted.out
    return Request.of_command(specs, images, score=score, params=None, out=out or Path(), is_kept=out is not None)


def run(edition: Edition, wanted: Arguments) -> tuple[EvaluationSet, list[MeasuredModel]]:
    """Measure the models, then the predictions, in their order; write the files for `out`, `report` and `hub`.

    Names and predictions are checked and all images are read before torch is imported, which predictions made
    elsewhere do without. Raises CleansetError with the remedy.
    """
    if not wanted.models and not wanted.predictions:
        raise CleansetError(f"evaluate: neither --model nor --predictions; {EXPECTED_SPEC}")
    if wanted.restricted and wanted.predictions:
        raise CleansetError("--restricted: goes with --model, whose logits are known; expected no --predictions")
    files = parse_prediction_files(wanted.predictions, wanted.names)
    request = request_of(edition, wanted)
    images = request.images
    given = _given(files, images, wanted)
    rows = [*(_of_models(request) if request.specs else ()), *given]
    names = [row.name for row in rows]
    stems = dict(zip(names, file_stems(names), strict=True))
    write_results(results_content(images, rows), images.name, stems, out=wanted.out, hub=wanted.hub)
    if wanted.report is not None:
        write_page(wanted.report, images, rows)
    return images, rows


def failed_package(error: BaseException) -> str:
    """The package whose import fails, other than this one, from the traceback of an exception that was just caught."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:]
    packages = [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame in frames]
    others = [each for each in packages if each not in ("", PACKAGE, "importlib")]
    return others[0] if others else "a library"


def _of_models(request: Request[None]) -> list[MeasuredModel]:
    try:
        # imports torch, which takes seconds: a wrong name is reported before
        from cleanset.evaluation.run import measure_models
    except ModuleNotFoundError:
        raise
    except Exception as error:  # builds of torch and torchvision that do not fit raise whatever they meet first
        raise CleansetError(
            f"{failed_package(error)} cannot be imported ({reason(error)}); expected versions and builds of torch, "
            "torchvision, timm and the libraries below them that fit together: install torch and torchvision from the "
            f"same index, then {install_command('evaluate')}"
        ) from None

    return measure_models(request)


def _given(files: Mapping[str, Path], images: EvaluationSet, wanted: Arguments) -> list[MeasuredModel]:
    """The measures of predictions made elsewhere, whose checked copies are kept with those of the models."""
    stems = file_stems([*wanted.names, *(name.removesuffix(path.suffix) for name, path in files.items())])
    # all are read before a copy is written
    read = {name: read_predictions(path, images) for name, path in files.items()}
    rows = []
    for (name, (predictions, digest)), stem in zip(read.items(), stems[len(wanted.models) :], strict=True):
        path = None if wanted.out is None else wanted.out / f"{stem}.csv"
        if path is not None:
            write_predictions_csv(path, predictions)
        rows.append(measured_model(name, predictions, images, {"source_sha256": digest}, path=path))
    return rows
