"""The scores of many pictures: from the archive through decoding and the devices into shards."""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from cleanset.images import Source
from cleanset.params import Score
from cleanset.scoring.decoding import SharedBatches, in_threads
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import CPU_BATCH, Precision, Scored, Scorer, arithmetic, choose_devices, grouped, to_table
from cleanset.scoring.shards import Shards

Done = Callable[[int, float], None]
"""Is told of so many more pictures, and of the share of the time that was spent waiting for data."""


def silent(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to compute; in float64 none of it shows in the result. `workers` decode, in all."""

    devices: Sequence[torch.device]
    precision: Precision
    batch_size: int
    workers: int


def settings_for(score: Score) -> Settings:
    """How to compute here: the devices, the batch size, as many workers as there are cores."""
    devices = choose_devices(score.device)
    on_cpu = devices[0].type == "cpu"
    batch_size = min(score.batch_size, CPU_BATCH) if on_cpu else score.batch_size
    return Settings(devices, score.precision, batch_size, len(os.sched_getaffinity(0)))


class Lane:
    """One device with a copy of the model, and those that decode for it; a context that ends them."""

    def __init__(
        self,
        model: LoadedModel,
        read: Source,
        device: torch.device,
        precision: Precision,
        batch_size: int,
        workers: int,
        say: Callable[[str], None] = silent,
    ) -> None:
        self._read, self._preprocessing = read, model.preprocessing
        self._batch_size, self._workers = batch_size, workers
        self._scorer = Scorer(model, device, precision, say)
        self._open = ExitStack()
        self._shared: SharedBatches | None = None
        if device.type == "cuda":
            shared = SharedBatches(read, model.preprocessing, batch_size, workers)
            self._shared = self._open.enter_context(shared)
            self._open.enter_context(_pinned(shared.memory))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.__exit__(kind, error, at)

    def score(self, groups: Iterable[Sequence[str]]) -> Generator[Scored, None, None]:
        """What the model says of each group of at most a batch of pictures, in order."""
        if self._shared is not None:
            yield from self._scorer(self._shared.batches(groups))
            return
        decoded = in_threads(groups, self._read, self._preprocessing, self._batch_size, self._workers)
        with closing(decoded) as batches:
            yield from self._scorer(batches, self._workers)

    def waiting(self) -> float:
        """The share of the time in which nothing was computed because no batch was there."""
        return self._scorer.meter.waiting()


@contextmanager
def _pinned(memory: NDArray[np.uint8]) -> Iterator[None]:
    """Lock memory in its place, so that a device copies it without the processor; it works unlocked too."""
    runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    address = torch.from_numpy(memory).data_ptr()
    is_pinned = int(runtime.cudaHostRegister(address, memory.nbytes, 0)) == 0
    try:
        yield
    finally:
        if is_pinned:
            runtime.cudaHostUnregister(address)


def score_few(
    model: LoadedModel, read: Source, settings: Settings, names: Sequence[str], done: Done = lambda *_: None
) -> pd.DataFrame:
    """The scores of so few pictures that one device is enough and nothing need be kept in between, in their order.

    Raises CleansetError as `score_shards` does.
    """
    lane = Lane(model, read, settings.devices[0], settings.precision, settings.batch_size, settings.workers)
    parts: list[Scored] = []
    with arithmetic(settings.precision), lane, closing(lane.score(grouped(names, settings.batch_size))) as scores:
        for scored in scores:
            parts.append(scored)
            done(len(scored.image_ids), lane.waiting())
    return to_table(parts)


def score_shards(
    model: LoadedModel,
    read: Source,
    settings: Settings,
    shards: Shards,
    done: Done,
    say: Callable[[str], None] = silent,
) -> None:
    """Compute the missing shards, each device the next one when it has finished one.

    Raises CleansetError for a picture that cannot be read, or if the model does not give 1,000 finite
    logits for one; what is finished then stays.
    """
    todo, stop = iter(shards.missing), threading.Event()

    def run(device: torch.device) -> None:
        taken: deque[int] = deque()

        def groups() -> Iterator[Sequence[str]]:
            for number in todo:  # shared by all devices
                taken.append(number)
                for group in grouped(shards.image_ids(number), settings.batch_size):
                    if stop.is_set():
                        return
                    yield group

        workers = max(1, settings.workers // len(settings.devices))
        with Lane(model, read, device, settings.precision, settings.batch_size, workers, say) as lane:
            parts: list[Scored] = []
            with closing(lane.score(groups())) as scores:
                for scored in scores:
                    parts.append(scored)
                    done(len(scored.image_ids), lane.waiting())
                    if scored.image_ids[-1] == shards.image_ids(taken[0])[-1]:
                        shards.keep(taken.popleft(), to_table(parts))
                        parts = []

    with arithmetic(settings.precision), ThreadPoolExecutor(len(settings.devices)) as pool:
        try:
            for finished in as_completed([pool.submit(run, device) for device in settings.devices]):
                finished.result()
        finally:
            stop.set()
