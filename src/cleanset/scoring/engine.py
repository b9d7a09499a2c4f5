"""Score many images: from the archive through decoding and this machine's devices into shards."""

from collections import deque
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.edition.params import Engine, Precision, Score
from cleanset.images.codec import Source
from cleanset.images.preprocessing import Preprocessing
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import print_notice, rate_bar
from cleanset.scoring.computation import Elsewhere, Opened, Place, Task, Tasks, missing_tasks
from cleanset.scoring.consistency import MAX_CHECKED, batches_to_ask, dependence
from cleanset.scoring.decoding import PixelBatch, SharedBatches, in_threads, worker_processes
from cleanset.scoring.devices import Device, choose_devices
from cleanset.scoring.distance import Distance, distance, sample, sample_size
from cleanset.scoring.engines import SHARDS_PER_GPU_TASK, Computation
from cleanset.scoring.logits import ReadOff, ScoreColumns, top5
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import Notify, Scored, Scorer, arithmetic, grouped, ignore, to_table
from cleanset.scoring.shards import OnProgress, Shards, shards_bar
from cleanset.scoring.validity import MadeFrom
from cleanset.statistics.basics import Floats
from cleanset.tables import SCORES, Table


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of scoring, which in float64 never change the result.

    `workers` is the number of decoding workers in all; with `in_processes`, they are always processes.
    """

    devices: Sequence[Device]
    precision: Precision
    batch_size: int
    workers: int
    in_processes: bool = False

    def start_workers(self) -> None:
        """Start the server that forks worker processes, if a run has any; it imports while a model is read."""
        if self.in_processes or any(device.is_separate for device in self.devices):
            worker_processes()

    @property
    def on_gpus(self) -> bool:
        """Whether the devices compute without the processor's cores."""
        return self.devices[0].is_separate

    def of_device(self, device: Device, workers: int) -> "Settings":
        """The settings of one of the devices; where it is separate, processes decode."""
        in_processes = device.is_separate or self.in_processes
        return replace(self, devices=[device], workers=workers, in_processes=in_processes)

    def by_device(self) -> list["Settings"]:
        """The settings of each device, with its share of the decoding workers."""
        workers = max(1, self.workers // len(self.devices))
        return [self.of_device(device, workers) for device in self.devices]


def settings_for(score: Score) -> Settings:
    """The settings for this machine: its devices, the batch size, and a worker for each core."""
    devices = choose_devices(score.device)
    return Settings(devices, score.precision, devices[0].batch_size(score.batch_size), available_cores())


class DevicePipeline(ExitStack):
    """Decoding and scoring on one device, the first of `settings`; a context manager that ends its worker processes.

    Images are decoded in processes, into shared memory, or in threads. Processes start at once, so that a model is
    read and moved meanwhile, and serve every model that is loaded.
    """

    def __init__(self, read: Source, preprocessing: Preprocessing, settings: Settings) -> None:
        super().__init__()
        self.device = settings.devices[0]
        self.batch_size = settings.batch_size
        self._settings = settings
        self.device.prepare()
        self._decoding = read, preprocessing, settings.batch_size, settings.workers
        self._shared = self.enter_context(SharedBatches(*self._decoding)) if settings.in_processes else None
        if self._shared is not None:
            self.enter_context(self.device.pin(self._shared.memory))

    def load(self, model: LoadedModel, precision: Precision, notify: Notify = ignore, read_off: ReadOff = top5) -> None:
        """Move a model to the device, in place of the one before."""
        self._scorer = Scorer(model, self.device, precision, notify=notify, read_off=read_off)

    def score(self, groups: Iterable[Sequence[Hashable]]) -> Generator[Scored, None, None]:
        """The scores of each group of at most a batch of images, in order."""
        # closing ends the decoding threads when the network fails
        with closing(self._decoded(groups)) as batches:
            yield from self._scorer(batches, self._settings.workers)

    def table(self, names: Sequence[Hashable], on_progress: OnProgress) -> pd.DataFrame:
        """The scores of images, in their order."""
        parts: list[Scored] = []
        with closing(self.score(grouped(names, self._settings.batch_size))) as scores:
            for scored in scores:
                parts.append(scored)
                on_progress(len(scored.image_ids), self.waiting_share())
        return to_table(parts)

    def _decoded(self, groups: Iterable[Sequence[Hashable]]) -> Generator[PixelBatch, None, None]:
        if self._shared is None:
            return in_threads(groups, *self._decoding)
        batches = self._shared.batches(groups)
        # several batches are computed at a time on a CPU: each has to outlive the next
        return batches if self.device.is_separate else (PixelBatch(ids, pixels.copy()) for ids, pixels in batches)

    def waiting_share(self) -> float:
        """The share of the time since `load` spent waiting for a batch."""
        return self._scorer.waiting.share()


@contextmanager
def open_pipelines(
    read: Source, preprocessing: Preprocessing, settings: Settings
) -> Iterator[Sequence[DevicePipeline]]:
    """A pipeline for each device, which ends with the block."""
    with ExitStack() as stack:
        yield [stack.enter_context(DevicePipeline(read, preprocessing, each)) for each in settings.by_device()]


def score_few(
    model: LoadedModel,
    read: Source,
    settings: Settings,
    names: Sequence[Hashable],
    on_progress: OnProgress = ignore,
    read_off: ReadOff = top5,
) -> pd.DataFrame:
    """The scores of images in their order, computed on one device and without shards: for a few of them.

    Threads decode, which start at once, unless `settings.in_processes` is set. Raises CleansetError as
    `ScoringRun.scores` does.
    """
    with DevicePipeline(read, model.preprocessing, settings) as pipeline, arithmetic(settings.precision):
        pipeline.load(model, settings.precision, read_off=read_off)
        return pipeline.table(names, on_progress)


def dependence_of(model: LoadedModel, read: Source, files: Sequence[Hashable], settings: Settings) -> str | None:
    """When the logits of the first images depend on more than the image, as `dependence` says it; None if never.

    Computed in float64 or float32, if nothing else differs.
    """
    files = files[: min(settings.batch_size, MAX_CHECKED)]
    precision = settings.precision if settings.precision in ("float64", "float32") else "float32"
    settings = replace(settings, precision=precision, batch_size=len(files))
    asked = [files[number] for batch in batches_to_ask(len(files)) for number in batch]
    found = score_few(model, read, settings, asked, read_off=_all_logits)
    logits = np.stack(found["logits"].tolist())
    return dependence(np.split(logits, len(logits) // len(files)))


def _all_logits(logits: Floats, _ids: Sequence[object]) -> ScoreColumns:
    # raises ValueError for a logit that is not finite
    return {**top5(logits), "logits": logits}


@dataclass(frozen=True, slots=True, eq=False)
class ShardScorer:
    """The worker of a scoring: computes shards on the device of a pipeline, in which the model is loaded."""

    pipeline: DevicePipeline
    on_progress: OnProgress = ignore

    def results(self, tasks: Tasks) -> Generator[tuple[int, pd.DataFrame], None, None]:
        """The number and the scores of each shard. Raises CleansetError as `ScoringRun.scores` does."""
        # batches are read ahead, so a shard is begun before the one before it is finished
        started: deque[Task] = deque()

        def groups() -> Iterator[Sequence[str]]:
            for task in tasks:
                started.append(task)
                for group in grouped(task.ids, self.pipeline.batch_size):
                    if tasks.is_stopped:
                        return
                    yield group

        parts: list[Scored] = []
        with closing(self.pipeline.score(groups())) as scores:
            for scored in scores:
                parts.append(scored)
                self.on_progress(len(scored.image_ids), self.pipeline.waiting_share())
                if scored.image_ids[-1] == started[0].ids[-1]:
                    yield started.popleft().number, to_table(parts)
                    parts = []

    def stop(self) -> None:
        """Wait for the end of the batch."""


def shard_scorers(
    model: LoadedModel,
    pipelines: Sequence[DevicePipeline],
    precision: Precision,
    *,
    on_progress: OnProgress = ignore,
    notify: Notify = ignore,
) -> list[ShardScorer]:
    """A worker for each pipeline, into which the model is loaded."""
    for pipeline in pipelines:
        pipeline.load(model, precision, notify)
    return [ShardScorer(each, on_progress) for each in pipelines]


def open_on_node(run: "ScoringRun", made_from: MadeFrom, place: Place) -> Opened[pd.DataFrame]:
    """The scoring of a run on a device of a cluster, with as many decoding workers as it has cores."""
    settings = run.settings.of_device(place.device, place.cores)
    pipeline = DevicePipeline(run.read, run.model.preprocessing, settings)
    # for the life of the process, which computes nothing else
    pipeline.enter_context(arithmetic(settings.precision))
    pipeline.load(run.model, settings.precision)
    return Opened(worker=ShardScorer(pipeline), made_from=made_from)


@dataclass(eq=False, kw_only=True)
class ScoringRun(ExitStack):
    """A run of a model over the images of `index`, in their order: from shards to a table and its exactness.

    A context manager: the worker processes serve all of the run, and end with it.
    """

    name: str
    model: LoadedModel
    read: Source
    settings: Settings
    index: pd.DataFrame
    """The images, with the columns image_id, ilsvrc_class, real_classes and single (see INDEX)."""

    classes: ClassTable
    """The classes of the images."""

    title: str = ""
    """The title of the progress bar; empty: the name."""

    def __post_init__(self) -> None:
        super().__init__()

    @cached_property
    def _pipelines(self) -> Sequence[DevicePipeline]:
        return self.enter_context(open_pipelines(self.read, self.model.preprocessing, self.settings))

    def shards(self, folder: Path, made_from: MadeFrom, table: Table = SCORES) -> Shards:
        """The shards in a folder, including finished ones of an interrupted run with the same inputs."""
        names = self.index["image_id"].tolist()
        size = self.settings.batch_size
        return Shards(folder, made_from.fingerprint, names, size, classes=self.classes, table=table)

    def scores(
        self, shards: Shards | None, elsewhere: Elsewhere[pd.DataFrame] | None = None, engine: Engine = "local"
    ) -> pd.DataFrame:
        """The scores through shards, or without any, on this machine alone.

        `elsewhere`: opens the run on another machine. Raises CleansetError for an image that cannot be read, or if the
        model does not give finite logits for one; the shards that are finished then stay.
        """
        title = self.title or self.name
        if shards is None:
            names = self.index["image_id"].tolist()
            with rate_bar(len(names), title, workers=len(self.settings.devices)) as done:
                return self._table(names, self.settings.precision, done)
        with shards_bar([shards], title, len(self.settings.devices)) as done, arithmetic(self.settings.precision):
            self.computation(shards, done, elsewhere).run(engine)
        return shards.table()

    def computation(
        self, shards: Shards, on_progress: OnProgress = ignore, elsewhere: Elsewhere[pd.DataFrame] | None = None
    ) -> Computation[pd.DataFrame]:
        """The computation of the missing shards."""
        return Computation(
            tasks=missing_tasks(shards),
            keep=shards.keep,
            workers=lambda: shard_scorers(
                self.model, self._pipelines, self.settings.precision, on_progress=on_progress, notify=print_notice
            ),
            elsewhere=elsewhere,
            arrived=lambda found: on_progress(len(found), None),
            on_gpus=self.settings.on_gpus,
            tasks_per_gpu=SHARDS_PER_GPU_TASK,
        )

    def _table(self, names: Sequence[str], precision: Precision, on_progress: OnProgress) -> pd.DataFrame:
        with arithmetic(precision):
            self._pipelines[0].load(self.model, precision)
            return self._pipelines[0].table(names, on_progress)

    def against_float64(self, scores: pd.DataFrame) -> Distance | None:
        """The distance of the scores from scores in float64, on a sample of the images; None if they are in it."""
        if self.settings.precision == "float64":
            return None
        drawn = sample(self.index, sample_size(len(self.index)))
        exact = self._table(drawn, "float64", ignore)
        found = distance(self.index, exact, scores)
        print_notice(f"{self.name}: {self.settings.precision} against float64: {found}")
        return found
