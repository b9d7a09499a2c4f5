"""Stage train: the weights, history, record and tests of every fold of a run."""

import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import torch

from cleanset.errors import CleansetError
from cleanset.files import remove_abandoned, replacing, write_text
from cleanset.progress import keep_freed_memory, training_bar
from cleanset.scoring.scorer import arithmetic, choose_devices
from cleanset.scoring.validity import code_of, library_versions
from cleanset.studies.training.batches import ALONE, Share
from cleanset.studies.training.classification import Classification
from cleanset.studies.training.distributed import chosen_devices, from_first, start, wrap
from cleanset.studies.training.fold_data import FoldData, read_fold
from cleanset.studies.training.loop import Progress, Task, train
from cleanset.studies.training.networks import millions_of_parameters, write_weights
from cleanset.studies.training.params import read_training_params
from cleanset.studies.training.records import (
    CODE,
    LIBRARIES_BY_TASK,
    device_kind,
    history_csv,
    write_costs,
    write_record,
)
from cleanset.studies.training.state import StateFolder
from cleanset.studies.training.study import RunFiles, TrainingStudy

STATE = "state.pt"


def run(study: TrainingStudy, name: str) -> None:
    """Train every fold of a run and write data/runs/<run>; what was interrupted is continued.

    Raises CleansetError for an unknown run, data and networks that do not fit it, a loss that is not finite, and an
    interrupted training with other settings.
    """
    params = read_training_params(study.params_yaml)
    settings = params.run(name)
    remove_abandoned(study.runs)
    devices = chosen_devices(device_of(params.device), settings.devices)
    for fold in settings.fold_names():
        if len(devices) > 1:
            start(train_fold, devices, study, name, fold)
        else:
            train_fold(devices[0], ALONE, study, name, fold)
    unfinished = study.partial(name)
    with replacing(study.run(name)) as new:
        for fold in settings.fold_names():
            shutil.copytree(unfinished / fold, new / fold, ignore=shutil.ignore_patterns(STATE, ".*"))
    shutil.rmtree(unfinished)


def train_fold(device: torch.device, share: Share, study: TrainingStudy, name: str, fold: str) -> None:
    """Train a fold and write its files beside its state; of several processes the first one writes."""
    params = read_training_params(study.params_yaml)
    data = read_fold(study, params, name, fold, device, share)
    kind = data.run.task
    settings = {**data.settings(), "code": code_of(*CODE)}
    settings["versions"] = library_versions(LIBRARIES_BY_TASK[kind])
    settings["device"] = device_kind(device)
    folder = study.partial(name) / fold
    if device.type == "cpu":
        keep_freed_memory()
    with deterministic(params.threads):
        task = task_of(data)
        with training_bar(data.name, share.rank == 0) as move:
            trained = train(
                task,
                data.run,
                StateFolder(folder, settings),
                partial(_report, move),
                partial(wrap, share=share),
                partial(from_first, share=share),
                is_first=share.rank == 0,
            )
        if share.rank:
            return
        task.network.load_state_dict(trained.weights)
        files, parameters = RunFiles(folder), millions_of_parameters(task.network)
        tests = task.test_table(files.sheets)
    write_weights(files.weights, trained.weights, task.inner_name)
    write_text(files.history, history_csv(trained.history))
    write_text(files.test, tests.to_csv(index=False, lineterminator="\n", float_format="%.9g"))
    write_record(files.record, settings, trained, files.weights, parameters)
    write_costs(study.cost(name, fold), data.run, trained, device, parameters)


def device_of(name: str) -> torch.device:
    """The device that `device` of params.yaml names. Raises CleansetError for a GPU that is not there."""
    try:
        return choose_devices(name)[0]
    except CleansetError as error:
        raise CleansetError(str(error).replace("score.device", "params.yaml: device")) from None


class FoldTask(Task[Any], Protocol):
    """A task that can be tested once it is trained; `inner_name`: of the library's network in its weights."""

    @property
    def inner_name(self) -> str: ...

    def test_table(self, sheets: Path) -> pd.DataFrame:
        """The rows of test.csv; `sheets`: a folder for what else is shown of the test."""
        ...


def task_of(data: FoldData) -> FoldTask:
    """The task of a fold, as its run's params have it. Raises CleansetError as its class does."""
    if data.run.task == "segmentation":
        # segmentation-models-pytorch takes seconds to import
        from cleanset.studies.training.segmentation.task import Segmentation

        return Segmentation.of_fold(data)
    return Classification.of_fold(data)


def _report(move: Callable[[int, int, int, float, float], None], done: Progress) -> None:
    move(done.step, done.steps, done.epoch, done.loss, done.images_per_second)


@contextmanager
def deterministic(threads: int) -> Iterator[None]:
    """Compute with that number of threads, and with nothing that differs from run to run where torch has a way.

    Interpolation on a GPU has no such way back; torch then warns.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with arithmetic("float32"), warnings.catch_warnings():
            torch.use_deterministic_algorithms(True, warn_only=True)
            yield
    finally:
        torch.set_num_threads(before)
