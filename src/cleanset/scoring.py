"""Running a model over pictures: the only computation that wants a GPU.

In float64 the logits of different machines differ by some 1e-14, and the probabilities, stored as
float32, are then the same; in float32 they differ in the seventh digit.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import Literal, TypeVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanset.errors import CleansetError
from cleanset.ilsvrc import CLASSES
from cleanset.images import Preprocessing, decode
from cleanset.models import LoadedModel

TOP = 5
CPU_BATCH = 4
"""Pictures at a time without a GPU: with more, half of the time goes into fetching fresh memory."""
DTYPES = {"float64": torch.float64, "float32": torch.float32}

Read = Callable[[str], bytes]
In = TypeVar("In")
Out = TypeVar("Out")


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


def batches(
    image_ids: Sequence[str], read: Read, preprocessing: Preprocessing, batch_size: int, workers: int, pin: bool
) -> Iterator[Tensor]:
    """Preprocessed pictures in order, uint8 of shape (n, 3, size, size), decoded ahead in `workers` threads.

    Raises CleansetError, naming the picture, for the first that cannot be read.
    """

    def pixels(image_id: str) -> NDArray[np.uint8]:
        data = read(image_id)
        try:
            return preprocessing(decode(data))
        except ValueError as error:
            raise CleansetError(f"{image_id}: cannot be read ({error}); expected a whole JPEG") from None

    def whole(pictures: list[NDArray[np.uint8]]) -> Tensor:
        batch = torch.from_numpy(np.stack(pictures))
        return batch.pin_memory() if pin else batch

    # threads suffice: Pillow releases the lock for all but a quarter of a millisecond per picture
    with ThreadPoolExecutor(workers) as pool, closing(_ahead(pool, pixels, image_ids, 2 * batch_size)) as pictures:
        while batch := list(islice(pictures, batch_size)):
            yield whole(batch)


def _ahead(pool: Executor, function: Callable[[In], Out], items: Iterable[In], most: int) -> Generator[Out, None, None]:
    """`function` of each item, in order, computed in `pool`, at most `most` items ahead of what is taken."""
    waiting: deque[Future[Out]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


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
    pictures: Iterable[Tensor],
    device: torch.device,
    precision: Literal["float64", "float32"],
) -> pd.DataFrame:
    """The five highest classes and probabilities of every picture: the columns of table SCORES.

    `pictures` are batches in the order of `image_ids`. Raises CleansetError if the model does not
    give 1,000 finite logits for each.
    """
    dtype = DTYPES[precision]
    network = model.network.to(device, dtype)

    def top5_of(batch: Tensor) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
        with torch.inference_mode():
            logits = network(batch.to(device, non_blocking=True).to(dtype) / 255)
        if logits.shape != (len(batch), CLASSES):
            found = tuple(logits.shape)
            raise CleansetError(f"the model gives {found} for {len(batch)} pictures; expected {CLASSES} classes each")
        return top5(logits.double().cpu().numpy())

    # without a GPU whole batches run side by side, each in one thread: that is faster than many threads
    # inside an operator, and the number of cores does not show in the result
    threads = 1 if device.type == "cuda" else len(os.sched_getaffinity(0))
    classes: list[NDArray[np.int16]] = []
    probabilities: list[NDArray[np.float32]] = []
    with (
        ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool,
        closing(_ahead(pool, top5_of, pictures, threads)) as scored,
    ):
        try:
            for batch_classes, batch_probabilities in scored:
                classes.extend(batch_classes)
                probabilities.extend(batch_probabilities)
        except ValueError as error:
            raise CleansetError(
                f"{image_ids[len(classes)]} or one soon after: {error}; the weights are broken, "
                "or the precision does not suffice: try float64"
            ) from None
    return pd.DataFrame({"image_id": image_ids, "top5_class": classes, "top5_probability": probabilities})
