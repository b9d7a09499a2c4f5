"""`cleanset training plan`: estimate run times of a grid from a few steps, and compare them with a budget.

Measured are steps of the training loop itself, on the run's own images, after some that warm up; no file of a run is
read or written. Validation after an epoch is measured too, and stands for each test scenario.
"""

import math
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Generic, NamedTuple

from rich.table import Table
from torch import nn

from cleanset.edition.options import show
from cleanset.errors import CleansetError
from cleanset.measure.table import Cell, MeasureTable
from cleanset.progress import TrainingStep, tracked
from cleanset.scoring.devices import Device
from cleanset.studies.training.finished import network_name
from cleanset.studies.training.fold_data import ProcessShare, read_fold
from cleanset.studies.training.loop import Batch, Outcome, Task, train
from cleanset.studies.training.params import grid_runs
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.state import StateFolder
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from cleanset.studies.training.train import deterministic, device_named, task_of

WARM_UP_STEPS = 5
"""Steps that are not timed first: memory is allocated, and libraries choose their algorithms."""
HOUR = 3600
"""Seconds of an hour."""


class StepTimes(NamedTuple):
    """The times that were measured of a run."""

    step: float
    """Seconds of a step."""
    validation: float
    """Seconds of a validation."""
    steps_per_epoch: int
    """Number of steps in an epoch."""


class PlannedRun(NamedTuple):
    """A run with the time that its measured steps promise."""

    name: str
    """Name of the run in params.yaml."""
    run: Run
    """Its settings."""
    measured: StepTimes | None
    """The times that were measured; None for a finished run."""

    @property
    def folds(self) -> int:
        """The number of trainings."""
        return len(self.run.fold_names())

    @property
    def steps(self) -> int:
        """Steps of a fold; early stopping may leave some out."""
        if self.measured is None:
            return 0
        return self.run.steps or self.measured.steps_per_epoch * (self.run.epochs or 0)

    @property
    def seconds(self) -> float:
        """Seconds of all folds: steps, a validation after each epoch, and tests; without early stopping."""
        if self.measured is None:
            return 0.0
        epochs = math.ceil(self.steps / self.measured.steps_per_epoch)
        validations = epochs + len(self.run.tests)
        return self.folds * (self.steps * self.measured.step + validations * self.measured.validation)


def check_budget(grid: str, hours: float, budget: float | None) -> None:
    """Raise CleansetError if a grid would take more hours than its budget."""
    if budget is not None and hours > budget:
        raise CleansetError(
            f"{grid}: {hours:.2f} hours; expected at most {budget:g}, the budget_hours of params.yaml: run some of its "
            "stages (dvc stage list), or raise budget_hours"
        )


def measure(inputs: StudyInputs, name: str, steps: int) -> StepTimes:
    """Train the first fold of a run for some steps, and time them. Raises CleansetError as training does."""
    run = inputs.params.run(name)
    device = device_named(inputs.params.device)
    # of several devices one is measured, on its part of each batch
    data = read_fold(inputs, name, run.fold_names()[0], device.torch, share=ProcessShare(0, run.devices))
    settings = run.model_copy(update={"steps": WARM_UP_STEPS + steps, "epochs": None, "early_stopping": None})
    with deterministic(inputs.params.threads), tempfile.TemporaryDirectory() as folder:
        # mypy infers no type of batch from a union
        timed = _Timed(task_of(data), device)  # type: ignore[misc]
        train(timed, settings, StateFolder(Path(folder), {}), timed.count)
    # the first validation may read its images, too
    validation = timed.validations[-1] if timed.validations else 0.0
    return StepTimes(mean(timed.steps[WARM_UP_STEPS:]), validation, timed.steps_per_epoch)


class _Timed(Generic[Batch]):
    """A task whose steps and validations are timed, in seconds; a step's time is without the validation before it."""

    def __init__(self, task: Task[Batch], device: Device) -> None:
        self._task = task
        self._device = device
        self._last = 0.0
        self.network = task.network
        self.name = task.name
        self.steps_per_epoch = task.steps_per_epoch
        self.chosen_by = task.chosen_by
        self.steps: list[float] = []
        self.validations: list[float] = []

    def batches(self, epoch: int) -> Iterable[Batch]:
        """The task's batches."""
        return self._task.batches(epoch)

    def loss(self, network: nn.Module, batch: Batch, epoch: int) -> Outcome:
        """The task's loss."""
        return self._task.loss(network, batch, epoch)

    def count(self, _: TrainingStep) -> None:
        """Note the end of a step; the loss of each has been read, so that a GPU has finished its forward pass."""
        self.steps.append(self._lap())

    def validate(self, epoch: int) -> Mapping[str, float]:
        """The task's validation, timed."""
        self._lap()
        found = self._task.validate(epoch)
        self.validations.append(self._lap())
        return found

    def _lap(self) -> float:
        """The seconds since the last lap, once the device has finished its work."""
        self._device.synchronize()
        before = self._last
        self._last = perf_counter()
        return self._last - before


def duration(seconds: float) -> str:
    """A time such as 3 h 8 min 27 s, 12 s or 0.4 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    parts = [(whole // 3600, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next(place for place, (value, _) in enumerate(parts) if value)
    return " ".join(f"{value} {unit}" for value, unit in parts[first:])


def plan_table(runs: Sequence[PlannedRun], hours: float) -> Table:
    """The plan as a table for the terminal, the sum last."""
    rows = []
    for each in runs:
        cells = [" ", " ", " ", "finished"]
        if each.measured is not None:
            images_per_second = f"{each.run.batch / each.measured.step:,.1f}"
            milliseconds = f"{1000 * each.measured.step:,.1f}"
            cells = [f"{each.steps:,}", images_per_second, milliseconds, duration(each.seconds)]
        names = each.name, network_name(each.run.network)
        rows.append((names, [Cell(text) for text in (str(each.folds), *cells)]))
    titles = ("folds", "steps", "images/s", "ms a step", "time")
    table = MeasureTable(("run", "network"), titles, rows).in_terminal()
    blank = [""] * (len(table.columns) - 2)
    table.add_row(f"all: {hours:,.2f} hours", *blank, duration(hours * HOUR), style="bold")
    return table


def run(study: TrainingStudy, grid: str | None, steps: int, *, starts: bool) -> None:
    """Print the plan of a grid, of all runs without one, and start unfinished runs on request.

    A run with a folder is finished and not measured. Raises CleansetError for an unknown grid, one over budget, and if
    DVC fails.
    """
    inputs = StudyInputs.read(study)
    params = inputs.params
    names = list(params.runs) if grid is None else grid_runs(params.grids, params.runs, grid)
    runs = []
    for name in tracked(names, len(names), "measuring"):
        measured = None if study.run(name).is_dir() else measure(inputs, name, steps)
        runs.append(PlannedRun(name, params.run(name), measured))
    hours = sum(each.seconds for each in runs) / HOUR
    show(plan_table(runs, hours))
    check_budget(grid or "all runs", hours, params.budget_hours)
    if starts:
        start(study, [params.stage(each.name) for each in runs if each.measured is not None])


def start(study: TrainingStudy, stages: Sequence[str]) -> None:
    """Train by these stages of DVC, one after the other. Raises CleansetError if it fails."""
    if not stages:
        print("every run is finished")
        return
    command = [sys.executable, "-m", "dvc", "repro", *stages]
    if subprocess.run(command, cwd=study.folder, check=False).returncode:
        raise CleansetError("dvc repro failed; expected every run to finish: see its messages above, then start again")
