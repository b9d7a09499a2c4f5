"""One pass of several models over changed images; each is made once for all of them.

Making the images takes longer than most models do, so no model and no digest has them made a second time. The answers
go into shards of their own for each model; whoever comes later finds them finished.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.edition.params import Engine
from cleanset.errors import CleansetError
from cleanset.images.codec import Source
from cleanset.images.preprocessing import BASE_SIZE, Pixels, ResizeAndCrop
from cleanset.plumbing.files import sha256
from cleanset.scoring.computation import Elsewhere, Task, Tasks
from cleanset.scoring.decoding import PixelBatch, SharedBatches
from cleanset.scoring.engine import Settings
from cleanset.scoring.engines import SHARDS_PER_GPU_TASK, Computation
from cleanset.scoring.logits import ReadOff
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import Notify, Scored, Scorer, WaitingTime, arithmetic, grouped, ignore, to_table
from cleanset.scoring.shards import OnProgress, Shards
from cleanset.studies.robustness.digests import BATCH_SIZE, TakenDigests, open_changing
from cleanset.studies.robustness.images import ChangeName

FAILURES = (CleansetError, RuntimeError)
"""The exceptions of a model that is moved to a device or runs there."""


@dataclass(eq=False, kw_only=True)
class AskedModel:
    """A model that is shown changed images."""

    model: LoadedModel
    """The network, and a preprocessing for changed images."""

    read_off: ReadOff
    """The columns of an answer, from its logits."""


@dataclass(eq=False, kw_only=True)
class ModelInPass(AskedModel):
    """A model that lacks answers."""

    shards: Shards
    """The finished files of its answers."""


def squares(size: int) -> ResizeAndCrop:
    """A preprocessing that crops nothing of a square image, and leaves one of its size unchanged."""
    return ResizeAndCrop(f"Res{size}", size, size, "bilinear")


@dataclass(frozen=True, slots=True)
class PassTask(Task):
    """A shard of a pass, whose ids are the images that any model lacks answers to."""

    lacking: Mapping[str, Sequence[ChangeName]]
    """By model, the images that it lacks answers to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownShard:
    """What was found at the images of a shard."""

    answers: Mapping[str, pd.DataFrame]
    """By model; none for those that failed."""

    problems: Mapping[str, Exception]
    """The problems of models that failed at this shard."""

    digests: Mapping[ChangeName, str]
    """By image; empty if they are not wanted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OnePass:
    """A pass of all devices over changed images, which are made once for all models."""

    models: Mapping[str, ModelInPass]
    """The models, by name; all have the same number of shards."""

    images: Source
    """Makes a changed image of 224 x 224 pixels by its name, in worker processes."""

    settings: Settings
    """Precision, devices and batch size."""

    on_progress: OnProgress = ignore
    """Called with the number of images that a model has answered, and the share of the time spent waiting for them."""

    notify: Notify = ignore
    """Called when a batch is halved without memory."""

    digests: TakenDigests | None = None
    """Takes the digests of the images; None: they are stored already."""

    elsewhere: Elsewhere[ShownShard] | None = None
    """How another machine opens a `PassWorker` of these models; None: this machine alone computes."""

    engine: Engine = "local"

    def answer(self) -> dict[str, Exception]:
        """Compute the shards that each model lacks; each device takes the next ones as it continues.

        Returns the problem of each model that failed, by name: it is shown no further images, the others are. Raises
        CleansetError for an image that cannot be made; the shards that are finished then stay.
        """
        problems = dict[str, Exception]()

        def keep(number: int, found: ShownShard) -> None:
            for name, table in found.answers.items():
                self.models[name].shards.keep(number, table)
            for name, problem in found.problems.items():
                problems.setdefault(name, problem)
            if self.digests is not None:
                self.digests.take(found.digests, found.digests.values())

        with arithmetic(self.settings.precision):
            Computation(
                tasks=list(self.tasks()),
                keep=keep,
                workers=self._workers,
                elsewhere=self.elsewhere,
                arrived=lambda found: self.on_progress(sum(map(len, found.answers.values())), None),
                on_gpus=self.settings.on_gpus,
                tasks_per_gpu=SHARDS_PER_GPU_TASK,
            ).run(self.engine)
        return problems

    def tasks(self) -> Iterator[PassTask]:
        """The shards that any model lacks, with the images of all these models."""
        for number in sorted({number for each in self.models.values() for number in each.shards.missing}):
            of_shard = {name: each.shards for name, each in self.models.items() if number in each.shards.missing}
            lacking = {name: shards.image_ids(number) for name, shards in of_shard.items()}
            # models that see the images of their own sets alone have different ones
            yield PassTask(number, list(dict.fromkeys(name for ids in lacking.values() for name in ids)), lacking)

    def _workers(self) -> "list[PassWorker]":
        failed = set[str]()
        return [
            PassWorker(
                models=self.models,
                images=self.images,
                settings=settings,
                takes_digests=self.digests is not None,
                on_progress=self.on_progress,
                notify=self.notify,
                failed=failed,
            )
            for settings in self.settings.by_device()
        ]


class Kept(ExitStack):
    """What lasts as long as the process of a worker, which computes nothing else: processes, torch's switches."""

    def __init__(self, images: Source, settings: Settings) -> None:
        super().__init__()
        self.changing = self.enter_context(open_changing(images, settings.workers))
        self.enter_context(arithmetic(settings.precision))


@dataclass(eq=False, kw_only=True)
class PassWorker:
    """The worker of a pass on one device: makes the images of a shard, and shows them to the models that lack it."""

    models: Mapping[str, AskedModel]
    """By name."""

    images: Source
    """Makes a changed image by its name, in worker processes."""

    settings: Settings
    """The settings of its device."""

    takes_digests: bool
    """Whether the digests of the images are wanted."""

    on_progress: OnProgress = ignore
    notify: Notify = ignore

    failed: set[str] = field(default_factory=set)
    """Filled with the models that failed, which are shown no further images; the workers of a process share it."""

    stopped: threading.Event = field(default_factory=threading.Event)
    """Set by `stop`."""

    kept: "Kept | None" = None
    """What serves all calls of `results`; None: each call starts processes of its own."""

    @cached_property
    def _scorers(self) -> dict[str, Scorer]:
        """Scorers of the models that the device has been given so far."""
        return {}

    def results(self, tasks: Tasks) -> Generator[tuple[int, ShownShard], None, None]:
        """The number of each shard, and what was found at its images."""
        self.settings.devices[0].prepare()
        waiting = WaitingTime()
        with ExitStack() as stack:
            changing = self._changing(stack)
            pool = stack.enter_context(ThreadPoolExecutor(self.settings.workers))
            blocks = stack.enter_context(closing(self._blocks(changing, tasks, pool)))
            for block in blocks:
                with waiting.computing():
                    found = self._shown(block, waiting)
                yield block.task.number, found

    def _blocks(self, changing: SharedBatches, tasks: Tasks, pool: Executor) -> "Generator[_Block, None, None]":
        """The changed images of each shard, made and prepared while models are shown those of the one before."""
        closed = threading.Event()
        made = _made(changing, tasks, lambda: closed.is_set() or self.stopped.is_set())

        def following() -> _Block | None:
            shard = next(made, None)
            return None if shard is None else self._block(*shard, pool)

        with ThreadPoolExecutor(1) as ahead:
            try:
                coming = ahead.submit(following)
                while (block := coming.result()) is not None and not self.stopped.is_set():
                    coming = ahead.submit(following)
                    yield block
            finally:
                closed.set()

    def _block(self, task: PassTask, pixels: Pixels, pool: Executor) -> "_Block":
        """The changed images of a shard, prepared for the models that lack it."""
        shown = [name for name in task.lacking if name not in self.failed]
        sides = {self.models[name].model.preprocessing.size for name in shown} - {BASE_SIZE}
        by_side = {side: np.empty((len(pixels), 3, side, side), np.uint8) for side in sides}

        def prepare(place: int) -> str:
            rows = np.ascontiguousarray(pixels[place].transpose(1, 2, 0))
            for side, resized in by_side.items():
                resized[place] = squares(side)(Image.fromarray(rows))
            return sha256(rows.tobytes()) if self.takes_digests else ""

        digests = zip(task.ids, pool.map(prepare, range(len(pixels))), strict=True)
        return _Block(
            task=task,
            digests={name: digest for name, digest in digests if digest},
            by_side={BASE_SIZE: pixels} | by_side,
        )

    def _changing(self, stack: ExitStack) -> SharedBatches:
        """The processes that make images: those that are kept, or others until the end of the block of a stack."""
        if self.kept is not None:
            return self.kept.changing
        return stack.enter_context(open_changing(self.images, self.settings.workers))

    def stop(self) -> None:
        """Show models no further shard."""
        self.stopped.set()

    def _shown(self, block: "_Block", waiting: WaitingTime) -> ShownShard:
        answers = dict[str, pd.DataFrame]()
        problems = dict[str, Exception]()
        for name, wanted in block.task.lacking.items():
            if name in self.failed:
                continue
            try:
                answers[name] = self._answers(name, block, wanted, waiting)
            except FAILURES as error:
                problems[name] = error
                self.failed.add(name)
                self._scorers.pop(name, None)
        return ShownShard(answers=answers, problems=problems, digests=block.digests)

    def _answers(self, name: str, block: "_Block", wanted: Sequence[ChangeName], waiting: WaitingTime) -> pd.DataFrame:
        """The answers of a model to some images of a shard."""
        each = self.models[name]
        settings = self.settings
        scored = list[Scored]()
        batches = block.batches(wanted, each.model.preprocessing.size, settings.batch_size)
        if name not in self._scorers:
            self._scorers[name] = Scorer(
                each.model, settings.devices[0], settings.precision, notify=self.notify, read_off=each.read_off
            )
        for batch in self._scorers[name](batches, settings.workers):
            scored.append(batch)
            self.on_progress(len(batch.image_ids), waiting.share())
        return to_table(scored)


def _made(changing: SharedBatches, tasks: Tasks, is_over: Callable[[], bool]) -> Iterator[tuple[PassTask, Pixels]]:
    """The changed images of each shard, while it is not over; the processes make some of the next ones meanwhile."""
    begun: deque[PassTask] = deque()

    def groups() -> Iterator[Sequence[ChangeName]]:
        for task in tasks:
            assert isinstance(task, PassTask)
            begun.append(task)
            yield from grouped(task.ids, BATCH_SIZE)

    parts: list[Pixels] = []
    for batch in changing.batches(groups()):
        if is_over():
            return
        # the next batch overwrites this one's memory
        parts.append(batch.pixels[: len(batch.image_ids)].copy())
        if sum(map(len, parts)) == len(begun[0].ids):
            yield begun.popleft(), np.concatenate(parts)
            parts = []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """The changed images of a shard, in all sizes that its models want."""

    task: PassTask
    """The shard."""

    by_side: Mapping[int, Pixels]
    """The images by the length of their side, in the order of the task's ids; for generated ones, it is 224."""

    digests: Mapping[ChangeName, str]
    """By image; empty if they are not wanted."""

    def batches(self, wanted: Sequence[ChangeName], side: int, batch_size: int) -> Iterator[PixelBatch]:
        """Some of the images in batches, filled up with zeros as `SharedBatches` has it."""
        places = {name: place for place, name in enumerate(self.task.ids)}
        for group in grouped(wanted, batch_size):
            pixels = np.zeros((batch_size, 3, side, side), np.uint8)
            pixels[: len(group)] = self.by_side[side][[places[name] for name in group]]
            yield PixelBatch(group, pixels)
