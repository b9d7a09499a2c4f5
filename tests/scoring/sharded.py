"""A model's scores through shards on pipelines that are open, as a run of scoring computes them."""

from collections.abc import Callable, Sequence

from cleanset.scoring.computation import compute, missing_tasks
from cleanset.scoring.engine import DevicePipeline, Settings, shard_scorers
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import arithmetic, ignore
from cleanset.scoring.shards import Shards


def score_shards(
    model: LoadedModel,
    pipelines: Sequence[DevicePipeline],
    settings: Settings,
    shards: Shards,
    notify: Callable[[str], None] = ignore,
) -> None:
    """Compute the missing shards."""
    with arithmetic(settings.precision):
        workers = shard_scorers(model, pipelines, settings.precision, notify=notify)
        compute(workers, missing_tasks(shards), shards.keep)
