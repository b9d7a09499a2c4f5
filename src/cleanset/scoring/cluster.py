"""Scoring as a Ray Data job on several machines, which needs `cleanset[ray]` on each.

Every node must see the edition's folder, with the images and weights, under the same path, and must have the same
versions of the code and libraries; a node that differs ends the run. RAY_ADDRESS names the cluster; without it one is
started on this machine. A node that joins during the run gets work; the work of a node that dies is done by others.
"""

import os
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from socket import gethostname
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from cleanset.errors import CleansetError, cut, install_command
from cleanset.scoring.devices import device_of
from cleanset.scoring.engine import DevicePipeline, OnProgress, ScoringRun, Settings
from cleanset.scoring.scorer import arithmetic, grouped, to_table
from cleanset.scoring.shards import Shards
from cleanset.scoring.validity import MadeFrom

RayRows = dict[str, NDArray[Any]]

# shards in one task of a GPU; without a GPU a task is one shard
SHARDS_PER_GPU_TASK = 8
_REMEDY = "expected the edition, code and libraries of the head node: update this node, or run ray stop on it"


@dataclass(frozen=True)
class ClusterRun:
    """A run that every node prepares from its own view of the edition, and the facts expected of each."""

    prepare: Callable[[], tuple[ScoringRun, MadeFrom]]
    made_from: MadeFrom
    settings: Settings


class RayScorer:
    """A worker of the cluster, which keeps its model and device from shard to shard."""

    def __init__(self, cluster_run: ClusterRun) -> None:
        self._run = cluster_run

    @cached_property
    def _pipeline(self) -> DevicePipeline:
        import ray

        is_separate = self._run.settings.devices[0].is_separate
        device = device_of(torch.device("cuda", 0) if is_separate else torch.device("cpu"))
        workers = max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))
        torch.set_num_threads(1)
        try:
            run, made_from = self._run.prepare()
            if differences := self._run.made_from.differences(made_from.facts, "expected"):
                raise CleansetError("; ".join(differences))
        except CleansetError as error:
            raise CleansetError(f"{error}; {_REMEDY}") from None
        settings = self._run.settings.of_device(device, workers)
        pipeline = DevicePipeline(run.read, run.model.preprocessing, settings)
        pipeline.load(run.model, settings.precision)
        return pipeline

    def __call__(self, rows: RayRows) -> RayRows:
        """The pickled scores of each shard, or the error that ends the run, which would arrive wrapped if raised."""
        import ray

        groups = (group for ids in rows["image_ids"] for group in grouped(list(ids), self._run.settings.batch_size))
        try:
            with arithmetic(self._run.settings.precision):
                table = to_table(list(self._pipeline.score(groups)))
            found: list[object] = [table[table["image_id"].isin(ids)] for ids in rows["image_ids"]]
        except CleansetError as error:
            node = f"Ray node {ray.util.get_node_ip_address()} ({gethostname()})"
            found = [CleansetError(f"{node}: {error}")] * len(rows["number"])
        return {"number": rows["number"], "found": np.array([pickle.dumps(each) for each in found], dtype=object)}


def score_shards_on_ray(run: ClusterRun, shards: Shards, on_progress: OnProgress) -> None:
    """Compute the missing shards with a worker for each GPU of the cluster, or for each core of one without GPUs.

    Raises CleansetError as the local engine does, for a node that would compute other scores, if the cluster is lost,
    and if Ray is not installed. The shards that are finished then stay.
    """
    if find_spec("ray") is None:
        raise CleansetError(
            f"score.engine ray: Ray is not installed; run {install_command('ray')}, or set score.engine: local"
        )
    rows = [{"number": number, "image_ids": list(shards.image_ids(number))} for number in shards.missing]
    for number, scores in _finished(run, rows) if rows else ():
        shards.keep(number, scores)
        on_progress(len(scores), 0.0)


def _finished(run: ClusterRun, rows: Sequence[Mapping[str, object]]) -> Iterator[tuple[int, pd.DataFrame]]:
    """The numbers and scores of finished shards, from a process of their own: Ray ends one that loses the cluster."""
    context = get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run_job, args=(theirs, run, rows))
    process.start()
    theirs.close()
    try:
        for number, found in iter(ours.recv, None):
            if isinstance(found, CleansetError):
                raise found
            yield number, found
    except EOFError:
        address = os.environ.get("RAY_ADDRESS", "on this machine")
        raise CleansetError(
            f"score.engine ray: the cluster {address} cannot be reached, or its head node has died; expected it to run "
            "until the end: start it and the run again, which continues after the finished shards"
        ) from None
    finally:
        process.terminate()
        process.join(10)
        process.kill()


def _run_job(pipe: "Connection[Any, Any]", run: ClusterRun, rows: Sequence[Mapping[str, object]]) -> None:
    """Send the number and scores of each shard as it is finished, or an error, and at the end None."""
    # Ray reports of its own accord on what it retries
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    import ray

    gpu = run.settings.devices[0].is_separate
    try:
        ray.init(log_to_driver=False, include_dashboard=False)
        resources = ray.cluster_resources()
        count = max(1, int(resources.get("GPU" if gpu else "CPU", 1)))
        shards_per_task = SHARDS_PER_GPU_TASK if gpu else 1
        tasks = -(-len(rows) // shards_per_task)
        finished = ray.data.from_items(list(rows), override_num_blocks=tasks).map_batches(
            RayScorer,
            fn_constructor_args=(run,),
            batch_size=shards_per_task,
            # as many as there is work for: a node may join later
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=tasks, initial_size=min(count, tasks)),
            num_gpus=1 if gpu else 0,
            num_cpus=max(1, int(resources.get("CPU", 1)) // count),
        )
        for block in finished.iter_batches(batch_size=None, batch_format="numpy"):
            for number, found in zip(block["number"].tolist(), block["found"], strict=True):
                pipe.send((number, pickle.loads(found)))
        pipe.send(None)
    except Exception as error:
        pipe.send((None, CleansetError(f"score.engine ray: {_failure(str(error))}")))
    finally:
        ray.shutdown()


def _failure(text: str) -> str:
    """The last line of what Ray reports, which is the exception after its traceback, with the node that it names."""
    line = cut(text.strip().splitlines()[-1], 300)
    node = re.search(r"\bip=([0-9a-f.:]+)", text)
    return f"Ray node {node[1]}: {line}; {_REMEDY}" if node else line
