"""Training against its parts: the loop against the step alone, adversarial steps against passes, a kill against none.

It reads the tables and images of studies/training, which `make training` makes. On a CPU times are of the processor, on
one thread, so that other work hardly matters; on a GPU they are of the clock, and the network is ResNet-50.
"""

import argparse
import os
import signal
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch
from timm.optim import create_optimizer_v2
from torch.nn import functional

from cleanset.scoring.devices import choose_devices
from cleanset.studies.training.classification import Classification
from cleanset.studies.training.fold_data import FoldData, read_fold
from cleanset.studies.training.loop import StateFolder, Trained, train
from cleanset.studies.training.params import TrainingParams
from cleanset.studies.training.recipes import Adversarial
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from cleanset.studies.training.train import deterministic
from measuring import PROJECT, print_machine, print_table, scratch, share

MIN_OF_STEP, MAX_OF_PASSES = 0.9, 1.1
"""Limits: the loop's rate by that of the step alone; an adversarial step by k + 1 passes."""
NETWORKS = {"cpu": ("test_efficientnet", 96, 32), "cuda": ("resnet50", 224, 64)}
"""Network, size and batch by device."""
EPOCHS, ROUNDS, STEPS = 3, 3, 3
"""Epochs of which the first warms up, rounds, and steps of projected gradient ascent."""
KILLED_IN_EPOCH = 3
Clock = Callable[[], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    device = choose_devices(parser.parse_args().device)[0].torch
    print_machine("torch", "timm")
    rows = [looped(device), ascended(device), resumed(device)]
    name, size, batch = NETWORKS[device.type]
    title = f"{name}, {size} x {size}, batches of {batch}, {device.type}, median of {ROUNDS}"
    print_table(title, ("what", "found", "limit", "of the limit"), rows)
    sys.exit(any(float(row[3]) > 1 for row in rows))


def data_of(device: torch.device, **changed: Any) -> FoldData:
    """All of the study's images, for a run of its own."""
    study = TrainingStudy(PROJECT / "studies" / "training")
    if not study.images.is_file():
        sys.exit(f"{study.images}: missing; run make training first")
    name, size, batch = NETWORKS[device.type]
    settings = {"network": {"name": name}, "size": size, "batch": batch, "folds": 0, "epochs": EPOCHS, **changed}
    inputs = StudyInputs.read(study)
    runs = {"bench": Run.model_validate(settings).model_dump()}
    params = TrainingParams.model_validate({**inputs.params.model_dump(exclude={"runs", "grids"}), "runs": runs})
    return read_fold(replace(inputs, params=params), "bench", "all", device)


def clock_of(device: torch.device) -> Clock:
    """The processor's time, or the clock once a GPU has finished."""
    if device.type == "cpu":
        return process_time

    def waited() -> float:
        torch.cuda.synchronize(device)
        return perf_counter()

    return waited


def looped(device: torch.device) -> tuple[str, ...]:
    """The rate of the loop after its first epoch, batches and states included, by that of the step alone."""
    data, clock = data_of(device), clock_of(device)
    ratios = []
    with deterministic(data.params.threads):
        for _ in range(ROUNDS):
            task = Classification(data)
            ends: list[float] = []
            with scratch() as folder:
                train(task, data.run, StateFolder(folder, {}), lambda *_, ends=ends: ends.append(clock()))
            per_epoch = task.steps_per_epoch
            of_loop = (ends[-1] - ends[per_epoch - 1]) / (len(ends) - per_epoch)
            ratios.append(step_alone(task, data, clock) / of_loop)
    found = statistics.median(ratios)
    return "rate of the loop, of the step alone", f"{found:.3f}", f"{MIN_OF_STEP}", share(MIN_OF_STEP, found)


def step_alone(task: Classification, data: FoldData, clock: Clock) -> float:
    """Seconds of a training step on a batch that lies ready on the device."""
    batch = next(iter(task.batches(1)))
    images = batch.views[:, 0].to(data.device).float() / 255
    labels = batch.labels.to(data.device)
    optimizer = create_optimizer_v2(task.network, opt="adamw", lr=data.run.rate)
    task.network.train()
    times = []
    for _ in range(2 * task.steps_per_epoch):
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(task.network(images), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        times.append(clock())
    # the first step allocates
    return (times[-1] - times[0]) / (len(times) - 1)


def ascended(device: torch.device) -> tuple[str, ...]:
    """An adversarial loss with its backward pass, by as many passes of the standard one as it takes."""
    data, clock = data_of(device), clock_of(device)
    recipe = Adversarial(eps=4 / 255, steps=STEPS, step=2 / 255)
    ratios = []
    with deterministic(data.params.threads):
        task = Classification(data)
        adversarial = Classification(data)
        adversarial.training.recipe = recipe
        batch = next(iter(task.batches(1)))
        task.network.train()
        for _ in range(ROUNDS + 1):
            times = []
            for each, count in ((task, 10 * (STEPS + 1)), (adversarial, 10)):
                start = clock()
                for _ in range(count):
                    task.network.zero_grad(set_to_none=True)
                    each.loss(task.network, batch, 1).loss.backward()  # type: ignore[no-untyped-call]
                times.append(clock() - start)
            ratios.append(times[1] / times[0])
    found = statistics.median(ratios[1:])
    what = f"adversarial, {STEPS} steps: of {STEPS + 1} passes"
    return what, f"{found:.3f}", f"{MAX_OF_PASSES}", share(found, MAX_OF_PASSES)


def resumed(device: torch.device) -> tuple[str, ...]:
    """Epochs trained again after kill -9 in the middle of one; the weights must be those of no kill."""
    with scratch() as folder:
        whole, killed = folder / "whole", folder / "killed"
        for state, kill in ((whole, False), (killed, True), (killed, False)):
            process = get_context("spawn").Process(target=trained_in, args=(state, str(device), kill))
            process.start()
            process.join()
            expected = -signal.SIGKILL if kill else 0
            if process.exitcode != expected:
                sys.exit(f"the training ended with {process.exitcode}; expected {expected}")
        if (whole / "weights.pt").read_bytes() != (killed / "weights.pt").read_bytes():
            sys.exit("the weights after a kill differ; expected those of an uninterrupted training")
        steps = [len((each / "steps").read_text()) for each in (whole, killed)]
    again = (steps[1] - steps[0]) / (steps[0] / EPOCHS)
    return "epochs trained again after kill -9, same weights", f"{again:.3f}", "1", share(again, 1)


def trained_in(folder: Path, device: str, kill: bool) -> None:
    """Train, or continue, with a character in `steps` for each step; with `kill`, die within an epoch."""
    data = data_of(torch.device(device))
    folder.mkdir(exist_ok=True)
    log = (folder / "steps").open("a", buffering=1)

    def noted(step: int, _steps: int, epoch: int, *_: float) -> None:
        log.write(".")
        log.flush()
        if kill and epoch == KILLED_IN_EPOCH and step % 2 == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with deterministic(data.params.threads):
        task = Classification(data)
        found: Trained = train(task, data.run, StateFolder(folder / "state", {}), noted)
    torch.save(dict(sorted(found.weights.items())), folder / "weights.pt")


if __name__ == "__main__":
    main()
