"""`cleanset.evaluate`: the measures of a model, or of its predictions, on a set."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.measure.command import MeasuredModel, as_json, content, measured
from cleanset.measure.measures import Answers, Pair, pairs_of
from cleanset.measure.prediction_files import ENDINGS, read_predictions
from cleanset.measure.prediction_tables import checked_array, checked_table
from cleanset.measure.sets import EvaluationSet, open_set
from cleanset.sets.image_set import ImageSet
from cleanset.validation import shown

WIDTH = 80
"""Columns of the printed results."""
EXPECTED = (
    "expected a callable on batches with transform=, a file that ends in .csv or .parquet, a table with the column "
    "image, or an array in the order of the set"
)


class Results:
    """The measures of one model on a set; printed as the command `cleanset evaluate` prints them.

    `predictions` has a row for each image, sorted by file, with the columns file, class_index (of the set), tier,
    prediction and correct, and, where they are known, confidence, top5_class and top5_probability.
    """

    def __init__(self, images: EvaluationSet, model: MeasuredModel, predictions: pd.DataFrame) -> None:
        self.images, self.model, self.predictions = images, model, predictions

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Results({self.model.name}: {self.accuracy:.4f} ({low:.4f} to {high:.4f}) on {self.images.name})"

    def __str__(self) -> str:
        from cleanset.measure.terminal import as_text

        console = Console(width=WIDTH, color_system=None)
        with console.capture() as printed:
            console.print(as_text(self.images, [self.model], 10), highlight=False)
        return printed.get()

    @property
    def accuracy(self) -> float:
        """Top-1 accuracy, 0 to 1."""
        return self.model.measures.overall.share

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy."""
        return self.model.measures.overall.interval

    @property
    def top5_accuracy(self) -> float | None:
        """Top-5 accuracy, 0 to 1; None where only one class of each image is known."""
        top5 = self.model.measures.top5
        return None if top5 is None else top5.share

    @property
    def calibration_error(self) -> float | None:
        """The expected calibration error, 0 to 1; None where no probabilities are known."""
        return self.model.measures.calibration_error

    @property
    def is_deterministic(self) -> bool | None:
        """Whether the first batch gave the same logits twice; None for predictions."""
        return self.model.is_deterministic

    def as_dict(self) -> dict[str, Any]:
        """The content of the JSON that the command prints."""
        return content(self.images, [self.model])

    def as_json(self) -> str:
        """The JSON that the command prints."""
        return as_json(self.images, [self.model])

    def compare(self, other: "Results") -> Pair:
        """This model and another one, compared image by image. Raises CleansetError for results on other images."""
        mine, theirs = ([(item.file, item.sha256) for item in each.images.items] for each in (self, other))
        if mine != theirs:
            raise CleansetError(f"{self!r} and {other!r}: of different images; expected results on the same set")
        (pair,) = pairs_of([Answers(each.model.name, each.model.correct) for each in (self, other)])
        return pair

    def write_page(self, folder: str | Path, *others: "Results") -> None:
        """Write the page of `--report` into a folder, with these and other results on the same images."""
        from cleanset.measure.page import write_page

        names = [self.model.name, *(other.model.name for other in others)]
        if len(set(names)) < len(names):
            raise CleansetError(f"results of {', '.join(names)}; expected different names: give evaluate a name=")
        for other in others:
            self.compare(other)
        write_page(Path(folder), self.images, [self.model, *(other.model for other in others)])


def evaluate(
    model: Any,
    images: ImageSet | str | Path,
    transform: Callable[[Any], Any] | None = None,
    *,
    name: str | None = None,
    batch_size: int = 32,
    edition: str | Path = ".",
) -> Results:
    """The accuracy, with interval, and the other measures of a model on a finished set.

    `model` maps a batch, what torch's default_collate makes of the tensors that `transform` makes of PIL images (RGB),
    to logits of shape (n, 1000) in the order of the class indices; a torch.nn.Module is set to evaluation meanwhile,
    and gets the batch on its own device. Or `model` is its predictions: a file as `cleanset evaluate --predictions`
    takes it, a table with the same columns, or an array in the order of the set, either class indices of shape (n) or
    probabilities of shape (n, 1000).

    `images` is what `cleanset.load` returns, whose transform is taken unless another is given, or the folder of a set,
    or a role of the edition in the folder `edition`. Every image is checked against the manifest. `name` stands in the
    results. Raises CleansetError for anything that does not fit, naming the first image or row.
    """
    opened = _opened(images, Path(edition))
    named = name or _name_of(model)
    if _is_predictions(model):
        if transform is not None:
            raise CleansetError(f"{named}: predictions with a transform; {EXPECTED}")
        predictions, digest = _checked(model, named, opened)
        return Results(opened, measured(named, predictions, {"source_sha256": digest}), predictions)
    if transform is None and isinstance(images, ImageSet):
        transform = images.transform
    if transform is None:
        raise CleansetError(f"{named}: no transform; expected one from a PIL image to a tensor, such as timm's")

    from cleanset.measure.batches import predict

    predictions, deterministic = predict(model, opened, transform, named, batch_size)
    return Results(opened, measured(named, predictions, {"deterministic": deterministic}), predictions)


def _opened(images: ImageSet | str | Path, folder: Path) -> EvaluationSet:
    edition = Edition(folder)
    if isinstance(images, ImageSet):
        return open_set(str(images.folder), edition, ())
    roles = list(read_params(folder).models) if edition.params_yaml.is_file() else []
    return open_set(str(images), edition, roles)


def _name_of(model: object) -> str:
    """A name for a model that was given none: its file, its function, or its type."""
    if isinstance(model, str | Path):
        return str(model)
    return str(getattr(model, "__name__", type(model).__name__))


def _is_predictions(model: object) -> bool:
    if isinstance(model, str | Path):
        if not str(model).endswith(ENDINGS):
            raise CleansetError(f"{shown(str(model))}; {EXPECTED}: cleanset evaluate takes models by name")
        return True
    if isinstance(model, pd.DataFrame | pd.Series | np.ndarray) or hasattr(model, "__array__"):
        return True
    if not callable(model):
        raise CleansetError(f"a value of type {type(model).__name__}; {EXPECTED}")
    return False


def _checked(given: Any, name: str, images: EvaluationSet) -> tuple[pd.DataFrame, str | None]:
    """The checked predictions, and the SHA-256 of their file if they are one."""
    if isinstance(given, str | Path):
        return read_predictions(Path(given), images)
    if isinstance(given, pd.DataFrame) and not all(isinstance(each, int) for each in given.columns):
        columns = {str(column): given[column].tolist() for column in given.columns}
        return checked_table(columns, name, lambda row: f"row {row + 1}", images), None
    # a tensor may be on a device, and need gradients
    array = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    return checked_array(array, name, images), None
