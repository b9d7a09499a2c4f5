"""Running a model over batches of pictures: the only computation that wants a GPU.

In float64 the logits of different machines differ by some 1e-14, and the probabilities, stored as
float32, are then the same; in float32 they differ in the seventh digit.
"""

import copy
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanset.errors import CleansetError
from cleanset.ilsvrc import CLASSES
from cleanset.scoring.decoding import Batch
from cleanset.scoring.models import LoadedModel

TOP = 5
CPU_BATCH = 4
"""Pictures at a time without a GPU: with more, half of the time goes into fetching fresh memory."""

Precision = Literal["float64", "float32", "tf32", "bfloat16"]
DTYPES = {"float64": torch.float64, "float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.float32}
"""Of weights and pixels; bfloat16 is autocast's, operation by operation."""

In = TypeVar("In")
Out = TypeVar("Out")


class Scored(NamedTuple):
    """The five highest classes of some pictures, and their probabilities: arrays of shape (n, 5)."""

    image_ids: Sequence[str]
    classes: NDArray[np.int16]
    probabilities: NDArray[np.float32]


def choose_devices(device: str) -> list[torch.device]:
    """The devices of that name; `auto` is every CUDA device, or the CPU where there is none.

    Raises CleansetError if a device is not there.
    """
    if device == "auto":
        return [torch.device("cuda", number) for number in range(torch.cuda.device_count())] or [torch.device("cpu")]
    chosen = torch.device(device)
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise CleansetError(
            f"score.device {device}: {torch.cuda.device_count()} CUDA devices found; expected one: take auto or cpu"
        )
    return [chosen]


@contextmanager
def arithmetic(precision: Precision) -> Iterator[None]:
    """Switch torch, for all threads, to what a precision means, and back again.

    In float64 and float32 nothing may differ from run to run: no TF32, no autotuning, no atomics.
    """
    exact = precision in ("float64", "float32")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic only with it
    cuda, cudnn, utils = torch.backends.cuda.matmul, torch.backends.cudnn, cast(Any, torch.utils.deterministic)
    before = (cuda.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic)
    deterministic = torch.are_deterministic_algorithms_enabled()
    filling: bool = utils.fill_uninitialized_memory
    cuda.allow_tf32 = cudnn.allow_tf32 = precision == "tf32"
    cudnn.benchmark, cudnn.deterministic = not exact, exact
    utils.fill_uninitialized_memory = False  # it only costs time
    torch.use_deterministic_algorithms(exact)
    try:
        yield
    finally:
        cuda.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic = before
        utils.fill_uninitialized_memory = filling
        torch.use_deterministic_algorithms(deterministic)


class Meter:
    """How long nothing was computed because no batch was there, as a share of the time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start = self._idle_since = perf_counter()
        self._idle, self._running = 0.0, 0

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Around each computation; they may overlap."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def begin(self) -> None:
        with self._lock:
            if self._running == 0:
                self._idle += perf_counter() - self._idle_since
            self._running += 1

    def end(self) -> None:
        with self._lock:
            self._running -= 1
            self._idle_since = perf_counter()

    def waiting(self) -> float:
        """The share so far."""
        with self._lock:
            now = perf_counter()
            idle = self._idle + (now - self._idle_since if self._running == 0 else 0)
            return idle / max(now - self._start, 1e-9)


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


class Scorer:
    """A copy of a model on one device, in one precision.

    When the device's memory runs out, batches go through the network in halves from then on. `say`
    is told of it.
    """

    def __init__(
        self,
        model: LoadedModel,
        device: torch.device,
        precision: Precision,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.device, self.meter = device, Meter()
        self._precision, self._say = precision, say
        self._network = copy.deepcopy(model.network).to(device, DTYPES[precision])
        self._most: int | None = None

    def __call__(self, batches: Iterable[Batch], threads: int = 1) -> Generator[Scored, None, None]:
        """What the model says of the pictures of each batch, in order; a little ahead is drawn from `batches`.

        Without a GPU, `threads` batches are computed at a time. Raises CleansetError if the model does
        not give 1,000 finite logits for each picture.
        """
        return self._on_cuda(batches) if self.device.type == "cuda" else self._on_cpu(batches, threads)

    def _on_cpu(self, batches: Iterable[Batch], threads: int) -> Generator[Scored, None, None]:
        def work(batch: Batch) -> Scored:
            with self.meter.computing():
                return _scored(batch.image_ids, self._logits(torch.from_numpy(batch.pixels), len(batch.image_ids)))

        # whole batches side by side, each in one thread: faster than many threads inside an operator,
        # and the number of cores does not show in the result
        with (
            ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool,
            closing(_ahead(pool, work, batches, threads)) as scored,
        ):
            yield from scored

    def _on_cuda(self, batches: Iterable[Batch]) -> Generator[Scored, None, None]:
        """While the device computes one batch, the next is decoded and copied, and the one before is ranked."""

        def collect(image_ids: Sequence[str], logits: Tensor, finished: torch.cuda.Event) -> Scored:
            finished.synchronize()
            self.meter.end()
            return _scored(image_ids, logits)

        with torch.cuda.device(self.device), ThreadPoolExecutor(1) as pool:
            computing, copying = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
            waiting: deque[Future[Scored]] = deque()
            for image_ids, memory in batches:
                with torch.cuda.stream(copying):
                    pixels = torch.from_numpy(memory).to(self.device, non_blocking=True)
                    copied = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
                    copied.record(copying)
                computing.wait_event(copied)
                pixels.record_stream(computing)
                self.meter.begin()
                on_device = self._logits(pixels, len(image_ids))
                logits = torch.empty(on_device.shape, dtype=on_device.dtype, pin_memory=True)
                logits.copy_(on_device, non_blocking=True)
                finished = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
                finished.record(computing)
                waiting.append(pool.submit(collect, image_ids, logits, finished))
                copied.synchronize()  # the batch's memory may be filled anew once the next is asked for
                if len(waiting) > 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _logits(self, pixels: Tensor, count: int) -> Tensor:
        """Logits of the first `count` of `pixels`, which are uint8 and on the device; the others fill it up."""
        most = min(len(pixels), self._most or len(pixels))
        while True:
            try:
                logits = torch.cat([self._forward(part) for part in torch.split(pixels, most)])
            except torch.OutOfMemoryError:
                logits = None  # dealt with outside, where the exception no longer holds on to memory
            if logits is not None:
                break
            if most == 1:
                raise CleansetError(
                    f"{self.device}: no memory for even one picture at a time; expected a larger device: "
                    "end what else runs on it, or take score.device cpu"
                )
            most = (most + 1) // 2
            self._most = min(most, self._most or most)
            same = ", for the same result" if self._precision == "float64" else ""
            self._say(f"{self.device}: out of memory; going on with {most} pictures at a time{same}")
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
        if logits.shape != (len(pixels), CLASSES):
            found = (count, *logits.shape[1:])
            raise CleansetError(f"the model gives {found} for {count} pictures; expected {CLASSES} classes each")
        return logits[:count].double()

    def _forward(self, pixels: Tensor) -> Tensor:
        lower = torch.autocast(self.device.type, torch.bfloat16, enabled=self._precision == "bfloat16")
        with torch.inference_mode(), lower:
            logits: Tensor = self._network(pixels.to(DTYPES[self._precision]) / 255)
        return logits


def _scored(image_ids: Sequence[str], logits: Tensor) -> Scored:
    values = logits.numpy()
    try:
        return Scored(image_ids, *top5(values))
    except ValueError as error:
        first = int(np.argmin(np.isfinite(values).all(axis=1)))
        raise CleansetError(
            f"{image_ids[first]}: {error}; the weights are broken, or the precision does not suffice: try float64"
        ) from None


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


def to_table(scored: Iterable[Scored]) -> pd.DataFrame:
    """The columns of table SCORES."""
    image_ids: list[str] = []
    classes: list[NDArray[np.int16]] = []
    probabilities: list[NDArray[np.float32]] = []
    for each in scored:
        image_ids.extend(each.image_ids)
        classes.extend(each.classes)
        probabilities.extend(each.probabilities)
    return pd.DataFrame({"image_id": image_ids, "top5_class": classes, "top5_probability": probabilities})


def grouped(image_ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """`size` image ids at a time; the last group may be smaller."""
    return (image_ids[start : start + size] for start in range(0, len(image_ids), size))
