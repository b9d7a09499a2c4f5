"""How far more devices make a computation faster, without one GPU: with devices that take time and no core.

A stand-in device waits for a fixed time for each image of a query. Changed images are made by real corruptions on the
cores of this machine: next to answers to them is the limit, which is the devices' or the cores', whichever is lower,
and the cores' is measured without a device, with as many processes. Rates are taken from the moment when every worker
has finished a shard until the first one has finished its last, so that the start of processes does not count.
"""

import argparse
import io
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Hashable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn

from cleanset.classes import imagenet
from cleanset.evaluation.sets import ImageFile
from cleanset.images.preprocessing import BASE_SIZE, ResizeAndCrop
from cleanset.plumbing.files import replacing, sha256
from cleanset.plumbing.machine import available_cores
from cleanset.scoring.computation import Elsewhere, Opened, Place, Task, Tasks, Worker, compute, further_workers
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device
from cleanset.scoring.engine import DevicePipeline, Settings, ShardScorer, open_pipelines
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import arithmetic, grouped
from cleanset.scoring.validity import MadeFrom
from cleanset.studies.attacks.attacking import SEARCHING, Attacking, Search
from cleanset.studies.attacks.base import Known
from cleanset.studies.attacks.judge import Judge
from cleanset.studies.attacks.study import AttackedFolder, AttackParams
from cleanset.studies.attacks.targets import Searching, Target
from cleanset.studies.robustness.answers import ReadAnswers
from cleanset.studies.robustness.corruptions.changes import corrupted_image
from cleanset.studies.robustness.digests import open_changing
from cleanset.studies.robustness.families import CHANGING
from cleanset.studies.robustness.images import STUDY_IMAGES, ChangedImages, ChangeName
from cleanset.studies.robustness.one_pass import AskedModel, PassTask, PassWorker, squares
from measuring import print_machine, print_table, scratch

DEVICES = (1, 2, 4, 8)
SHARDS_PER_DEVICE = 12
ANSWERED_SHARDS_PER_DEVICE = 24
AHEAD = 6
"""Shards of answers for which images may have been made while the workers waited for each other: they do not count."""
SCORED_SHARD = 64
"""Images in a shard of scores."""
ANSWERED_SHARD = 32
"""Changed images in a shard of answers."""
CHANGES = (("gaussian_noise", 3), ("motion_blur", 3), ("fog", 3), ("jpeg_compression", 3))
"""Corruptions of four kinds, each with its severity."""
BATCH = 16
GROUP = 4
"""Images in a group of an attack."""
SIDE = 64
PREPROCESSING = ResizeAndCrop("Res64", SIDE, SIDE, "bilinear")
SCORE_MILLISECONDS = 20.0
"""Time of the device for an image that is scored."""
QUERY_MILLISECONDS = 40.0
"""Time of the device for an image of a query, with its gradient."""
PGD_STEPS = 10
SPSA_STEPS = 3
ATTACKS: Mapping[str, Mapping[str, object]] = {
    "pgd": {"steps": PGD_STEPS, "group": GROUP},
    "spsa": {"steps": SPSA_STEPS, "samples": 8, "after": None},
}
ANSWERS = "answers"
COMPUTATIONS = ("score", ANSWERS, *ATTACKS)
LIMIT = 0.9
CPU = torch.device("cpu")


class StandIn(Device):
    """A device that takes time and no core."""

    is_separate = True

    @property
    def name(self) -> str:
        return "stand-in"

    def batch_size(self, wanted: int) -> int:
        return wanted


class Waiting(nn.Module):
    """A network whose answers take a time for each image; the class is that of a mean color."""

    def __init__(self, milliseconds: float) -> None:
        super().__init__()
        self.milliseconds = milliseconds
        self.weight = nn.Parameter(torch.sin(torch.arange(3000.0)).reshape(3, 1000))

    def forward(self, pixels: Tensor) -> Tensor:
        # without the lock of the interpreter, as a device computes
        time.sleep(len(pixels) * self.milliseconds / 1000)
        return pixels.to(self.weight.dtype).mean(dim=(2, 3)) @ self.weight


@dataclass(frozen=True)
class Timed:
    """A worker that tells who it is with each result, and waits with its first one until all have one."""

    number: int
    worker: Worker[Any]
    all_ready: threading.Barrier

    def results(self, tasks: Tasks) -> Generator[tuple[int, int], None, None]:
        """The number of each shard, and of this worker."""
        with closing(self.worker.results(tasks)) as results:
            first = None
            try:
                first = next(results, None)
            finally:
                if first is None:
                    # the others, who have taken all tasks ahead, would wait forever
                    self.all_ready.abort()
            if first is None:
                return
            with suppress(threading.BrokenBarrierError):
                self.all_ready.wait()
            for number, _ in chain([first], results):
                yield number, self.number

    def stop(self) -> None:
        """End the worker."""
        self.worker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, nargs="+", default=list(DEVICES))
    parser.add_argument("--only", nargs="+", default=[*COMPUTATIONS], choices=COMPUTATIONS)
    arguments = parser.parse_args()
    worker_processes([*SEARCHING, *CHANGING])
    rates: dict[str, list[float]] = {}
    made: list[float] = []
    with scratch() as folder:
        for name in arguments.only:
            rates[name] = []
            for count in arguments.devices:
                if name == ANSWERS:
                    # just before, since other work on the cores comes and goes
                    made.append(changed_alone(folder, count))
                rate = rate_of(folder, name, count)
                rates[name].append(rate)
                print(f"{name}, {count} devices: {rate:.2f} images/s", file=sys.stderr)
    print_machine("torch", "timm")
    title = (
        f"Images a second by the number of stand-in devices, which take {SCORE_MILLISECONDS:.0f} ms for an image that "
        f"is scored or answered, and {QUERY_MILLISECONDS:.0f} ms for one of a query"
    )
    print_table(title, ("what", *map(str, arguments.devices)), rows_of(rates, made, arguments.devices))


def rows_of(
    rates: Mapping[str, Sequence[float]], made: Sequence[float], devices: Sequence[int]
) -> list[tuple[str, ...]]:
    """The rows of the table; `made`: the rates of changed images made without a device."""
    rows: list[tuple[str, ...]] = []
    for name, found in rates.items():
        rows.append((name, *(f"{rate:,.1f}" for rate in found)))
        if name != ANSWERS:
            alone = found[0] / devices[0]
            linear = [rate / count / alone for rate, count in zip(found, devices, strict=True)]
            rows.append((f"{name}, of linear, at least {LIMIT}", *(f"{each:.2f}" for each in linear)))
            continue
        limits = [
            min((count * 1000 / SCORE_MILLISECONDS, "devices"), (cores, "cores"))
            for count, cores in zip(devices, made, strict=True)
        ]
        rows.append(("changed images made without a device", *(f"{each:,.1f}" for each in made)))
        rows.append((f"{name}, the limit is that of the", *(what for _, what in limits)))
        of_limit = [rate / limit for rate, (limit, _) in zip(found, limits, strict=True)]
        rows.append((f"{name}, of the limit, at least {LIMIT}", *(f"{each:.2f}" for each in of_limit)))
    return rows


@dataclass(frozen=True)
class Finished:
    """A shard, and when it was finished."""

    worker: Hashable
    images: int
    seconds: float


def measured(workers: Sequence[Worker[Any]], tasks: Sequence[Task], skipped: int = 1) -> float:
    """The rate while all workers compute, each starting with its shard number `skipped`."""
    finished: list[Finished] = []

    def keep(number: int, worker: int) -> None:
        finished.append(Finished(worker=worker, images=len(tasks[number].ids), seconds=perf_counter()))

    barrier = threading.Barrier(len(workers))
    compute([Timed(number, each, barrier) for number, each in enumerate(workers)], tasks, keep)
    return rate_while_all_compute(finished, len(workers), skipped)


def rate_while_all_compute(finished: Sequence[Finished], workers: int, skipped: int) -> float:
    """Images a second from when each worker has finished `skipped` shards until the first has finished its last.

    A shard in progress counts by the share of its time that has passed. Without such a time, the rate is from the first
    shard to the last, with a note. Exits where a worker has finished none.
    """
    in_order = sorted(finished, key=lambda each: each.seconds)
    by_worker = defaultdict[Hashable, list[Finished]](list)
    for each in in_order:
        by_worker[each.worker].append(each)
    if len(by_worker) < workers:
        sys.exit(f"{len(by_worker)} of {workers} workers took shards: give them more")
    begin = max(shards[min(skipped, len(shards)) - 1].seconds for shards in by_worker.values())
    end = min(shards[-1].seconds for shards in by_worker.values())
    if end <= begin:
        print("not all workers compute at once: give them more shards", file=sys.stderr)
        begin, end = in_order[0].seconds, in_order[-1].seconds
    images = 0.0
    for shards in by_worker.values():
        done = np.cumsum([each.images for each in shards])
        images += float(np.subtract(*np.interp([end, begin], [each.seconds for each in shards], done)))
    return images / (end - begin)


def scored(devices: int) -> float:
    """The rate of `score`."""
    settings = Settings([StandIn(CPU)] * devices, "float32", BATCH, devices)
    with open_pipelines(partial(same, drawn(0)), PREPROCESSING, settings) as pipelines, arithmetic("float32"):
        return measured([score_worker(each) for each in pipelines], score_tasks(devices * SHARDS_PER_DEVICE))


def score_worker(pipeline: DevicePipeline) -> ShardScorer:
    """The worker of a scoring by the waiting network."""
    pipeline.load(LoadedModel(Waiting(SCORE_MILLISECONDS), PREPROCESSING, "", classes=1000), "float32")
    return ShardScorer(pipeline)


def score_tasks(shards: int) -> list[Task]:
    """Shards of images, whose names are numbers."""
    numbers = range(shards * SCORED_SHARD)
    return [Task(number, [f"{image}" for image in ids]) for number, ids in enumerate(grouped(numbers, SCORED_SHARD))]


def rate_of(folder: Path, name: str, devices: int) -> float:
    """The rate of a computation on stand-in devices."""
    if name == "score":
        return scored(devices)
    return answered(folder, devices) if name == ANSWERS else attacked(folder, name, devices)


def answered(folder: Path, devices: int) -> float:
    """The rate of answers to images that corruptions change."""
    images = changed_images(folder)
    settings = Settings([StandIn(CPU)] * devices, "float32", BATCH, available_cores())
    workers = [pass_worker(images, each) for each in settings.by_device()]
    with arithmetic("float32"):
        return measured(workers, pass_tasks(images, devices * ANSWERED_SHARDS_PER_DEVICE), AHEAD)


def pass_worker(images: ChangedImages, settings: Settings) -> PassWorker:
    """The worker of a pass of the waiting network over changed images."""
    # as most models see them
    model = LoadedModel(Waiting(SCORE_MILLISECONDS), squares(BASE_SIZE), "", classes=1000)
    asked = AskedModel(model=model, read_off=ReadAnswers(range(1000), dict.fromkeys(images.files, 0)))
    return PassWorker(models={"model": asked}, images=images, settings=settings, takes_digests=True)


def pass_tasks(images: ChangedImages, shards: int) -> list[PassTask]:
    """Shards of changed images."""
    groups = grouped(changed_names(images, shards), ANSWERED_SHARD)
    return [PassTask(number, ids, {"model": ids}) for number, ids in enumerate(groups)]


def changed_alone(folder: Path, devices: int) -> float:
    """The rate at which the processes of `devices` devices make changed images that nobody looks at."""
    images = changed_images(folder)
    groups = list(grouped(changed_names(images, devices * SHARDS_PER_DEVICE), ANSWERED_SHARD))
    with open_changing(images, max(devices, available_cores())) as changing:
        # the first batches wait for the start of the processes
        made = changing.batches(groups)
        for _ in range(len(groups) // 3):
            next(made)
        begin = perf_counter()
        count = sum(len(batch.image_ids) for batch in made)
        return count / (perf_counter() - begin)


def changed_images(folder: Path) -> ChangedImages:
    """Changed images of a photograph of usual size under some names."""
    path = folder / "photograph.JPEG"
    with replacing(path) as temporary:
        temporary.write_bytes(drawn(0, side=400))
    digest = sha256(path.read_bytes())
    files = {
        f"{number:05d}.JPEG": ImageFile(path, digest, f"ILSVRC2012_val_{number + 1:08d}") for number in range(2048)
    }
    return ChangedImages(files, corrupted_image, 85, 0)


def changed_names(images: ChangedImages, shards: int) -> list[ChangeName]:
    """The names of the changed images of some shards."""
    names = (ChangeName(file, *change) for file in images.files for change in CHANGES)
    return list(islice(names, shards * ANSWERED_SHARD))


def same(photograph: bytes, _: object) -> bytes:
    """The bytes of every image."""
    return photograph


def drawn(seed: int, side: int = SIDE) -> bytes:
    """A JPEG of noise, `side` pixels a side."""
    out = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), np.uint8)
    Image.fromarray(pixels).save(out, "JPEG")
    return out.getvalue()


def attacked(folder: Path, name: str, devices: int) -> float:
    """The rate of an attack on stand-in devices."""
    tasks = attack_tasks(name, devices * SHARDS_PER_DEVICE)
    device = StandIn(CPU)
    opening = partial(open_attack, folder, name, len(tasks))
    here = opening(Place(device))
    elsewhere = Elsewhere(name=name, open=opening, made_from=here.made_from)
    further = further_workers(elsewhere, [device] * devices, devices, SEARCHING)
    return measured([here.worker, *further], tasks)


def attack_tasks(name: str, shards: int) -> list[Task]:
    """Groups of images of an attack."""
    size = attack_params(name).attack(name).group_size
    files = [f"{number:05d}.JPEG" for number in range(shards * size)]
    return [Task(number * size, ids) for number, ids in enumerate(grouped(files, size))]


def attack_params(name: str) -> AttackParams:
    """The params of a study with one attack."""
    return AttackParams.model_validate({"attacks": {name: ATTACKS[name]}})


def open_attack(folder: Path, name: str, shards: int, place: Place) -> Opened[Any]:
    """An attack on the waiting network."""
    path = folder / "image.JPEG"
    with replacing(path) as temporary:
        temporary.write_bytes(drawn(0))
    digest = sha256(path.read_bytes())
    files = [file for task in attack_tasks(name, shards) for file in task.ids]
    ids = {file: f"ILSVRC2012_val_{number + 1:08d}" for number, file in enumerate(files)}
    model = LoadedModel(Waiting(QUERY_MILLISECONDS), PREPROCESSING, "", classes=1000)
    device = place.device.torch
    judge = Judge(model, device)
    # an image that is misclassified from the beginning takes one query
    label = int(judge.logits(PREPROCESSING(Image.open(path))).argmax())
    rows = [(file, image_id, label, None, digest, ["standard"]) for file, image_id in ids.items()]
    target = Target(
        name="standard",
        model=model,
        images=pd.DataFrame(rows, columns=STUDY_IMAGES.names),
        files={file: ImageFile(path, digest, image_id) for file, image_id in ids.items()},
        classes=imagenet(),
        judge=judge,
        how=Searching(device, "float32", BATCH),
        seed=0,
    )
    attacking = Attacking(attack_params(name), name, target, AttackedFolder(folder / name))
    known = Known(0, target.others)
    return Opened(worker=Search(attacking=attacking, known=known), made_from=MadeFrom({"attack": name}))


if __name__ == "__main__":
    main()
