"""`cleanset.evaluate`: the measures of any callable, whose logits are checked batch by batch, or of its predictions.

torch is imported when a callable is run: predictions do without it.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image
from pydantic import JsonValue
from rich.console import Console

from cleanset.edition.params import BATCH_SIZE, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import InputError, NotComparableError, needs_extra, raised, reason
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.custom_measures import check_names
from cleanset.evaluation.image_lists import LIST_SUFFIX, open_set_or_list
from cleanset.evaluation.measured_models import MeasuredModel, measured_model, results_content, results_json
from cleanset.evaluation.pairs import Pair, compare_pairwise
from cleanset.evaluation.prediction_measures import MEASURES, NO_PROBABILITIES, NO_TOP5
from cleanset.evaluation.predictions import (
    PREDICTION_SUFFIXES,
    checked_array,
    checked_table,
    read_predictions,
    scored_table,
)
from cleanset.evaluation.rendering import as_text, leaderboard_for_paper, write_page
from cleanset.evaluation.sets import EvaluationSet, open_set, with_studies
from cleanset.evaluation.table import cell
from cleanset.plumbing.file_locks import only_run
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import tracked
from cleanset.plumbing.validation import shown
from cleanset.scoring.consistency import batches_to_ask, dependence
from cleanset.scoring.gate import NetworkError, NetworkGate, not_finite, wrong_answer
from cleanset.scoring.logits import top5
from cleanset.sets.image_set import ImageSet
from cleanset.statistics.basics import Floats, Ints
from cleanset.statistics.formats import decimal, interval_text

if TYPE_CHECKING:
    import torch

WIDTH = 80
"""Columns of the printed results."""
# share of the range of the logits by which they may differ in another batch: what bfloat16 rounds off
BATCH_TOLERANCE = 0.01
LEVELS = 255
"""The largest pixel of 8 bits."""
MIN_BETTER = 2
"""How many times as many images have to be correct with scaled pixels before the pixels are refused."""
EXPECTED_PREDICTIONS = (
    "expected a callable on batches with transform=, a file that ends in .csv or .parquet, a table with the column "
    "image, or an array in the order of the set"
)


class Results:
    """The measures of one model on a set; printed as `cleanset evaluate` prints them, and in a notebook as a table.

    `predictions` has a row for each image, sorted by file, with the columns file, class_index (of the set), tier,
    prediction and correct, and, where they are known, confidence, top5_class and top5_probability.
    """

    def __init__(self, images: EvaluationSet, model: MeasuredModel, predictions: pd.DataFrame) -> None:
        self.images = images
        self.model = model
        self.predictions = predictions

    def __repr__(self) -> str:
        accuracy = f"{decimal(self.accuracy, 4)} ({interval_text(self.interval, 4)})"
        return f"Results({self.model.name}: {accuracy} on {self.images.name})"

    def __str__(self) -> str:
        console = Console(width=WIDTH, color_system=None)
        with console.capture() as printed:
            console.print(as_text(self.images, [self.model]), highlight=False)
        return printed.get()

    def _repr_html_(self) -> str:
        """The numbers of the first printed table, for a notebook."""
        accuracy = cell(self.accuracy, self.interval, unit="%")
        of_top5 = self.model.measures.top5
        ends = None if of_top5 is None else of_top5.interval
        top5 = cell(self.top5_accuracy, ends, unit="%", problem=NO_TOP5).in_terminal()
        ece = cell(self.calibration_error, factor=1, problem=NO_PROBABILITIES).in_terminal()
        head = "<tr><th>model</th><th>images</th><th>accuracy</th><th>95 % interval</th><th>top-5</th><th>ECE</th></tr>"
        interval = f"{accuracy.low}% to {accuracy.high}%" if accuracy.low else "no interval"
        shares = f"<td>{accuracy.value}%</td><td>{interval}</td><td>{top5}</td><td>{ece}</td>"
        row = f"<tr><td>{escape(self.model.name)}</td><td>{len(self.predictions):,}</td>{shares}</tr>"
        return f"<p>{escape(self.images.name)}</p><table>{head}{row}</table>"

    @property
    def accuracy(self) -> float:
        """Top-1 accuracy, 0 to 1."""
        return self.model.measures.overall.share

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy, Wilson's; by the groups of the images if they have any."""
        return self.model.measures.overall.interval

    @property
    def top5_accuracy(self) -> float | None:
        """Top-5 accuracy, 0 to 1; None if only one class of each image is known, or with fewer than five classes."""
        top5 = self.model.measures.top5
        return None if top5 is None else top5.share

    @property
    def calibration_error(self) -> float | None:
        """The debiased expected calibration error, 0 to 1; None if no probabilities are known."""
        return self.model.measures.calibration_error

    @property
    def multilabel(self) -> dict[str, float]:
        """The multi-label accuracies, 0 to 1, by definition; empty without labels of further studies."""
        return {each.definition.name: each.value for each in self.model.multilabel}

    @property
    def is_deterministic(self) -> bool | None:
        """Whether the first batch gave the same logits twice; None for predictions."""
        return self.model.is_deterministic

    def table(self) -> str:
        """The text that the command prints."""
        return str(self)

    def to_pandas(self) -> pd.DataFrame:
        """A row for each measure, with value and ends of its interval."""
        measures = [(each.name, each.of(self.model.measures)) for each in MEASURES]
        measures = [*measures, *((each.name, each.found) for each in self.model.custom)]
        rows = [(self.model.name, name, found.value, found.low, found.high) for name, found in measures]
        return pd.DataFrame(rows, columns=["model", "measure", "value", "low", "high"])

    def latex(self) -> str:
        """The table for a paper, for the package booktabs."""
        return leaderboard_for_paper(self.images, [self.model]).in_form("latex")

    def as_dict(self) -> JsonObject:
        """The content of the JSON that the command prints."""
        return results_content(self.images, [self.model])

    def as_json(self) -> str:
        """The JSON that the command prints."""
        return results_json(self.images, [self.model])

    def compare(self, other: "Results") -> Pair:
        """This model and another one, compared image by image. Raises CleansetError for results on other images."""
        mine, theirs = ([(item.file, item.sha256) for item in each.images.items] for each in (self, other))
        if mine != theirs:
            raise NotComparableError(
                f"{self!r} and {other!r}: measured on different images; expected results on the same set"
            )
        files = [file for file, _ in mine]
        answers = [(each.model.name, each.model.answers(files)) for each in (self, other)]
        (pair,) = compare_pairwise(answers, files, [item.group for item in self.images.items])
        return pair

    def write_page(self, folder: str | Path, *others: "Results") -> None:
        """Write the page of `--report` into a folder, with these and other results on the same images."""
        names = [self.model.name, *(other.model.name for other in others)]
        if len(set(names)) < len(names):
            raise NotComparableError(f"results of {', '.join(names)}; expected different names: give evaluate a name=")
        for other in others:
            self.compare(other)
        write_page(Path(folder), self.images, [self.model, *(other.model for other in others)])


def evaluate(
    model: Any,
    images: ImageSet | str | Path,
    transform: Callable[[Any], Any] | None = None,
    *,
    name: str | None = None,
    batch_size: int = BATCH_SIZE,
    edition: str | Path = ".",
    role: str | None = None,
    labels: str | Path | None = None,
    measures: Sequence[str] = (),
    out: str | Path | None = None,
    precision: str | None = None,
    device: str | None = None,
) -> Results:
    """The accuracy, with interval, and the other measures of a model on a finished set.

    `model` is a name as `cleanset evaluate --model` takes it, such as "timm:resnet50.a1_in1k": then it is measured as
    by the command, in `precision` on `device`, and `out` is a folder for its predictions, where an interrupted call
    continues. Or `model` maps a batch, collated by torch from the tensors that `transform` makes of PIL images (RGB),
    to logits of shape (n, classes) in the order of the class indices; a torch.nn.Module is set to evaluation meanwhile,
    and gets the batch on its own device. Or `model` is its predictions: a file as `cleanset evaluate --predictions`
    takes it, a table with the same columns, or an array in the order of the set, either class indices of shape (n) or
    probabilities of shape (n, classes).

    `images` comes from `cleanset.load`, whose transform is taken unless another is given, or the folder of a set, or a
    role of the edition in the folder `edition`, or a list (.csv) of its images. Every image is checked against the
    manifest, or the edition's index. `role`: the model whose rows of a list are taken, if it has several. `name` is
    used in the results; `labels`: a folder with the files of label sources, for multi-label accuracies; `measures`:
    names of functions of the predictions, MODULE:NAME, that give a value, or value, (low, high). Raises CleansetError
    for anything that does not fit, naming the first image or row.

        >>> images = cleanset.load("standard")
        >>> cleanset.evaluate(np.roll(images.targets, 1), images, name="shifted")
        Results(shifted: 0.6471 (0.4791 to 0.7851) on data/export/standard)
        >>> results = cleanset.evaluate(np.array(images.targets), images, name="labels")
        >>> results.accuracy, results.top5_accuracy
        (1.0, None)

    """
    if isinstance(model, str) and not model.endswith(PREDICTION_SUFFIXES):
        if transform is not None:
            raise InputError(f"{shown(model)}: a model by its name with a transform; expected none: it has its own")
        place = str(images.folder if isinstance(images, ImageSet) else images)
        wanted = Arguments(
            place,
            [model if name is None else f"{name}={model}"],
            role=role,
            precision=precision,
            device=device,
            labels=None if labels is None else Path(labels),
            measures=measures,
        )
        return _by_name(Edition(Path(edition)), wanted, None if out is None else Path(out))
    for option, value in (("out", out), ("precision", precision), ("device", device)):
        if value is not None:
            raise InputError(f"{option}={shown(str(value))}: goes with the name of a model; expected none")
    check_names(measures)
    opened = replace(_opened(images, Path(edition), role), measures=measures)
    if labels is not None:
        opened = with_studies(opened, Path(labels))
    of_type = getattr(model, "__name__", type(model).__name__)
    named = name or str(model if isinstance(model, str | Path) else of_type)
    if _is_predictions(model):
        if transform is not None:
            raise InputError(f"{named}: predictions with a transform; {EXPECTED_PREDICTIONS}")
        predictions, digest = _checked(model, named, opened)
        return Results(opened, measured_model(named, predictions, opened, {"source_sha256": digest}), predictions)
    if transform is None and isinstance(images, ImageSet):
        transform = images.transform
    if transform is None:
        raise InputError(f"{named}: no transform; expected one from a PIL image to a tensor, such as timm's")

    predictions, record = predict(model, opened, transform, name=named, batch_size=batch_size)
    return Results(opened, measured_model(named, predictions, opened, record), predictions)


def _by_name(edition: Edition, wanted: Arguments, out: Path | None) -> Results:
    """The results of the command."""
    with needs_extra("evaluate"), TemporaryDirectory(prefix="cleanset-") as kept:
        from cleanset.evaluation.evaluate import run
        from cleanset.evaluation.run import PREDICTIONS
        from cleanset.tables import read_table

        with only_run(out):
            images, (row,) = run(edition, replace(wanted, out=out or Path(kept)))
        path = row.path or Path(kept)
        predictions = read_table(path, PREDICTIONS, images.classes)
    # what is kept for the call alone has no path
    return Results(images, row if out is not None else replace(row, path=None), predictions)


def _opened(images: ImageSet | str | Path, folder: Path, role: str | None) -> EvaluationSet:
    edition = Edition(folder)
    if isinstance(images, ImageSet):
        if role is not None:
            raise InputError(f"role {shown(role)}: goes with a list ({LIST_SUFFIX}); {images.folder} is a set")
        return open_set(str(images.folder), edition, ())
    roles = list(read_params(folder).models) if edition.params_yaml.is_file() else []
    return open_set_or_list(str(images), edition, roles, role)


def _is_predictions(model: object) -> bool:
    if isinstance(model, str | Path):
        if not str(model).endswith(PREDICTION_SUFFIXES):
            raise InputError(f"{shown(str(model))}; {EXPECTED_PREDICTIONS}")
        return True
    if isinstance(model, pd.DataFrame | pd.Series) or hasattr(model, "__array__"):
        return True
    if not callable(model):
        raise InputError(f"a value of type {type(model).__name__}; {EXPECTED_PREDICTIONS}")
    return False


def _checked(given: object, name: str, images: EvaluationSet) -> tuple[pd.DataFrame, str | None]:
    """The checked predictions, and the SHA-256 of their file if they are one."""
    if isinstance(given, str | Path):
        return read_predictions(Path(given), images)
    if isinstance(given, pd.DataFrame) and not all(isinstance(each, int) for each in given.columns):
        columns = {str(column): given[column].tolist() for column in given.columns}
        return checked_table(columns, name, lambda row: f"row {row + 1}", images), None
    return checked_array(_array(given, f"{name}:"), name, images), None


def _array(given: Any, name: str) -> NDArray[Any]:
    """A tensor or array of real numbers as an array. Raises CleansetError, naming the model, for any other values."""
    kind = f"{getattr(given, 'dtype', type(given).__name__)} {tuple(getattr(given, 'shape', ()))}"
    try:
        if hasattr(given, "detach"):  # a tensor may be on a device, need gradients, and have a type unknown to NumPy
            given = given.detach().cpu()
            given = given.double() if given.is_floating_point() else given
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:  # sparse, nested, or without values
        raise InputError(f"{name} {kind} that cannot be read ({reason(error)}); expected a dense array") from None
    if array.dtype.kind not in "biuf" or np.ma.is_masked(given):
        masked = ", some of them masked" if np.ma.is_masked(given) else ""
        raise InputError(f"{name} {kind}{masked}; expected real numbers")
    return array


def predict(
    model: Callable[[Any], Any],
    images: EvaluationSet,
    transform: Callable[[Image.Image], object],
    name: str,
    batch_size: int,
) -> tuple[pd.DataFrame, dict[str, JsonValue]]:
    """The predictions of a model, and a record: whether its first batch gives the same logits again, and among other
    images (`deterministic`), and a note on outputs that are probably not logits (`outputs`).

    Logits are ranked in float64 as `cleanset evaluate` ranks them. Raises CleansetError, naming the model, for an
    exception of the model or the transform, and for a model that does not give finite logits, one for each class, for
    each image.
    """
    import torch

    if not isinstance(batch_size, int | np.integer) or isinstance(batch_size, bool) or batch_size < 1:
        raise InputError(f"batch_size {shown(batch_size)}; expected a whole number, at least 1")
    files = [item.file for item in images.items]
    labels = np.array([item.class_index for item in images.items])
    columns: dict[str, list[object]] = {}
    deterministic = True
    gate = NetworkGate(name, len(images.classes))
    with ThreadPoolExecutor(available_cores()) as pool, _evaluating(model, name) as device, torch.inference_mode():

        def logits_of(batch: Sequence[str]) -> Floats:
            return _logits(model, _inputs(batch, images, transform, name, pool), batch, gate, device)

        batches = [files[start : start + batch_size] for start in range(0, len(files), batch_size)]
        for number, batch in enumerate(tracked(batches, len(batches), f"evaluate {name}")):
            found = logits_of(batch)
            if number == 0:
                _check_pixels(model, _inputs(batch, images, transform, name, pool), found, labels[: len(batch)], name)
                # the transform may be random, too
                others = batches_to_ask(len(batch))[1:]
                again = (logits_of([batch[each] for each in numbers]) for numbers in others)
                deterministic = dependence([found, *again], BATCH_TOLERANCE) is None
            for column, values in top5(found).items():
                columns.setdefault(column, []).extend(values)
    record: dict[str, JsonValue] = {"deterministic": deterministic}
    if (note := gate.note) is not None:
        record["outputs"] = note
    return scored_table(images.items, pd.DataFrame({"image_id": files, **columns})), record


def _check_pixels(model: Callable[[Any], Any], batch: Any, logits: Floats, labels: Ints, name: str) -> None:
    """Raise InputError for pixels from 0 to 255 where the network takes 0 to 1, or the other way round.

    Pixels alone cannot decide: some networks take whole numbers. It is certain where the network is correct on most
    images once they are scaled, and on few unscaled.
    """
    import torch

    correct = int((logits.argmax(axis=1) == labels).sum())
    if not isinstance(batch, torch.Tensor) or batch.is_complex() or 2 * correct >= len(labels):
        return
    low, high = float(batch.min()), float(batch.max())
    if low < 0 or high <= 0:  # normalized
        return
    factor = 1 / LEVELS if high > 1 else LEVELS
    network = model if isinstance(model, torch.nn.Module) else None
    weight = None if network is None else next(network.parameters(), None)
    scaled = (batch.double() * factor).to(torch.get_default_dtype() if weight is None else weight)
    try:
        found = np.asarray(model(scaled).detach().double().cpu().numpy())
    except Exception:  # whatever its code raises for pixels that it was not asked for
        return
    if found.shape == logits.shape and (better := int((found.argmax(axis=1) == labels).sum())) > max(
        MIN_BETTER * correct, len(labels) / 2
    ):
        kind = str(batch.dtype).removeprefix("torch.")
        remedy = (
            "end the transform with ToTensor in place of PILToTensor, or scale in the network"
            if high > 1
            else "end the transform with PILToTensor"
        )
        raise InputError(
            f"{name}: the network gets {kind} pixels, {low:g} to {high:g}, and is correct on {correct} of "
            f"{len(labels)} images; with pixels {'0 to 1' if high > 1 else '0 to 255'} on {better}: {remedy}"
        )


@contextmanager
def _evaluating(model: object, name: str) -> Iterator["torch.device | None"]:
    """Set a network to evaluation, unchanged at the end; the device of its first parameter."""
    from torch import nn

    if not isinstance(model, nn.Module):
        yield None
        return
    for weight, value in model.named_parameters():
        if nn.parameter.is_lazy(value) or value.is_meta:
            raise InputError(f"{name}: {weight} has no values yet; expected a network with its weights")
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        yield next((parameter.device for parameter in model.parameters()), None)
    finally:
        for part in training:
            part.training = True


def _inputs(
    files: Sequence[str],
    images: EvaluationSet,
    transform: Callable[[Image.Image], object],
    name: str,
    pool: ThreadPoolExecutor,
) -> Any:
    """A batch of transformed images, put together as torch's DataLoader does."""
    from torch.utils.data import default_collate

    def transformed(file: str) -> object:
        image = images.read(file)
        try:
            return transform(image.convert("RGB"))
        except (Exception, SystemExit) as error:  # whatever its code raises
            raise InputError(f"{name}: the transform raises {raised(error)} for {file}") from None

    parts = list(pool.map(transformed, files))
    try:
        return default_collate(parts)
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"{name}: the transform gives values of type {type(parts[0]).__name__} that make no batch "
            f"({reason(error)}); expected tensors of one shape: torchvision's ToTensor makes one of an image"
        ) from None


def _logits(
    model: Callable[[Any], Any],
    batch: Any,
    files: Sequence[str],
    gate: NetworkGate,
    device: "torch.device | None",
) -> Floats:
    """The logits of a batch, of shape (n, classes), in float64."""
    from cleanset.scoring.devices import to_device

    name = gate.name
    try:
        output = model(to_device(batch, device) if device is not None and hasattr(batch, "to") else batch)
    except (Exception, SystemExit) as error:  # whatever its code raises
        raise NetworkError(
            f"{name}: the network raises {raised(error)} for a batch of {len(files)} images; "
            "expected logits: correct it"
        ) from None
    shape = (len(files), gate.classes)
    if not hasattr(output, "__array__"):
        raise wrong_answer(name, f"a value of type {type(output).__name__}", *shape)
    kind = f"{str(output.dtype).removeprefix('torch.')} {tuple(output.shape)}"
    if tuple(output.shape) != shape:
        raise wrong_answer(name, kind, *shape)
    values = _array(output, f"{name}: the network gives")
    if values.dtype.kind != "f":
        raise wrong_answer(name, kind, *shape)
    logits = values.astype(np.float64)
    finite = np.isfinite(logits).all(axis=1)
    if not finite.all():
        raise not_finite(f"{name}, {files[int(np.argmin(finite))]}")
    gate.check(logits)
    return logits
