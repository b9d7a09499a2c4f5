"""How far the devices of two machines make a computation faster than one device, through a Ray cluster.

The two machines are network namespaces of this one, joined by a cable: what they have in common are its cores, which
also do the work of Ray and make all changed images. Devices are the stand-in ones of `engine.py`, half of them on each
node. Rates are taken from the moment when every worker has finished a shard until the first one has finished its last.

Needs root, iproute2 and Ray: `make .venv-ray/.ready`, then
`PYTHONPATH=sample:. .venv-ray/bin/python bench/two_nodes.py`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cleanset.errors import CleansetError
from cleanset.scoring.cluster import RayJob, compute_on_ray
from cleanset.scoring.computation import Elsewhere, Opened, Place, Task, Tasks, Worker
from cleanset.scoring.engine import DevicePipeline, Settings
from cleanset.scoring.engines import SHARDS_PER_GPU_TASK
from cleanset.scoring.validity import MadeFrom
from cleanset.studies.robustness.one_pass import Kept
from engine import (
    ANSWERS,
    ATTACKS,
    BATCH,
    COMPUTATIONS,
    CPU,
    LIMIT,
    PREPROCESSING,
    Finished,
    StandIn,
    attack_tasks,
    changed_alone,
    changed_images,
    drawn,
    open_attack,
    pass_tasks,
    pass_worker,
    same,
    score_tasks,
    score_worker,
    span_of,
)
from measuring import print_machine, print_table, scratch
from tests.scoring.cluster import WITH_TOKEN, Node, lack_of_namespaces, two_nodes

DEVICES = (1, 2, 4, 8)
TASKS_PER_DEVICE = 3
"""What a worker is sent together, so many times: several shards of scores or of answers, or a group of an attack."""
ATTACKED_GROUPS_PER_DEVICE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Of a computation on two nodes."""

    images: float
    """A second of the clock."""

    cores: float
    """The number of cores that the machine kept busy."""

    workers: Sequence[int]
    """On each node."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, nargs="+", default=list(DEVICES))
    parser.add_argument("--only", nargs="+", default=[*COMPUTATIONS], choices=COMPUTATIONS)
    arguments = parser.parse_args()
    if reason := lack_of_namespaces():
        sys.exit(reason)
    # where the workers of Ray find what they are sent
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    os.environ.update(WITH_TOKEN)
    rates: dict[str, list[Rate]] = {name: [] for name in arguments.only}
    made = []
    with scratch() as folder:
        for count in arguments.devices:
            if ANSWERS in arguments.only:
                made.append(changed_alone(folder, count).by_clock)
            with two_nodes() as nodes:
                for node, gpus in zip(nodes, shared_out(count), strict=True):
                    if gpus:
                        node.start(cpus=gpus, gpus=gpus)
                for name in arguments.only:
                    rates[name].append(driven(nodes[0], folder, name, count))
                    print(f"{name}, {count} devices: {rates[name][-1].images:.2f} images/s", file=sys.stderr)
    print_machine("torch", "timm", "ray")
    rows: list[tuple[str, ...]] = []
    for name, found in rates.items():
        alone = found[0].images / arguments.devices[0]
        rows.append((name, *(f"{rate.images:,.1f}" for rate in found)))
        rows.append((f"{name}, workers on each node", *(" + ".join(map(str, rate.workers)) for rate in found)))
        rows.append((f"{name}, cores of the machine that are busy", *(f"{rate.cores:.2f}" for rate in found)))
        linear = [rate.images / count / alone for rate, count in zip(found, arguments.devices, strict=True)]
        rows.append((f"{name}, of linear, at least {LIMIT}", *(f"{each:.2f}" for each in linear)))
        if name == ANSWERS:
            limits = [min(count * alone, made_alone) for count, made_alone in zip(arguments.devices, made, strict=True)]
            of_limit = [rate.images / limit for rate, limit in zip(found, limits, strict=True)]
            rows.append(("changed images made without a device", *(f"{each:,.1f}" for each in made)))
            rows.append((f"{name}, of linear or of these, at least {LIMIT}", *(f"{each:.2f}" for each in of_limit)))
    print_table(
        "Images a second by the number of stand-in devices on two nodes", ("what", *map(str, arguments.devices)), rows
    )


def shared_out(devices: int) -> tuple[int, int]:
    """The devices of each node."""
    return (devices + 1) // 2, devices // 2


def driven(node: Node, folder: Path, name: str, devices: int) -> Rate:
    """The rate of a computation that is started on a node of a cluster."""
    command = [sys.executable, "-c", "import two_nodes; two_nodes.drive()", str(folder), name, str(devices)]
    with node.run(command, stdout=subprocess.PIPE) as process:
        output = process.communicate()[0]
    if process.returncode:
        raise CleansetError(f"{name} with {devices} devices ended with exit code {process.returncode}")
    return Rate(**json.loads(output))


def drive() -> None:
    """Compute on the cluster that RAY_ADDRESS names, and print the rate as JSON."""
    folder, name, devices = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    tasks = tasks_of(folder, name, devices)
    elsewhere = Elsewhere(name=name, open=partial(opened, folder, name, devices), made_from=MadeFrom({"bench": name}))
    sent = 1 if name in ATTACKS else SHARDS_PER_GPU_TASK
    finished: list[Finished] = []
    job = RayJob(elsewhere=elsewhere, on_gpus=True, tasks_at_a_time=sent)
    compute_on_ray(job, tasks, lambda _, found: finished.append(found))
    print(json.dumps(asdict(rate_of(finished, devices))))


def tasks_of(folder: Path, name: str, devices: int) -> Sequence[Task]:
    """The shards of a computation."""
    if name in ATTACKS:
        return attack_tasks(name, devices * ATTACKED_GROUPS_PER_DEVICE)
    shards = devices * TASKS_PER_DEVICE * SHARDS_PER_GPU_TASK
    return pass_tasks(changed_images(folder), shards) if name == ANSWERS else score_tasks(shards)


def opened(folder: Path, name: str, devices: int, place: Place) -> "Opened[Finished]":
    """A computation on the stand-in device of a worker, whatever device it was given."""
    stands_in = Place(StandIn(CPU), place.cores)
    worker = Telling(worker_of(folder, name, devices, stands_in))
    return Opened(worker=worker, made_from=MadeFrom({"bench": name}))


def worker_of(folder: Path, name: str, devices: int, place: Place) -> Worker[Any]:
    """The worker of a computation, for the life of a process."""
    if name in ATTACKS:
        return open_attack(folder, name, len(tasks_of(folder, name, devices)), "", place).worker
    settings = Settings([place.device], "float32", BATCH, place.cores)
    if name == ANSWERS:
        images = changed_images(folder)
        worker = pass_worker(images, settings)
        worker.kept = Kept(images, settings)
        return worker
    return score_worker(DevicePipeline(partial(same, drawn(0)), PREPROCESSING, settings))


@dataclass(frozen=True, slots=True)
class Telling:
    """A worker that tells when it has finished a shard, in place of what it found."""

    worker: Worker[Any]

    def results(self, tasks: Tasks) -> Generator[tuple[int, Finished], None, None]:
        """The number of each shard, and when it was finished."""
        sizes: dict[int, int] = {}

        def noted() -> Generator[Task, None, None]:
            for task in tasks:
                sizes[task.number] = len(task.ids)
                yield task

        name = f"{os.environ['NODE']} {os.getpid()}"
        with closing(self.worker.results(Tasks(noted()))) as results:
            for number, _ in results:
                # by a clock that all processes of the machine share
                yield number, Finished(name, sizes[number], time.monotonic(), busy_seconds())

    def stop(self) -> None:
        """End the worker."""
        self.worker.stop()


def busy_seconds() -> float:
    """Processor seconds of all processes of the machine since it was started."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def rate_of(finished: Sequence[Finished], workers: int) -> Rate:
    """The rate while all workers compute."""
    span = span_of(finished, workers)
    # a worker is named by its node and its process
    nodes = [str(name).split()[0] for name in {each.worker for each in finished}]
    return Rate(
        images=span.images / span.seconds,
        cores=span.processor_seconds / span.seconds,
        workers=[nodes.count(node) for node in sorted(set(nodes))],
    )


if __name__ == "__main__":
    main()
