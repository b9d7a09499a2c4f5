"""A computation as a Ray Data job on several machines, which needs `cleanset[ray]` on each.

Every node must see the edition's folder, with the images and weights, under the same path, and must have the same
versions of the code and libraries; a node that differs ends the run. RAY_ADDRESS names the cluster; without it one is
started on this machine. A node that joins during the run gets work; the work of a node that dies is done by others.
"""

import os
import pickle
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from socket import create_connection, gethostname
from typing import Any, Generic
from urllib.parse import urlsplit

import numpy as np
import torch
from numpy.typing import NDArray

from cleanset.errors import CleansetError, cut, install_command, reason
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.waiting import repeated_lines
from cleanset.scoring.computation import Elsewhere, Found, Limit, Place, Task, Tasks, Worker
from cleanset.scoring.devices import device_of
from cleanset.statistics.formats import counted

RayRows = dict[str, NDArray[Any]]

CONNECT_SECONDS = 30
"""Time in which the head node has to accept a connection."""
ANSWER_SECONDS = 55
"""Time in which the cluster at an address has to answer Ray. One that is started here takes the time it takes."""
LINE_SECONDS = 10.0
"""Time between two lines that say what is waited for."""
WORKER_BYTES = 2**30
"""Memory that a worker reserves: libraries and a model take 570 to 1,000 MiB. Less on nodes that have less."""
_REMEDY = "expected the edition, code and libraries of the head node: update this node, or run ray stop on it"


@dataclass(frozen=True, slots=True, kw_only=True)
class RayJob(Generic[Found]):
    """A computation whose workers have a GPU each, or a core each."""

    elsewhere: Elsewhere[Found]
    on_gpus: bool
    tasks_at_a_time: int = 1
    """Tasks that a worker is sent together: more than one where they take less time than the way to the worker."""
    cores: int = 1
    """Cores that a worker without a GPU needs."""
    is_long: bool = False
    """Whether a task takes minutes: none then waits at a worker that is busy while another is free."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the workers' environment."""


class RayWorker(Generic[Found]):
    """A worker of the cluster, which keeps its model and device from task to task."""

    def __init__(self, job: RayJob[Found]) -> None:
        self._job = job

    @cached_property
    def _worker(self) -> Worker[Found]:
        import ray

        device = device_of(torch.device("cuda", 0) if self._job.on_gpus else torch.device("cpu"))
        cores = max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))
        torch.set_num_threads(1)
        try:
            return self._job.elsewhere.worker(Place(device, cores))
        except CleansetError as error:
            raise CleansetError(f"{error}; {_REMEDY}") from None

    def __call__(self, rows: RayRows) -> RayRows:
        """The pickled result of each task, or the error that ends the run, which would arrive wrapped if raised."""
        import ray

        tasks = [pickle.loads(each) for each in rows["task"]]
        try:
            by_number: dict[int, object] = dict(self._worker.results(Tasks(tasks)))
            found = [by_number[task.number] for task in tasks]
        except CleansetError as error:
            node = f"Ray node {ray.util.get_node_ip_address()} ({gethostname()})"
            found = [CleansetError(f"{node}: {error}")] * len(tasks)
        return {"number": rows["number"], "found": np.array([pickle.dumps(each) for each in found], dtype=object)}


def compute_on_ray(
    job: RayJob[Found], tasks: Sequence[Task], keep: Callable[[int, Found], None], limit: Limit | None = None
) -> None:
    """Compute tasks with a worker for each GPU of the cluster, or for each core of one without GPUs.

    All tasks are given to the cluster at once; the job ends when `limit` lets the first one that is not finished begin
    no more. Raises CleansetError as `computation.compute` does, for a node that would compute other results, if the
    cluster is lost, and if Ray is not installed. What was kept before stays.
    """
    if find_spec("ray") is None:
        raise CleansetError(f"engine ray: Ray is not installed; run {install_command('ray')}, or set engine: local")
    open_tasks = {task.number: task for task in tasks}

    def is_over() -> bool:
        first = next(iter(open_tasks), None)
        return first is None or (limit is not None and not limit.may_begin(first))

    if is_over():
        return
    check_address(os.environ.get("RAY_ADDRESS", ""))
    rows = [{"number": task.number, "task": pickle.dumps(task)} for task in tasks]
    # closing ends the job
    with closing(_finished(job, rows)) as results:
        for number, found in results:
            keep(number, found)
            del open_tasks[number]
            if is_over():
                return


def check_address(address: str) -> None:
    """Raise CleansetError if nothing answers at an address of RAY_ADDRESS: Ray would ask for ever.

    `auto`, `local` and an empty one name no place.
    """
    if not address or address in ("auto", "local"):
        return
    expected = (
        "expected the running head node of a cluster, as HOST:PORT: start it (ray start --head), or unset RAY_ADDRESS, "
        "which starts one on this machine"
    )
    try:
        place = urlsplit(address if "://" in address else f"//{address}")
        if place.hostname is None or place.port is None:
            raise CleansetError(f"RAY_ADDRESS {address}: no host and port; {expected}")
        create_connection((place.hostname, place.port), CONNECT_SECONDS).close()
    except ValueError:  # a port that is not a number, a half of brackets
        raise CleansetError(f"RAY_ADDRESS {address}: no host and port; {expected}") from None
    except OSError as error:
        raise CleansetError(f"RAY_ADDRESS {address}: nothing answers there ({reason(error)}); {expected}") from None


def _finished(job: RayJob[Found], rows: Sequence[Mapping[str, object]]) -> Generator[tuple[int, Found], None, None]:
    """The numbers and results of finished tasks, from a process of their own: Ray ends one that loses the cluster."""
    context = get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run_job, args=(theirs, job, rows))
    process.start()
    theirs.close()
    try:
        _await_cluster(ours)
        for number, found in iter(ours.recv, None):
            if isinstance(found, CleansetError):
                raise found
            yield number, found
    except EOFError:
        address = os.environ.get("RAY_ADDRESS", "on this machine")
        raise CleansetError(
            f"engine ray: the cluster {address} cannot be reached, or its head node has died; expected it to run "
            "until the end: start it and the run again, which continues after the finished shards"
        ) from None
    finally:
        process.terminate()
        process.join(10)
        process.kill()


def _await_cluster(pipe: "Connection[Any, Any]") -> None:
    """Wait until the cluster answers, saying so; then print its nodes. Raises CleansetError if it does not in time."""
    address = os.environ.get("RAY_ADDRESS", "")
    where = f"the cluster at {address}" if address else "a cluster of this machine"
    with repeated_lines(lambda: f"waiting for {where} …", LINE_SECONDS):
        has_answered = pipe.poll(ANSWER_SECONDS if address else None)
    if not has_answered:
        raise CleansetError(
            f"engine ray: {where} accepts connections, but has not answered in {ANSWER_SECONDS} s; expected a running "
            "head node: see ray status, and restart it, or unset RAY_ADDRESS, which starts a cluster on this machine"
        )
    nodes, found = pipe.recv()
    if isinstance(found, CleansetError):
        raise found
    print_notice(f"{where} answers: {counted(nodes, 'node')}; its workers start")


def _run_job(pipe: "Connection[Any, Any]", job: RayJob[Found], rows: Sequence[Mapping[str, object]]) -> None:
    """Send the number of nodes, then the number and result of each finished task, or an error, and at the end None."""
    # Ray reports of its own accord on what it retries
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    import ray

    gpu = job.on_gpus
    try:
        environment = {"runtime_env": {"env_vars": dict(job.environment)}} if job.environment else {}
        ray.init(log_to_driver=False, include_dashboard=False, **environment)
        resources = ray.cluster_resources()
        alive = [node for node in ray.nodes() if node["Alive"]]
        pipe.send((len(alive), None))
        largest = max(int(node["Resources"].get("memory", 0)) for node in alive)
        memory = min(WORKER_BYTES, largest)
        fitting = int(resources.get("memory", 0)) // memory if memory else 1
        count = max(1, min(int(resources.get("GPU", 1) if gpu else resources.get("CPU", 1) // job.cores), fitting))
        tasks = -(-len(rows) // job.tasks_at_a_time)
        finished = ray.data.from_items(list(rows), override_num_blocks=tasks).map_batches(
            RayWorker,
            fn_constructor_args=(job,),
            batch_size=job.tasks_at_a_time,
            # as many as there is work for: a node may join later
            compute=ray.data.ActorPoolStrategy(
                min_size=1,
                max_size=tasks,
                initial_size=min(count, tasks),
                max_tasks_in_flight_per_actor=1 if job.is_long else None,
            ),
            num_gpus=1 if gpu else 0,
            num_cpus=max(1, int(resources.get("CPU", 1)) // count),
            memory=memory,
        )
        for block in finished.iter_batches(batch_size=None, batch_format="numpy"):
            for number, found in zip(block["number"].tolist(), block["found"], strict=True):
                pipe.send((number, pickle.loads(found)))
        pipe.send(None)
    except Exception as error:
        pipe.send((None, CleansetError(f"engine ray: {_failure(str(error))}")))
    finally:
        ray.shutdown()


def _failure(text: str) -> str:
    """The last line of what Ray reports, which is the exception after its traceback, with the node that it names."""
    line = cut(text.strip().splitlines()[-1], 300)
    node = re.search(r"\bip=([0-9a-f.:]+)", text)
    return f"Ray node {node[1]}: {line}; {_REMEDY}" if node else line
