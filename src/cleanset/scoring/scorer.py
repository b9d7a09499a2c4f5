"""Running a model over batches of images: the computation that needs a GPU to be fast.

In float64 the logits of different machines differ by some 1e-14, and the probabilities, stored as
float32, are then the same; in float32 they differ in the seventh digit.
"""

import copy
import os
import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from time import perf_counter
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from cleanset.edition.params import Precision
from cleanset.errors import CleansetError
from cleanset.scoring.decoding import PixelBatch, in_order
from cleanset.scoring.devices import Device, Wait
from cleanset.scoring.gate import not_finite, wrong_answer
from cleanset.scoring.logits import ReadOff, ScoreColumns, top5
from cleanset.scoring.models import LoadedModel

# types of weights and pixels; bfloat16 is autocast's, operation by operation
DTYPES = {"float64": torch.float64, "float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.float32}

Notify = Callable[[str], None]
"""Called with a line for the user."""

In = TypeVar("In")


def ignore(*_: object) -> None:
    """Show nothing."""


class Scored(NamedTuple):
    """The results read from the logits of n images."""

    image_ids: Sequence[Hashable]
    columns: ScoreColumns


@contextmanager
def arithmetic(precision: Precision) -> Iterator[None]:
    """Set torch's global switches for a precision, and restore them at the end: in one thread at a time.

    In float64 and float32 nothing may differ from run to run: no TF32, no autotuning, no atomics.
    """
    exact = precision in ("float64", "float32")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic only with it
    cuda = torch.backends.cuda.matmul
    cudnn = torch.backends.cudnn
    utils = cast(Any, torch.utils.deterministic)
    before = (cuda.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic)
    deterministic = torch.are_deterministic_algorithms_enabled()
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    filling: bool = utils.fill_uninitialized_memory
    cuda.allow_tf32 = cudnn.allow_tf32 = precision == "tf32"
    cudnn.benchmark = not exact
    cudnn.deterministic = exact
    utils.fill_uninitialized_memory = False  # it only costs time
    torch.use_deterministic_algorithms(exact)
    try:
        yield
    finally:
        cuda.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic = before
        utils.fill_uninitialized_memory = filling
        torch.use_deterministic_algorithms(deterministic, warn_only=only_warns)


class WaitingTime:
    """Measures the share of the time spent waiting for a batch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start = self._idle_since = perf_counter()
        self._idle = 0.0
        self._running = 0

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Count the time of the block as computing; blocks of several threads may overlap."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def begin(self) -> None:
        """A computation begins."""
        with self._lock:
            if self._running == 0:
                self._idle += perf_counter() - self._idle_since
            self._running += 1

    def end(self) -> None:
        """A computation ends."""
        with self._lock:
            self._running -= 1
            self._idle_since = perf_counter()

    def share(self) -> float:
        """The share so far, between 0 and 1."""
        with self._lock:
            now = perf_counter()
            idle = self._idle + (now - self._idle_since if self._running == 0 else 0)
            return idle / max(now - self._start, 1e-9)


class Scorer:
    """A copy of a model on one device, in one precision; `read_off` maps logits to the stored columns.

    When the device's memory runs out, batches go through the network in halves from then onwards, and
    `notify` is called at each halving.
    """

    def __init__(
        self,
        model: LoadedModel,
        device: Device,
        precision: Precision,
        notify: Notify = ignore,
        read_off: ReadOff = top5,
    ) -> None:
        self.device = device
        self.waiting = WaitingTime()
        self._precision = precision
        self._notify = notify
        self._read_off = read_off
        self._network = copy.deepcopy(model.network).to(device.torch, DTYPES[precision])
        self._classes = model.classes
        self._max_images: int | None = None

    def __call__(self, batches: Iterable[PixelBatch], threads: int = 1) -> Generator[Scored, None, None]:
        """The scores of each batch, in order; a few batches are taken from `batches` ahead of time.

        Without a GPU, `threads` batches are computed at a time. Raises CleansetError if the model does
        not give a finite logit for each class and image.
        """
        return self._ahead(batches) if self.device.is_separate else self._in_threads(batches, threads)

    def _in_threads(self, batches: Iterable[PixelBatch], threads: int) -> Generator[Scored, None, None]:
        def work(batch: PixelBatch) -> Scored:
            with self.waiting.computing():
                return self._scored(batch.image_ids, self._logits(torch.from_numpy(batch.pixels), len(batch.image_ids)))

        # whole batches in parallel, each in one thread: faster than many threads inside an operator,
        # and the result does not depend on the number of cores
        with (
            ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool,
            closing(in_order((pool.submit(work, each) for each in batches), threads)) as scored,
        ):
            yield from scored

    def _ahead(self, batches: Iterable[PixelBatch]) -> Generator[Scored, None, None]:
        """While the device computes one batch, the next is decoded and copied, and the one before is ranked."""

        def collect(image_ids: Sequence[Hashable], logits: Tensor, wait: Wait) -> Scored:
            wait()
            self.waiting.end()
            return self._scored(image_ids, logits)

        def started() -> Iterator[Future[Scored]]:
            for image_ids, memory in batches:
                pixels, wait_for_copy = self.device.upload(memory)
                self.waiting.begin()
                logits, wait = self.device.download(self._logits(pixels, len(image_ids)))
                future = pool.submit(collect, image_ids, logits, wait)
                wait_for_copy()  # the batch's memory may be overwritten once the next batch is asked for
                yield future

        with self.device.use(), ThreadPoolExecutor(1) as pool, closing(in_order(started(), 1)) as scored:
            yield from scored

    def _logits(self, pixels: Tensor, count: int) -> Tensor:
        """Logits, float64, of the first `count` images of `pixels`, uint8 on the device; the others are padding."""
        most = min(len(pixels), self._max_images or len(pixels))
        while True:
            try:
                logits = torch.cat([self._forward(part) for part in torch.split(pixels, most)])
            except torch.OutOfMemoryError:
                logits = None  # handled below, where the exception no longer keeps memory alive
            if logits is not None:
                break
            if most == 1:
                raise CleansetError(
                    f"{self.device}: no memory for even one image at a time; expected a larger device: "
                    "end other programs on it, or set the device cpu"
                )
            most = (most + 1) // 2
            self._max_images = min(most, self._max_images or most)
            same = ", for the same result" if self._precision == "float64" else ""
            self._notify(f"{self.device}: out of memory; continuing with {most} images at a time{same}")
            self.device.free_memory()
        if logits.shape != (len(pixels), self._classes):
            raise wrong_answer("the model", str((count, *logits.shape[1:])), count, self._classes)
        return logits[:count].double()

    def _forward(self, pixels: Tensor) -> Tensor:
        lower = torch.autocast(self.device.torch.type, torch.bfloat16, enabled=self._precision == "bfloat16")
        with torch.inference_mode(), lower:
            logits: Tensor = self._network(pixels.to(DTYPES[self._precision]) / 255)
        return logits

    def _scored(self, image_ids: Sequence[Hashable], logits: Tensor) -> Scored:
        values = logits.numpy()
        try:
            return Scored(image_ids, self._read_off(values, image_ids))
        except ValueError:
            first = int(np.argmin(np.isfinite(values).all(axis=1)))
            raise not_finite(image_ids[first]) from None


def to_table(scored: Iterable[Scored]) -> pd.DataFrame:
    """Scores as a table: the image ids (a column for each part of named tuples), and the columns read off."""
    image_ids = list[Hashable]()
    columns = dict[str, list[object]]()
    for each in scored:
        image_ids.extend(each.image_ids)
        for name, values in each.columns.items():
            columns.setdefault(name, []).extend(values)
    return pd.DataFrame({**pd.DataFrame(image_ids).rename(columns={0: "image_id"}), **columns})


def grouped(image_ids: Sequence[In], size: int) -> Iterator[Sequence[In]]:
    """Groups of `size` image ids; the last one may be smaller."""
    return (image_ids[start : start + size] for start in range(0, len(image_ids), size))
