"""A long computation as a whole: either engine runs it, and its results are the same bytes.

The engine local has a worker for each device of this machine; the engine ray has one for each device of a cluster.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

from cleanset.edition.params import Engine
from cleanset.scoring.cluster import RayJob, compute_on_ray
from cleanset.scoring.computation import Elsewhere, Found, Limit, Task, Worker, compute
from cleanset.scoring.scorer import ignore

SHARDS_PER_GPU_TASK = 8
"""Shards of hundreds of images that a GPU of a cluster is sent together; one takes it less than a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Computation(Generic[Found]):
    """A list of tasks, the workers that may compute them, and where the results go."""

    tasks: Sequence[Task]

    keep: Callable[[int, Found], None]
    """Called with the number and the result of each task, with one at a time."""

    workers: Callable[[], Sequence[Worker[Found]]]
    """The workers of this machine; not called where a cluster computes."""

    elsewhere: Elsewhere[Found] | None
    """How another process or machine opens the computation; None: this process alone computes it."""

    arrived: Callable[[Found], None] = ignore
    """Called before `keep` with each result of a cluster, whose workers cannot move the bar of this process on."""

    on_gpus: bool = False
    """Whether a worker of a cluster has a GPU, or else a core."""

    tasks_per_gpu: int = 1
    """The number of tasks that a GPU of a cluster is sent together."""

    cores: int = 1
    """Cores that a worker of a cluster without a GPU needs."""

    is_long: bool = False
    """Whether a task takes minutes: none then waits at a worker that is busy while another is free."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment of a cluster's workers."""

    limit: Limit | None = None
    """What may end it before all tasks are finished."""

    def run(self, engine: Engine) -> None:
        """Compute all tasks, as far as the limit allows. Raises CleansetError as the engines do; what is kept stays."""
        if not self.tasks:
            return
        if engine == "local" or self.elsewhere is None:
            compute(self.workers(), self.tasks, self.keep, self.limit)
            return

        def keep_arrived(number: int, found: Found) -> None:
            self.arrived(found)
            self.keep(number, found)

        job = RayJob(
            elsewhere=self.elsewhere,
            on_gpus=self.on_gpus,
            tasks_at_a_time=self.tasks_per_gpu if self.on_gpus else 1,
            cores=self.cores,
            is_long=self.is_long,
            environment=self.environment,
        )
        compute_on_ray(job, self.tasks, keep_arrived, self.limit)
