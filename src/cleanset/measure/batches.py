"""Running any callable over the batches of a set, with the transform of one's own."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import default_collate

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.errors import CleansetError, reason
from cleanset.measure.prediction_tables import scored_table
from cleanset.measure.sets import EvaluationSet
from cleanset.progress import available_cores, tracked
from cleanset.scoring.logits import top5

SUM_TOLERANCE = 1e-3
"""Rows of values from 0 to 1 whose sums are this close to 1 are probabilities, not logits."""


def predict(
    model: Callable[[Any], Any], images: EvaluationSet, transform: Callable[[Any], Any], name: str, batch_size: int
) -> tuple[pd.DataFrame, bool]:
    """The predictions of a model, and whether it gives the same logits for the first batch twice.

    Logits are ranked in float64 as `cleanset evaluate` ranks them. Raises CleansetError, naming the model, for what the
    model or the transform raises, and for a model that does not give 1,000 finite logits for each image.
    """
    if batch_size < 1:
        raise CleansetError(f"batch_size {batch_size}; expected at least 1")
    files = [item.file for item in images.items]
    columns: dict[str, list[Any]] = {}
    deterministic = True
    with ThreadPoolExecutor(available_cores()) as pool, _evaluating(model) as device, torch.inference_mode():
        batches = [files[start : start + batch_size] for start in range(0, len(files), batch_size)]
        for number, batch in enumerate(tracked(batches, len(batches), f"evaluate {name}")):
            found = _logits(model, _inputs(batch, images, transform, name, pool), batch, name, device)
            if number == 0:
                # the transform may be random, too
                again = _logits(model, _inputs(batch, images, transform, name, pool), batch, name, device)
                deterministic = bool(np.array_equal(found, again))
            for column, values in top5(found).items():
                columns.setdefault(column, []).extend(values)
    return scored_table(images.items, pd.DataFrame({"image_id": files, **columns})), deterministic


@contextmanager
def _evaluating(model: object) -> Iterator[torch.device | None]:
    """Set a network to evaluation, as it was before at the end; the device of its first parameter."""
    if not isinstance(model, nn.Module):
        yield None
        return
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        yield next((parameter.device for parameter in model.parameters()), None)
    finally:
        for part in training:
            part.training = True


def _inputs(
    files: Sequence[str], images: EvaluationSet, transform: Callable[[Any], Any], name: str, pool: ThreadPoolExecutor
) -> Any:
    """A batch of transformed images, put together as torch's DataLoader does."""

    def transformed(file: str) -> Any:
        image = cast(Image.Image, images.read(file))  # a set in a folder is decoded when it is read
        try:
            return transform(image.convert("RGB"))
        except (Exception, SystemExit) as error:  # whatever its code raises
            raise CleansetError(f"{name}: the transform raises {_shown(error)} for {file}") from None

    parts = list(pool.map(transformed, files))
    try:
        return default_collate(parts)
    except (TypeError, RuntimeError) as error:
        raise CleansetError(
            f"{name}: the transform gives values of type {type(parts[0]).__name__} that make no batch "
            f"({reason(error)}); expected tensors of one shape: torchvision's ToTensor makes one of an image"
        ) from None


def _logits(
    model: Callable[[Any], Any], batch: Any, files: Sequence[str], name: str, device: torch.device | None
) -> NDArray[np.float64]:
    """The logits of a batch, of shape (n, 1000), in float64."""
    try:
        output = model(batch.to(device) if device is not None and isinstance(batch, Tensor) else batch)
    except (Exception, SystemExit) as error:  # whatever its code raises
        raise CleansetError(f"{name}: the model raises {_shown(error)} for a batch of {len(files)} images") from None
    expected = f"expected logits of shape {(len(files), CLASSES)}"
    if not isinstance(output, Tensor | np.ndarray):
        raise CleansetError(f"{name}: the model gives a value of type {type(output).__name__}; {expected}")
    if tuple(output.shape) != (len(files), CLASSES):
        raise CleansetError(f"{name}: the model gives {output.dtype} {tuple(output.shape)}; {expected}")
    logits: NDArray[np.float64] = torch.as_tensor(output).detach().cpu().double().numpy()
    finite = np.isfinite(logits).all(axis=1)
    if not finite.all():
        raise CleansetError(
            f"{name}, {files[int(np.argmin(finite))]}: a logit is NaN or infinite; expected finite ones"
        )
    if (logits >= 0).all() and (np.abs(logits.sum(axis=1) - 1) < SUM_TOLERANCE).all():
        raise CleansetError(f"{name}: the model gives probabilities; {expected}: leave out its softmax")
    return logits


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__} ({reason(error)})"
