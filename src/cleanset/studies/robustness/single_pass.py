"""One pass over changed images: each is made once, shown to every model that lacks it, and its digest is taken.

Making the images takes longer than most models do, so no model and no digest has them made a second time. The answers
go into shards of their own for each model; whoever comes later finds them finished.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.images.codec import Source
from cleanset.images.preprocessing import BASE_SIZE, ResizeAndCrop, Resized
from cleanset.progress import keep_freed_memory
from cleanset.scoring.decoding import Batch, SharedBatches
from cleanset.scoring.engine import OnProgress, Settings
from cleanset.scoring.logits import Columns, ReadOff
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import Notify, Scored, Scorer, arithmetic, grouped, to_table
from cleanset.scoring.shards import Shards
from cleanset.studies.robustness.digests import BATCH_SIZE, TakenDigests

MAX_PARAMETERS = 400_000_000
"""Parameters of all models in a pass, unless one alone has more; in float64 they take 3.2 GB on each device."""

Pixels = NDArray[np.uint8]

FAILURES = (CleansetError, RuntimeError)
"""The exceptions of a model that is moved to a device or runs there."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelInPass:
    """A model that lacks answers: where they go, and what is read off its logits.

    `finish`: function from the names of images and their columns to the columns that are kept.
    """

    model: LoadedModel
    shards: Shards
    read_off: ReadOff
    finish: Callable[[Sequence[str], Columns], Columns] = lambda names, columns: columns


def answer_in_one_pass(
    models: Mapping[str, ModelInPass],
    images: Source,
    settings: Settings,
    on_progress: OnProgress = lambda *_: None,
    notify: Notify = lambda _: None,
    digests: TakenDigests | None = None,
) -> dict[str, Exception]:
    """Compute the shards that each model lacks; each device takes the next one when it has finished one.

    All models have the same number of shards. `images` makes a changed image of 224 x 224 pixels by its name, in worker
    processes. Returns the problem of each model that failed, by name: it is shown no further images, the others are.
    Raises CleansetError for an image that cannot be made; the shards that are finished then stay.
    """
    lacking: dict[int, list[str]] = {}
    for name, each in models.items():
        for number in each.shards.missing:
            lacking.setdefault(number, []).append(name)
    shared = _Pass(models, lacking, images, settings, on_progress, notify, digests)
    numbers = iter(sorted(lacking))
    with arithmetic(settings.precision), ThreadPoolExecutor(len(settings.devices)) as pool:
        try:
            running = [pool.submit(_Device(shared, each).run, numbers) for each in settings.devices]
            for finished in as_completed(running):
                finished.result()
        finally:
            # one device's error ends the others at their next shard
            shared.stop.set()
    return shared.problems


def squares(size: int) -> ResizeAndCrop:
    """A preprocessing that crops nothing of a square image, and leaves one of its size as it is."""
    return ResizeAndCrop(f"Res{size}", size, size, "bilinear")


@dataclass(frozen=True, slots=True, eq=False)
class _Pass:
    """The part of a pass that all devices share; `lacking`: by the number of a shard, the models that lack it."""

    models: Mapping[str, ModelInPass]
    lacking: Mapping[int, Sequence[str]]
    images: Source
    settings: Settings
    on_progress: OnProgress
    notify: Notify
    digests: TakenDigests | None
    problems: dict[str, Exception] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)


class _Block:
    """The changed images of a shard, by the size of their side; as they are made, 224."""

    def __init__(self, number: int, names: Sequence[str], pixels: Pixels, pool: Executor) -> None:
        self.number, self.names, self._pool = number, names, pool
        self._places = {name: place for place, name in enumerate(names)}
        self._by_size = {BASE_SIZE: pixels}

    def digests(self) -> Iterator[str]:
        """The digest of each image, as those of stage digests."""
        return self._pool.map(lambda each: sha256(_rows(each).tobytes()), self._by_size[BASE_SIZE])

    def batches(self, wanted: Sequence[str], side: int, batch_size: int) -> Iterator[Batch]:
        """Some of the images in batches, filled up with zeros as `SharedBatches` has it."""
        if side not in self._by_size:
            resize, made = squares(side), self._by_size[BASE_SIZE]
            resized = self._pool.map(lambda each: resize(Image.fromarray(_rows(each))), made)
            self._by_size[side] = np.stack(list(resized))
        for group in grouped(wanted, batch_size):
            pixels = np.zeros((batch_size, 3, side, side), np.uint8)
            pixels[: len(group)] = self._by_size[side][[self._places[name] for name in group]]
            yield Batch(group, pixels)


def _rows(pixels: Pixels) -> Pixels:
    """Pixels of shape (3, n, n) as (n, n, 3)."""
    return np.ascontiguousarray(pixels.transpose(1, 2, 0))


class _Device:
    """One device, with the models that it has been given so far."""

    def __init__(self, shared: _Pass, device: torch.device) -> None:
        self._pass, self._device = shared, device
        self._workers = max(1, shared.settings.workers // len(shared.settings.devices))
        self._scorers: dict[str, Scorer] = {}
        if device.type != "cuda":
            keep_freed_memory()

    def run(self, numbers: Iterator[int]) -> None:
        """Compute shards until `numbers`, which all devices take from, has no more."""
        begin, waited = perf_counter(), 0.0
        shared_memory = SharedBatches(self._pass.images, Resized(BASE_SIZE), BATCH_SIZE, self._workers)
        with shared_memory as shared, ThreadPoolExecutor(self._workers) as pool:
            asked = perf_counter()
            for block in self._blocks(shared, numbers, pool):
                waited += perf_counter() - asked
                if self._pass.digests is not None:
                    self._pass.digests.take(block.names, block.digests())
                for name in self._pass.lacking[block.number]:
                    if name not in self._pass.problems:
                        self._answer(name, block, waited / (perf_counter() - begin))
                asked = perf_counter()

    def _blocks(self, shared: SharedBatches, numbers: Iterator[int], pool: Executor) -> Iterator[_Block]:
        """The changed images of each shard; the processes make those of the next while models are shown one."""
        started: deque[tuple[int, Sequence[str]]] = deque()

        def groups() -> Iterator[Sequence[str]]:
            for number in numbers:
                if self._pass.stop.is_set():
                    return
                of_models = (self._pass.models[name].shards.image_ids(number) for name in self._pass.lacking[number])
                # models that see the images of their own sets alone have different ones
                names = list(dict.fromkeys(chain.from_iterable(of_models)))
                started.append((number, names))
                yield from grouped(names, BATCH_SIZE)

        parts: list[Pixels] = []
        for batch in shared.batches(groups()):
            # the next batch overwrites this one's memory
            parts.append(batch.pixels[: len(batch.image_ids)].copy())
            number, names = started[0]
            if sum(map(len, parts)) == len(names):
                started.popleft()
                yield _Block(number, names, np.concatenate(parts), pool)
                parts = []

    def _answer(self, name: str, block: _Block, waiting: float) -> None:
        """Show a model the images of a shard and keep its answers, or its problem."""
        each, settings, scored = self._pass.models[name], self._pass.settings, list[Scored]()
        wanted = each.shards.image_ids(block.number)
        batches = block.batches(wanted, each.model.preprocessing.size, settings.batch_size)
        try:
            if name not in self._scorers:
                self._scorers[name] = Scorer(
                    each.model, self._device, settings.precision, self._pass.notify, each.read_off
                )
            for batch in self._scorers[name](batches, self._workers):
                scored.append(Scored(batch.image_ids, each.finish(batch.image_ids, batch.columns)))
                self._pass.on_progress(len(batch.image_ids), waiting)
        except FAILURES as error:
            self._pass.problems[name] = error
            self._scorers.pop(name, None)
            return
        each.shards.keep(block.number, to_table(scored))
