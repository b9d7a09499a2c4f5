"""A run whose `devices` share each batch: the processes that torchrun starts for it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import distributed

from cleanset.errors import CleansetError
from cleanset.plumbing.interpreter import code_command, python_command
from cleanset.scoring.devices import Device, device_of
from cleanset.studies.training.fold_data import ALONE, ProcessShare
from cleanset.studies.training.study import TrainingStudy


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
