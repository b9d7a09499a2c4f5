"""The folds of runs as one computation: each device of this machine, or of a cluster, trains one at a time.

Everything that a training leaves, its state after each epoch too, is in the folder of its run, so that any worker
continues where another has ended. The weights do not depend on the worker.
"""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import TrainingStep, image_bar
from cleanset.scoring.computation import (
    Elsewhere,
    Opened,
    Place,
    Task,
    Tasks,
    Worker,
    WorkerProcess,
    worker_devices,
)
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device, choose_devices
from cleanset.scoring.engines import Computation
from cleanset.scoring.scorer import ignore
from cleanset.scoring.validity import MadeFrom, code_of, library_versions
from cleanset.studies.training.finished import CODE, LIBRARIES_BY_TASK, study_facts
from cleanset.studies.training.fold_data import ALONE
from cleanset.studies.training.fold_training import train_fold
from cleanset.studies.training.params import TrainingParams
from cleanset.studies.training.study import INSTRUCTIONS, StudyInputs, TrainingStudy

MODULES = ("cleanset.studies.training.fold_training", "cleanset.studies.training.segmentation.task")
"""Modules that a worker process imports."""


@dataclass(frozen=True, slots=True)
class FoldOfRun:
    """A fold of a run, by the names of both."""

    run: str
    fold: str

    def __str__(self) -> str:
        return f"{self.run}, {self.fold}"


Ended = str | None
"""The end of a training, whose files are in the folder of its run: what has stopped it; None: it is finished."""


class _StoppedError(Exception):
    """Another worker has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldTrainer:
    """The worker of trainings on one device."""

    inputs: StudyInputs
    device: Device
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
            on_step = None if self.is_alone else check
            try:
                with self.device.use():
                    train_fold(self.inputs, which.run, which.fold, device=self.device, share=ALONE, on_step=on_step)
            except _StoppedError:
                return
            except CleansetError as error:
                problem = str(error)
            yield task.number, problem

    def stop(self) -> None:
        """The next step of a training sees that the tasks are stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainings:
    """Folds of runs of a study that are to be trained."""

    inputs: StudyInputs
    folds: Sequence[FoldOfRun]

    def run(self, keep: Callable[[FoldOfRun, Ended], None]) -> None:
        """Train the folds, on all devices that the engine has; `keep` is called with one at a time, as each ends.

        Raises CleansetError as `Computation.run` does. What is finished stays, and the state of the rest.
        """
        params = self.inputs.params
        engine = params.engine or read_params(self.inputs.study.edition.folder).engine
        devices = devices_of_folds(params, len(self.folds))
        first = devices[0]
        is_alone = engine == "local" and len(devices) == 1
        elsewhere = None if is_alone else self._elsewhere(first)

        def workers() -> list[Worker[Ended]]:
            here = FoldTrainer(inputs=self.inputs, device=first, is_alone=is_alone)
            if elsewhere is None:
                first.prepare()
                return [here]
            worker_processes(MODULES)
            first.prepare()
            return [here, *(WorkerProcess(elsewhere, each, MODULES) for each in devices[1:])]

        with ExitStack() as stack:
            title = "training, engine ray" if engine == "ray" else f"training, {len(devices)} workers"
            done = ignore if is_alone else stack.enter_context(image_bar(len(self.folds), title))

            def keep_by_number(number: int, ended: Ended) -> None:
                keep(self.folds[number], ended)
                done(1)

            Computation(
                tasks=[Task(number, [each]) for number, each in enumerate(self.folds)],
                keep=keep_by_number,
                workers=workers,
                elsewhere=elsewhere,
                on_gpus=first.is_separate,
                cores=params.threads,
                is_long=True,
                # as on this machine
                environment={name: os.environ[name] for name in INSTRUCTIONS if name in os.environ},
            ).run(engine)

    def _elsewhere(self, device: Device) -> Elsewhere[Ended]:
        runs = sorted({each.run for each in self.folds})
        # a node of a cluster has another working folder
        study = TrainingStudy(self.inputs.study.folder.resolve())
        return Elsewhere(
            name="training",
            open=partial(_opened, study, runs),
            made_from=MadeFrom(_facts(self.inputs, runs, device)),
        )


def _opened(study: TrainingStudy, runs: Sequence[str], place: Place) -> Opened[Ended]:
    inputs = StudyInputs.read(study)
    worker = FoldTrainer(inputs=inputs, device=place.device)
    return Opened(worker=worker, made_from=MadeFrom(_facts(inputs, runs, place.device)))


def _facts(inputs: StudyInputs, runs: Sequence[str], device: Device) -> JsonObject:
    """What is the same of all workers; a state has what its fold depends on next to it."""
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
    """The device of each worker of this machine, for a number of folds to train."""
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
