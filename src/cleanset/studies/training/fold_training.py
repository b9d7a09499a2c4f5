"""Train a fold of a run: its weights, history, record, tests and costs."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch
from safetensors.torch import save
from torch import Tensor, nn

from cleanset.errors import CleansetError
from cleanset.evaluation.user_model import tensors_sha256
from cleanset.plumbing.csv_files import frame_csv, write_frame
from cleanset.plumbing.files import sha256_of, write_bytes, write_text
from cleanset.plumbing.json_files import write_json
from cleanset.plumbing.progress import training_bar
from cleanset.scoring.devices import Device, computing_threads
from cleanset.scoring.fingerprints import module_fingerprint
from cleanset.scoring.scorer import arithmetic
from cleanset.scoring.validity import code_of, library_versions
from cleanset.statistics.formats import rounded
from cleanset.studies.training.classification import Classification
from cleanset.studies.training.finished import CODE, LIBRARIES_BY_TASK
from cleanset.studies.training.fold_data import FoldData, ProcessShare, read_fold
from cleanset.studies.training.loop import OnStep, Trained, train
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.state import Row, StateFolder
from cleanset.studies.training.study import RunFiles, StudyInputs

if TYPE_CHECKING:
    from cleanset.studies.training.segmentation.task import Segmentation


def train_fold(
    inputs: StudyInputs, name: str, fold: str, *, device: Device, share: ProcessShare, on_step: OnStep | None = None
) -> None:
    """Train a fold and write its files in place of its state; the first of several processes writes.

    `on_step`: is called after each step; None: a bar shows them. A fold that is finished stays unchanged.
    """
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
        state = StateFolder(folder, settings | begun_with)
        if state.is_finished():
            return
        with training_bar(data.name, is_shown=share.rank == 0 and on_step is None) as move:
            # mypy infers no type of batch from a union
            trained = train(task, data.run, state, report=on_step or move, share=share)  # type: ignore[misc]
        if share.rank:
            return
        task.network.load_state_dict(trained.weights)
        files = RunFiles(folder)
        parameters = millions_of_parameters(task.network)
        tests = task.test_table(files.sheets)
    write_weights(files.weights, trained.weights, task.inner_name)
    write_text(files.history, history_csv(trained.history))
    write_frame(files.test, tests, "%.9g")
    facts = settings | {"kept": data.run.kept}
    write_record(files.record, facts, trained, weights=files.weights, parameters=parameters)
    write_costs(study.cost(name, fold), data.run, trained, device=device, parameters=parameters)
    state.finish()


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
    """Compute with that number of threads, and with nothing that differs from run to run if torch has a way.

    Interpolation on a GPU has no such way back; torch then warns.
    """
    with computing_threads(threads), arithmetic("float32"), warnings.catch_warnings():
        torch.use_deterministic_algorithms(True, warn_only=True)
        yield


def history_csv(history: Sequence[Row]) -> str:
    """The history as CSV: epoch, step, measures of training and validation, rate."""
    table = pd.DataFrame(history)
    # measures under attack begin in a later row, and so follow the rate
    table = table[[*table.columns.drop("rate"), "rate"]].astype({"epoch": int, "step": int})
    # all digits of a float32
    return frame_csv(table, "%.9g")


def write_record(
    path: Path, settings: Mapping[str, object], trained: Trained, *, weights: Path, parameters: float
) -> None:
    """Write everything that the weights follow from, and their SHA-256; nothing that differs from run to run."""
    record = {
        **settings,
        "parameters_in_millions": parameters,
        "epoch": trained.epoch,
        "epochs": len(trained.history),
        "weights_sha256": sha256_of(weights),
    }
    write_json(path, record)


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
        "seconds": rounded(trained.seconds, 3),
        "images": trained.images,
        "images_per_second": rounded(trained.images / max(trained.seconds, 1e-9), 3),
        "peak_memory_bytes": device.peak_memory(),
        "parameters_in_millions": parameters,
    }
    write_json(path, costs)


def millions_of_parameters(network: nn.Module) -> float:
    """The number of parameters in millions, of six decimals."""
    return rounded(sum(each.numel() for each in network.parameters()) / 1e6, 6)


def write_weights(path: Path, weights: dict[str, Tensor], inner_name: str = "1") -> None:
    """Write the network behind the normalisation, under its library's own names, as safetensors.

    `inner_name`: the name of the module that is that network.
    """
    prefix = f"{inner_name}."
    inner = {name.removeprefix(prefix): each.contiguous() for name, each in weights.items() if name.startswith(prefix)}
    content = save(dict(sorted(inner.items())))
    write_bytes(path, content)
