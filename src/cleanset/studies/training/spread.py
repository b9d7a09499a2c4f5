"""The folds of runs as one computation: each device of this machine, or of a cluster, trains one at a time.

Everything that a training leaves, its state after each epoch too, lies in the folder of its run, so that any worker
goes on where another has ended. The weights do not depend on the worker.
"""

import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial

from cleanset.edition.params import Engine, read_params
from cleanset.errors import CleansetError
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import TrainingStep, image_bar
from cleanset.scoring.cluster import RayJob, compute_on_ray
from cleanset.scoring.computation import (
    Elsewhere,
    Opened,
    Place,
    Task,
    Tasks,
    Worker,
    WorkerProcess,
    compute,
    worker_devices,
)
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device, choose_devices
from cleanset.scoring.scorer import ignore
from cleanset.scoring.validity import MadeFrom, code_of, library_versions
from cleanset.studies.training.finished import CODE, LIBRARIES_BY_TASK, study_facts
from cleanset.studies.training.params import TrainingParams
from cleanset.studies.training.study import INSTRUCTIONS, StudyInputs, TrainingStudy

MODULES = ("cleanset.studies.training.train", "cleanset.studies.training.segmentation.task")
"""Modules that a worker process imports."""


@dataclass(frozen=True, slots=True)
class FoldOfRun:
    """A fold of a run, by the names of both."""

    run: str
    fold: str

    def __str__(self) -> str:
        return f"{self.run}, {self.fold}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a training, whose files lie in the folder of its run."""

    problem: str | None
    """What has stopped it; None: nothing, it is finished."""


OnStep = Callable[[TrainingStep], object]
TrainFold = Callable[[StudyInputs, FoldOfRun, Device, OnStep | None], None]
"""Trains a fold on a device, from its state if any, and writes its files; calls a function after each step, if any.

Raises CleansetError for what is wrong with the fold."""


class _StoppedError(Exception):
    """Another worker has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldTrainer:
    """The worker of trainings on one device."""

    inputs: StudyInputs
    device: Device
    train: TrainFold
    is_alone: bool = False
    """Whether there is no other worker: each training then shows its steps."""

    def results(self, tasks: Tasks) -> Generator[tuple[int, Ended], None, None]:
        """The number of each fold and how its training has ended.

        A training ends at its next step when the tasks are stopped; the state of the epoch before stays.
        """

        def check(_: TrainingStep) -> None:
            if tasks.is_stopped:
                raise _StoppedError

        for task in tasks:
            (which,) = task.ids
            problem = None
            try:
                with self.device.use():
                    self.train(self.inputs, which, self.device, None if self.is_alone else check)
            except _StoppedError:
                return
            except CleansetError as error:
                problem = str(error)
            yield task.number, Ended(problem=problem)

    def stop(self) -> None:
        """The next step of a training sees that the tasks are stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainings:
    """Folds of runs of a study that are to be trained, and how a fold is."""

    inputs: StudyInputs
    folds: Sequence[FoldOfRun]
    train: TrainFold

    def run(self, keep: Callable[[FoldOfRun, Ended], None]) -> None:
        """Train the folds, on all devices that the engine has; `keep` is called with one at a time, as each ends.

        Raises CleansetError as `compute` and `compute_on_ray` do. What is finished stays, and the state of the rest.
        """
        tasks = [Task(number, [each]) for number, each in enumerate(self.folds)]
        if self._engine == "ray":
            self._on_ray(tasks, keep)
        else:
            self._on_this_machine(tasks, keep)

    @property
    def _engine(self) -> Engine:
        return self.inputs.params.engine or read_params(self.inputs.study.edition.folder).engine

    def _on_this_machine(self, tasks: Sequence[Task], keep: Callable[[FoldOfRun, Ended], None]) -> None:
        devices = devices_of_folds(self.inputs.params, len(tasks))
        first = devices[0]
        count = len(devices)
        if count > 1:
            worker_processes(MODULES)
        here = FoldTrainer(inputs=self.inputs, device=first, train=self.train, is_alone=count == 1)
        first.prepare()
        workers: list[Worker[Ended]] = [here]
        if count > 1:
            workers += [WorkerProcess(self._elsewhere(first), each, MODULES) for each in devices[1:]]
        if count == 1:
            compute(workers, tasks, self._by_number(keep))
            return
        with image_bar(len(tasks), f"training, {count} workers") as done:
            compute(workers, tasks, self._by_number(keep, done))

    def _on_ray(self, tasks: Sequence[Task], keep: Callable[[FoldOfRun, Ended], None]) -> None:
        device = devices_named(self.inputs.params.device)[0]
        job = RayJob(
            elsewhere=self._elsewhere(device),
            on_gpus=device.is_separate,
            cores=self.inputs.params.threads,
            is_long=True,
            # as they are here
            environment={name: os.environ[name] for name in INSTRUCTIONS if name in os.environ},
        )
        with image_bar(len(tasks), "training, engine ray") as done:
            compute_on_ray(job, tasks, self._by_number(keep, done))

    def _by_number(
        self, keep: Callable[[FoldOfRun, Ended], None], done: Callable[[int], None] = ignore
    ) -> Callable[[int, Ended], None]:
        def keep_by_number(number: int, ended: Ended) -> None:
            keep(self.folds[number], ended)
            done(1)

        return keep_by_number

    def _elsewhere(self, device: Device) -> Elsewhere[Ended]:
        runs = sorted({each.run for each in self.folds})
        # a node of a cluster has another working folder
        study = TrainingStudy(self.inputs.study.folder.resolve())
        return Elsewhere(
            name="training",
            open=partial(_opened, study, runs, self.train),
            made_from=MadeFrom(_facts(self.inputs, runs, device)),
        )


def _opened(study: TrainingStudy, runs: Sequence[str], train: TrainFold, place: Place) -> Opened[Ended]:
    inputs = StudyInputs.read(study)
    worker = FoldTrainer(inputs=inputs, device=place.device, train=train)
    return Opened(worker=worker, made_from=MadeFrom(_facts(inputs, runs, place.device)))


def _facts(inputs: StudyInputs, runs: Sequence[str], device: Device) -> JsonObject:
    """What is the same of all workers; a state has what its fold depends on beside it."""
    params = inputs.params
    return {
        "runs": {name: params.run(name).model_dump(mode="json") for name in runs},
        **study_facts(inputs),
        "classes": list(inputs.classes.keys),
        "code": code_of(*CODE),
        "versions": library_versions(LIBRARIES_BY_TASK["segmentation"]),
        "device": device.name,
    }


def devices_of_folds(params: TrainingParams, folds: int) -> list[Device]:
    """The device of each worker of this machine, when so many folds are to be trained."""
    devices = devices_named(params.device)
    if not devices[0].is_separate:
        # each trains with the threads of the params, on which the weights depend
        folds = min(folds, max(1, available_cores() // params.threads))
    return worker_devices(devices, folds)


def devices_named(name: str) -> list[Device]:
    """The devices that `device` of params.yaml names. Raises CleansetError for a GPU that is not there."""
    try:
        return choose_devices(name)
    except CleansetError as error:
        raise CleansetError(f"params.yaml: {error}") from None
