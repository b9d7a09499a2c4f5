"""The plan of a training study: the images of each run, and the passes of its recipe, its validations and its tests."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import torch

from cleanset.errors import CleansetError
from cleanset.planning.costs import total_size
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import NO_PASSES, Passes, Plan, Work, no_measure
from cleanset.plumbing.file_locks import only_run
from cleanset.plumbing.json_files import json_record
from cleanset.scoring.parts import NOTHING, FinishedPart
from cleanset.studies.training.finished import network_name
from cleanset.studies.training.fold_data import ALONE, FoldData, read_fold, shown_in, steps_per_epoch
from cleanset.studies.training.fold_training import train_fold
from cleanset.studies.training.params import grid_runs
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.spread import devices_of_folds
from cleanset.studies.training.start import only_start
from cleanset.studies.training.state import StateFolder
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from cleanset.studies.training.train import device_named


def plan(study: TrainingStudy, grid: str | None) -> Plan:
    """The plan of a grid, of all stages without one.

    Raises CleansetError for an unknown grid, and as training does.
    """
    inputs = StudyInputs.read(study)
    params = inputs.params
    states = stage_states(study.folder)
    names = grid_runs(params.grids, params.runs, grid)
    works = [_work(inputs, name, states) for name in names]
    if grid is None:
        works = [without_network("data", states), *works, without_network("summary", states)]
    return Plan(name=str(study.folder) if grid is None else grid, works=works)


def _work(inputs: StudyInputs, name: str, states: StageStates) -> Work:
    run = inputs.params.run(name)
    stage = inputs.params.stage(name)
    work = Work(name=name, model=network_name(run.network), stage=stage, state=states.state(stage))
    if work.state == "finished":
        return work
    try:
        data = read_fold(inputs, name, run.fold_names()[0], torch.device("cpu"))
    except CleansetError as error:
        return replace(work, remark=str(error))
    part = _finished(inputs, name, Lengths.of(run, data).steps * run.batch)
    # several devices share a batch in processes that torchrun starts
    measure = no_measure if run.devices > 1 else partial(_start, inputs, name)
    return replace(run_work(work, run, data, part), measure=measure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """The length of a fold's training, were it not to stop early."""

    steps: int
    """Batches in all."""
    steps_of_epoch: int

    @classmethod
    def of(cls, run: Run, data: FoldData) -> Self:
        """The length of a run on a fold."""
        of_epoch = steps_per_epoch(len(shown_in(data.training, run.scenario)), run, run.devices)
        return cls(steps=run.steps or of_epoch * (run.epochs or 0), steps_of_epoch=of_epoch)


def run_work(work: Work, run: Run, data: FoldData, part: FinishedPart = NOTHING) -> Work:
    """The work of a run whose first fold is `data`; the others are taken for as large.

    Early stopping may leave epochs out, and epochs before a recipe begins take fewer passes.
    """
    folds = len(run.fold_names())
    recipe = run.training_recipe
    lengths = Lengths.of(run, data)
    epochs = math.ceil((folds * lengths.steps - part.images // run.batch) / lengths.steps_of_epoch)
    validated = len(shown_in(data.validation, run.scenario)) * epochs
    tested = sum(len(shown_in(data.left_out, scenario)) for scenario in run.tests) * folds
    # those under attack are validated unchanged, too
    attacked = recipe.searched + Passes(forward=1) if run.is_attacked else NO_PASSES
    images = folds * lengths.steps * run.batch
    folder = data.study.folder / data.params.data.images
    paths = [folder / file for file in data.training["file"]]
    return replace(
        work,
        images=images,
        part=part,
        of_image=recipe.searched + recipe.passes,
        besides=(Passes(forward=1) + attacked) * validated + Passes(forward=tested),
        is_bound=run.early_stopping is not None or recipe.clean_epochs > 0,
        bytes_read=total_size(paths) * (images - part.images) // max(1, len(paths)),
    )


def _start(inputs: StudyInputs, name: str) -> None:
    """Train the first fold that is not finished, in this process alone."""
    study = inputs.study
    with only_run(study.partial(name)), only_start():
        for fold in inputs.params.run(name).fold_names():
            if not StateFolder(study.partial(name) / fold, {}).has_ended():
                train_fold(inputs, name, fold, device=device_named(inputs.params.device), share=ALONE)


def _finished(inputs: StudyInputs, name: str, images_of_fold: int) -> FinishedPart:
    """What all folds of an interrupted run have finished; workers that train at a time share its seconds."""
    study = inputs.study
    images = 0
    seconds = 0.0
    left = 0
    for fold in inputs.params.run(name).fold_names():
        state = StateFolder(study.partial(name) / fold, {})
        if state.has_ended():
            # early stopping may have left images out
            images += images_of_fold
            costs = json_record(study.cost(name, fold), "what a fold has taken", "train it again", ["seconds"])
            seconds += costs["seconds"]
            continue
        part = state.finished_part()
        images += part.images
        seconds += part.seconds
        left += 1
    workers = len(devices_of_folds(inputs.params, left)) if left else 1
    return FinishedPart(images=images, seconds=seconds / workers)
