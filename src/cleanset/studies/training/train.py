"""Stage `train`: weights, history, record and tests of every fold of a run."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import torch
from torch import distributed

from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import only_run
from cleanset.plumbing.files import remove_abandoned, replacing
from cleanset.plumbing.interpreter import code_command, python_command
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.validation import join_names
from cleanset.scoring.devices import Device, device_of
from cleanset.studies.training.finished import unfinished_runs
from cleanset.studies.training.fold_data import ALONE, ProcessShare
from cleanset.studies.training.fold_training import train_fold
from cleanset.studies.training.params import grid_runs
from cleanset.studies.training.spread import FoldOfRun, Trainings, devices_named
from cleanset.studies.training.state import FINISHED_FILE, STATE_FILE
from cleanset.studies.training.study import StudyInputs, TrainingStudy


def is_started_by_torchrun() -> bool:
    """Whether torchrun has started this process."""
    return "WORLD_SIZE" in os.environ


def start_processes(study: TrainingStudy, name: str, count: int) -> None:
    """Train a run in that number of processes on this machine. Raises CleansetError if one of them fails."""
    options = ("--standalone", f"--nproc-per-node={count}")
    torchrun = code_command("from torch.distributed.run import main; main()", *options)
    # without "--", torchrun would take --run for a prefix of its own options
    cleanset = ["--no-python", "--", *python_command("-m", "cleanset")]
    command = [*torchrun, *cleanset, "training", "train", "--run", name, "--study", str(study.folder)]
    if subprocess.run(command, check=False).returncode:
        raise CleansetError(
            f"run {name}: torchrun failed; expected all {count} processes to finish: see the error above"
        )


@contextmanager
def process_share(device: Device, processes: int) -> Iterator[tuple[Device, ProcessShare]]:
    """The device of this process and its share of each batch, among the processes that torchrun has started.

    Raises CleansetError for another number of processes than the run's `devices`, and for too few GPUs.
    """
    found = int(os.environ.get("WORLD_SIZE", "1"))
    if found != processes:
        raise CleansetError(
            f"devices: {processes}, but torchrun has started {found} processes; expected --nproc-per-node={processes}"
        )
    if processes == 1:
        yield device, ALONE
        return
    if device.is_separate:
        number = int(os.environ["LOCAL_RANK"])
        gpus = torch.cuda.device_count()
        if number >= gpus:
            raise CleansetError(f"devices: {processes}, but {gpus} CUDA devices found; expected at most that number")
        device = device_of(torch.device("cuda", number))
        torch.cuda.set_device(device.torch)
    # the first process validates and tests alone, and torch gives up waiting for it after minutes by default
    distributed.init_process_group(device.backend, timeout=timedelta(days=7))
    try:
        yield device, ProcessShare(distributed.get_rank(), processes)
    finally:
        distributed.destroy_process_group()


def run(study: TrainingStudy, name: str) -> None:
    """Train every fold of a run and write data/runs/<run>, continuing an interrupted run.

    Each device of the machine, or of the cluster that the engine is, trains a fold at a time. A run whose folds are
    shared by several devices is started again by torchrun, unless torchrun has started this process. Raises
    CleansetError for an unknown run, data and networks that do not fit it, a loss that is not finite, and an
    interrupted training with other settings.
    """
    inputs = StudyInputs.read(study)
    settings = inputs.params.run(name)
    remove_abandoned(study.runs)
    if is_started_by_torchrun():
        # its processes are of one run, which the process that started them has locked
        _train_share(inputs, name)
        return
    with only_run(study.partial(name)):
        if settings.devices > 1:
            start_processes(study, name, settings.devices)
        else:
            folds = [FoldOfRun(name, fold) for fold in settings.fold_names()]
            Trainings(inputs=inputs, folds=folds).run(_check_ended)
            _finish(inputs, name)


def run_grid(study: TrainingStudy, grid: str | None) -> None:
    """Train what is not finished of a grid, of all runs without one, continuing what is interrupted.

    Each device trains a fold at a time, of whatever run. The results stay next to the finished runs until stage `train`
    takes each over. Runs that several devices share are left to it, too. A run that fails is reported at once, and the
    others continue; CleansetError is raised at the end.
    """
    inputs = StudyInputs.read(study)
    params = inputs.params
    left = unfinished_runs(inputs, grid_runs(params.grids, params.runs, grid))
    shared = [name for name in left if params.run(name).devices > 1]
    for name in shared:
        print_notice(f"{name}: needs {params.run(name).devices} devices; its stage trains it: run dvc repro")
    left = [name for name in left if name not in shared]
    if not left:
        print("every other run is finished" if shared else "every run is finished")
        return
    failed = dict[str, str]()

    def keep(which: FoldOfRun, problem: str | None) -> None:
        if problem is not None and which.run not in failed:
            failed[which.run] = problem
            print_notice(f"{which}: {problem}")

    remove_abandoned(study.runs)
    folds = [FoldOfRun(name, fold) for name in left for fold in params.run(name).fold_names()]
    with ExitStack() as stack:
        for name in left:
            stack.enter_context(only_run(study.partial(name)))
        Trainings(inputs=inputs, folds=folds).run(keep)
    print(f"{len(left) - len(failed)} of {len(left)} runs are trained: dvc repro takes them over")
    if failed:
        raise CleansetError(
            f"{len(failed)} of {len(left)} runs failed: {join_names(failed)}; expected all to finish: see the messages "
            "above, then start again, which trains them alone"
        )


def _check_ended(_: FoldOfRun, problem: str | None) -> None:
    if problem is not None:
        raise CleansetError(problem)


def _train_share(inputs: StudyInputs, name: str) -> None:
    """Train every fold of a run as one of torchrun's processes; the first of them writes data/runs/<run>."""
    settings = inputs.params.run(name)
    with process_share(device_named(inputs.params.device), settings.devices) as (device, share):
        for fold in settings.fold_names():
            train_fold(inputs, name, fold, device=device, share=share)
    if share.rank == 0:
        _finish(inputs, name)


def _finish(inputs: StudyInputs, name: str) -> None:
    """Write data/runs/<run> of the finished folds."""
    study = inputs.study
    unfinished = study.partial(name)
    besides = shutil.ignore_patterns(STATE_FILE, FINISHED_FILE, ".*")
    with replacing(study.run(name)) as new:
        for fold in inputs.params.run(name).fold_names():
            shutil.copytree(unfinished / fold, new / fold, ignore=besides)
    shutil.rmtree(unfinished)


def device_named(name: str) -> Device:
    """The first device that `device` of params.yaml names. Raises CleansetError for a GPU that is not there."""
    return devices_named(name)[0]
