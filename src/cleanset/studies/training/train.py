"""Stage `train`: weights, history, record and tests of every fold of a run."""

import json
import math
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch
from safetensors.torch import save
from torch import Tensor, distributed, nn

from cleanset.errors import CleansetError
from cleanset.files import only_run, remove_abandoned, replacing, sha256, write_bytes, write_text
from cleanset.measure.user_model import tensors_sha256
from cleanset.progress import training_bar
from cleanset.scoring.devices import Device, choose_devices, computing_threads, device_of
from cleanset.scoring.fingerprints import module_fingerprint
from cleanset.scoring.scorer import arithmetic
from cleanset.scoring.validity import code_of, library_versions
from cleanset.studies.training.classification import Classification
from cleanset.studies.training.fold_data import ALONE, FoldData, ProcessShare, read_fold
from cleanset.studies.training.loop import Trained, train
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.state import STATE_FILE, Row, StateFolder
from cleanset.studies.training.study import RunFiles, StudyInputs, TrainingStudy

if TYPE_CHECKING:
    from cleanset.studies.training.segmentation.task import Segmentation

TRAINING_LIBRARIES = ("numpy", "opencv-python-headless", "pillow", "timm", "torch", "torchvision")
"""The libraries that decide a network's weights, whose versions are recorded."""
CODE = ("studies/robustness", "studies/attacks", "studies/training")
"""The packages that decide a network's weights."""
LIBRARIES_BY_TASK = {
    "classification": TRAINING_LIBRARIES,
    "segmentation": (*TRAINING_LIBRARIES, "segmentation-models-pytorch"),
}


def run(study: TrainingStudy, name: str) -> None:
    """Train every fold of a run and write data/runs/<run>, continuing an interrupted run.

    A run on several devices is started anew by torchrun, unless torchrun has started this process. Raises CleansetError
    for an unknown run, data and networks that do not fit it, a loss that is not finite, and an interrupted training
    with other settings.
    """
    inputs = StudyInputs.read(study)
    params = inputs.params
    settings = params.run(name)
    if settings.devices > 1 and "WORLD_SIZE" not in os.environ:
        with only_run(study.partial(name)):
            start_processes(study, name, settings.devices)
        return
    # torchrun's processes are of one run, which the process that started them has locked
    with only_run(None if "WORLD_SIZE" in os.environ else study.partial(name)):
        _train(inputs, name)


def _train(inputs: StudyInputs, name: str) -> None:
    study = inputs.study
    params = inputs.params
    settings = params.run(name)
    remove_abandoned(study.runs)
    with process_share(device_named(params.device), settings.devices) as (device, share):
        for fold in settings.fold_names():
            train_fold(inputs, name, fold, device=device, share=share)
    if share.rank:
        return
    unfinished = study.partial(name)
    with replacing(study.run(name)) as new:
        for fold in settings.fold_names():
            shutil.copytree(unfinished / fold, new / fold, ignore=shutil.ignore_patterns(STATE_FILE, ".*"))
    shutil.rmtree(unfinished)


def start_processes(study: TrainingStudy, name: str, count: int) -> None:
    """Train a run in that number of processes on this machine. Raises CleansetError if one of them fails."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    # without "--", torchrun would take --run for a prefix of its own options
    cleanset = ["--no-python", "--", sys.executable, "-c", "from cleanset.cli import main; main()"]
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


def train_fold(inputs: StudyInputs, name: str, fold: str, *, device: Device, share: ProcessShare) -> None:
    """Train a fold and write its files beside its state; of several processes the first one writes."""
    study = inputs.study
    data = read_fold(inputs, name, fold, device.torch, share=share)
    settings = {**data.settings(), "code": code_of(*CODE)}
    settings["versions"] = library_versions(LIBRARIES_BY_TASK[data.run.task])
    settings["device"] = device.name
    folder = study.partial(name) / fold
    device.prepare()
    with deterministic(inputs.params.threads):
        task = task_of(data)
        if (module := data.run.network.module) is not None:  # imported by now
            settings["module_sha256"] = module_fingerprint(module)
        # of a state alone: the record names what these follow from
        begun_with = {"first_weights_sha256": tensors_sha256(task.network), **data.beside()}
        check_length(data.run, task.steps_per_epoch, data.name)
        with training_bar(data.name, is_shown=share.rank == 0) as move:
            # mypy infers no type of batch from a union
            trained = train(task, data.run, StateFolder(folder, settings | begun_with), report=move, share=share)  # type: ignore[misc]
        if share.rank:
            return
        task.network.load_state_dict(trained.weights)
        files = RunFiles(folder)
        parameters = millions_of_parameters(task.network)
        tests = task.test_table(files.sheets)
    write_weights(files.weights, trained.weights, task.inner_name)
    write_text(files.history, history_csv(trained.history))
    write_text(files.test, tests.to_csv(index=False, lineterminator="\n", float_format="%.9g"))
    facts = settings | {"kept": data.run.kept}
    write_record(files.record, facts, trained, weights=files.weights, parameters=parameters)
    write_costs(study.cost(name, fold), data.run, trained, device=device, parameters=parameters)


def device_named(name: str) -> Device:
    """The device that `device` of params.yaml names. Raises CleansetError for a GPU that is not there."""
    try:
        return choose_devices(name)[0]
    except CleansetError as error:
        raise CleansetError(f"params.yaml: {error}") from None


def check_length(run: Run, steps_per_epoch: int, name: str) -> None:
    """Raise CleansetError for steps that end within a warm-up; their images say how many epochs they are."""
    try:
        run.check_warm_up(math.ceil(run.steps / steps_per_epoch) if run.steps else run.epochs or 0)
    except ValueError as error:
        raise CleansetError(f"{name}: {error}, or more steps") from None


def task_of(data: FoldData) -> "Classification | Segmentation":
    """The task of a fold, as its run's params have it. Raises CleansetError as its class does."""
    if data.run.task == "segmentation":
        # segmentation-models-pytorch takes seconds to import
        from cleanset.studies.training.segmentation.task import Segmentation

        return Segmentation(data)
    return Classification(data)


@contextmanager
def deterministic(threads: int) -> Iterator[None]:
    """Compute with that number of threads, and with nothing that differs from run to run where torch has a way.

    Interpolation on a GPU has no such way back; torch then warns.
    """
    with computing_threads(threads), arithmetic("float32"), warnings.catch_warnings():
        torch.use_deterministic_algorithms(True, warn_only=True)
        yield


def history_csv(history: Sequence[Row]) -> str:
    """The history as CSV: epoch, step, measures of training and validation, rate."""
    table = pd.DataFrame(history)
    # measures under attack begin in a later row, and so stand behind the rate
    table = table[[*table.columns.drop("rate"), "rate"]].astype({"epoch": int, "step": int})
    # all digits of a float32
    return str(table.to_csv(index=False, lineterminator="\n", float_format="%.9g"))


def write_record(
    path: Path, settings: Mapping[str, object], trained: Trained, *, weights: Path, parameters: float
) -> None:
    """Write everything that the weights follow from, and their SHA-256; nothing that differs from run to run."""
    record = {
        **settings,
        "parameters_in_millions": parameters,
        "epoch": trained.epoch,
        "epochs": len(trained.history),
        "weights_sha256": sha256(weights.read_bytes()),
    }
    write_text(path, json.dumps(record, indent=2) + "\n")


def write_costs(path: Path, run: Run, trained: Trained, *, device: Device, parameters: float) -> None:
    """Write seconds and images a second, of interrupted processes too, and the peak memory of this one.

    They differ from run to run, as does the time at which it finished, in UTC.
    """
    costs = {
        "finished": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": device.name,
        "step": int(trained.history[-1]["step"]),
        "batch": run.batch,
        "size": run.size,
        "seconds": round(trained.seconds, 3),
        "images": trained.images,
        "images_per_second": round(trained.images / max(trained.seconds, 1e-9), 3),
        "peak_memory_bytes": device.peak_memory(),
        "parameters_in_millions": parameters,
    }
    write_text(path, json.dumps(costs, indent=2) + "\n")


def millions_of_parameters(network: nn.Module) -> float:
    """The number of parameters in millions, of six decimals."""
    return round(sum(each.numel() for each in network.parameters()) / 1e6, 6)


def write_weights(path: Path, weights: dict[str, Tensor], inner_name: str = "1") -> None:
    """Write the network behind the normalisation, under its library's own names, as safetensors.

    `inner_name`: of the module that is that network.
    """
    prefix = f"{inner_name}."
    inner = {name.removeprefix(prefix): each.contiguous() for name, each in weights.items() if name.startswith(prefix)}
    content = save(dict(sorted(inner.items())))
    write_bytes(path, content)
