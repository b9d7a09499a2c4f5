"""Scoring as a Ray Data job on several machines; needs `cleanset[ray]`.

Every machine of the cluster must see the edition's folder, with the images and weights, under the
same path. The cluster is that of RAY_ADDRESS; without it one is started on this machine.
"""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.errors import CleansetError, install_command
from cleanset.images.codec import Read
from cleanset.scoring.engine import DevicePipeline, OnProgress, Settings
from cleanset.scoring.logits import top5
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import Scored, arithmetic, grouped, to_table
from cleanset.scoring.shards import Shards

SHARDS_PER_GPU_TASK = 8
"""Shards in one task of a GPU; without a GPU a task is one shard."""
ERROR = -1
"""Stands for a shard's number in a row whose image id is the text of a CleansetError."""
_NOTHING = top5(np.zeros((1, CLASSES)))


class RayScorer:
    """A worker of the cluster, which keeps its model and device from shard to shard."""

    def __init__(self, load: Callable[[], LoadedModel], open_images: Callable[[], Read], settings: Settings) -> None:
        import ray

        gpu = settings.devices[0].type == "cuda"
        workers = max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))
        device = torch.device("cuda", 0) if gpu else torch.device("cpu")
        torch.set_num_threads(1)
        self._settings = settings
        self._pipeline = DevicePipeline(load(), open_images(), device, settings.precision, settings.batch_size, workers)

    def __call__(self, rows: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The scores of the images of some shards, a row for each."""
        image_ids = [image_id for shard in rows["image_ids"] for image_id in shard]
        numbers = np.repeat(rows["number"], [len(shard) for shard in rows["image_ids"]])
        groups = (g for shard in rows["image_ids"] for g in grouped(list(shard), self._settings.batch_size))
        try:
            with arithmetic(self._settings.precision):
                scored = list(self._pipeline.score(groups))
        except CleansetError as error:  # an exception would arrive wrapped and without its type
            nothing = Scored([str(error)], _NOTHING)
            scored, numbers, image_ids = [nothing], np.array([ERROR]), list(nothing.image_ids)
        return {
            "number": numbers,
            "image_id": np.array(image_ids),
            **{name: np.concatenate([each.columns[name] for each in scored]) for name in _NOTHING},
        }


def score_shards_on_ray(
    load: Callable[[], LoadedModel],
    open_images: Callable[[], Read],
    settings: Settings,
    shards: Shards,
    on_progress: OnProgress,
) -> None:
    """Compute the missing shards with a worker for each GPU of the cluster, or for each core if it has none.

    `load` and `open_images` are called by each worker. Raises CleansetError as the local engine does,
    and if Ray is not installed.
    """
    try:
        import ray
    except ImportError:
        raise CleansetError(
            f"score.engine ray: Ray is not installed; run {install_command('ray')}, or set score.engine: local"
        ) from None

    if not shards.missing:
        return
    gpu = settings.devices[0].type == "cuda"
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.init(ignore_reinit_error=True, logging_level="error", log_to_driver=False, include_dashboard=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    resources = ray.cluster_resources()
    count = max(1, int(resources.get("GPU" if gpu else "CPU", 1)))
    rows = [{"number": number, "image_ids": list(shards.image_ids(number))} for number in shards.missing]
    shards_per_task = SHARDS_PER_GPU_TASK if gpu else 1
    finished = ray.data.from_items(rows, override_num_blocks=-(-len(rows) // shards_per_task)).map_batches(
        RayScorer,
        fn_constructor_args=(load, open_images, settings),
        batch_size=shards_per_task,
        compute=ray.data.ActorPoolStrategy(size=min(count, -(-len(rows) // shards_per_task))),
        num_gpus=1 if gpu else 0,
        num_cpus=max(1, int(resources.get("CPU", 1)) // count),
    )
    parts: dict[int, list[Scored]] = {}
    for block in finished.iter_batches(batch_size=None, batch_format="numpy"):
        if ERROR in block["number"]:
            raise CleansetError(str(block["image_id"][block["number"] == ERROR][0]))
        for number in np.unique(block["number"]).tolist():
            chosen = block["number"] == number
            columns = {name: block[name][chosen] for name in _NOTHING}
            # the images of a shard may come in several blocks
            parts.setdefault(number, []).append(Scored(block["image_id"][chosen], columns))
            if sum(len(part.image_ids) for part in parts[number]) == len(shards.image_ids(number)):
                shards.keep(number, to_table(parts.pop(number)))
        on_progress(len(block["number"]), 0.0)
