"""Running a model over pictures: the only computation that wants a GPU.

In float64 the logits of different machines differ by some 1e-14, and the probabilities, stored as
float32, are then the same; in float32 they differ in the seventh digit.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from cleanset.errors import CleansetError
from cleanset.ilsvrc import CLASSES
from cleanset.images import Preprocessing, decode
from cleanset.models import LoadedModel

TOP = 5
DTYPES = {"float64": torch.float64, "float32": torch.float32}

Read = Callable[[str], bytes]


def choose_device(device: str) -> torch.device:
    """The device of that name; `auto` is CUDA where there is one. Raises CleansetError if it is not there."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = torch.device(device)
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise CleansetError(
            f"score.device {device}: {torch.cuda.device_count()} CUDA devices found; expected one: take auto or cpu"
        )
    return chosen


def make_exact() -> None:
    """Switch off what makes float32 results differ from run to run: TF32, autotuning, atomics."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True


class _Decoded(Dataset[NDArray[np.uint8] | str]):
    """The preprocessed picture, or what is wrong with it: an exception would lose its words on the way."""

    def __init__(self, image_ids: Sequence[str], read: Read, preprocessing: Preprocessing) -> None:
        self._image_ids, self._read, self._preprocessing = image_ids, read, preprocessing

    def __len__(self) -> int:
        return len(self._image_ids)

    def __getitem__(self, position: int) -> NDArray[np.uint8] | str:
        image_id = self._image_ids[position]
        try:
            return self._preprocessing(decode(self._read(image_id)))
        except CleansetError as error:
            return str(error)
        except ValueError as error:
            return f"{image_id}: cannot be read ({error}); expected a whole JPEG"


def _collate(items: Sequence[NDArray[np.uint8] | str]) -> Tensor | str:
    pictures = []
    for item in items:
        if isinstance(item, str):
            return item
        pictures.append(item)
    return torch.from_numpy(np.stack(pictures))


def batches(
    image_ids: Sequence[str], read: Read, preprocessing: Preprocessing, batch_size: int, workers: int, pin: bool
) -> Iterator[Tensor]:
    """Preprocessed pictures in order, uint8 of shape (n, 3, size, size), decoded in worker processes.

    Raises CleansetError, naming the picture, for the first that cannot be read.
    """
    dataset = _Decoded(image_ids, read, preprocessing)
    loader: DataLoader[NDArray[np.uint8] | str] = DataLoader(
        dataset, batch_size, num_workers=workers, collate_fn=_collate, pin_memory=pin
    )
    for batch in loader:
        if isinstance(batch, str):
            raise CleansetError(batch)
        yield batch


def top5(logits: NDArray[np.float64]) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    """The five highest classes and their softmax probabilities, from logits of shape (n, 1000).

    Equal probabilities: the lower class first. Raises ValueError if a logit is not finite.
    """
    if not np.isfinite(logits).all():
        raise ValueError("a logit is NaN or infinite")
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :TOP]
    return order.astype(np.int16), np.take_along_axis(probabilities, order, axis=1).astype(np.float32)


def score(
    model: LoadedModel,
    image_ids: Sequence[str],
    pictures: Iterator[Tensor],
    device: torch.device,
    precision: Literal["float64", "float32"],
) -> pd.DataFrame:
    """The five highest classes and probabilities of every picture: the columns of table SCORES.

    `pictures` are batches in the order of `image_ids`. Raises CleansetError if the model does not
    give 1,000 finite logits for each.
    """
    dtype = DTYPES[precision]
    network = model.network.to(device, dtype)
    classes: list[NDArray[np.int16]] = []
    probabilities: list[NDArray[np.float32]] = []
    done = 0
    for batch in pictures:
        with torch.inference_mode():
            logits = network(batch.to(device, non_blocking=True).to(dtype) / 255)
        if logits.shape != (len(batch), CLASSES):
            found = tuple(logits.shape)
            raise CleansetError(f"the model gives {found} for {len(batch)} pictures; expected {CLASSES} classes each")
        try:
            batch_classes, batch_probabilities = top5(logits.double().cpu().numpy())
        except ValueError as error:
            raise CleansetError(
                f"{image_ids[done]} to {image_ids[done + len(batch) - 1]}: {error}; the weights are broken, "
                "or the precision does not suffice: try float64"
            ) from None
        classes.extend(batch_classes)
        probabilities.extend(batch_probabilities)
        done += len(batch)
    return pd.DataFrame({"image_id": image_ids, "top5_class": classes, "top5_probability": probabilities})
