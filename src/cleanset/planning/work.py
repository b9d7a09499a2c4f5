"""The work of a computation, what it costs, and how long that takes on a machine: arithmetic alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cleanset.errors import CleansetError

HOUR = 3600
"""Seconds of an hour."""
FEW_HOURS = 0.01
"""Up to so many hours are shown with two digits."""

IMAGE_BYTES = 134_000
"""Mean size of an image of ILSVRC2012's validation set: 6.7 GB by 50,000."""

State = Literal["needed", "finished"]
"""finished: DVC finds a stage up to date, or results of these inputs lie there."""

Bound = Literal["exact", "at most", "measured"]
"""Whether a number of passes is certain, an upper bound where a search may end early, or the mean of a few images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Images that go through a network: forward, and of gradients backward, too."""

    forward: int = 0
    backward: int = 0

    def __add__(self, other: "Passes") -> "Passes":
        return Passes(forward=self.forward + other.forward, backward=self.backward + other.backward)

    def __mul__(self, count: int) -> "Passes":
        return Passes(forward=self.forward * count, backward=self.backward * count)

    def scaled(self, share: float) -> "Passes":
        """A share of the passes, 0 to 1, in whole ones."""
        return Passes(forward=round(share * self.forward), backward=round(share * self.backward))


NO_PASSES = Passes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of one computation, such as an attack on a model."""

    name: str
    """The computation: an attack, a family of changes, a run, a stage."""
    model: str = ""
    """The model; empty for none."""
    stage: str = ""
    """Its stage of DVC; empty outside DVC."""
    state: State = "needed"
    images: int = 0
    """Images in all; of a training those of one epoch."""
    finished: int = 0
    """Images in finished shards, groups or epochs, which are not computed again."""
    passes: Passes = NO_PASSES
    """Passes that are left."""
    bound: Bound = "exact"
    bytes_read: int = 0
    bytes_written: int = 0
    tasks: int = 1
    """Parts that several workers compute at a time."""

    @property
    def left(self) -> int:
        """The images that are left."""
        return 0 if self.state == "finished" else self.images - self.finished


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Measured or derived seconds: on a CPU of one core, on a GPU by the clock."""

    start: float = 0.0
    """Of the process until it computes: imports, and models that are read."""
    device: float = 0.0
    """Of one device: the passes."""
    cores: float = 0.0
    """Of one core beside the device: images that are read, changed, encoded, judged."""
    gpu: float | None = 0.0
    """Of the passes on one `KNOWN_GPU`, from their floating-point operations; None: not derived."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            start=self.start + other.start,
            device=self.device + other.device,
            cores=self.cores + other.cores,
            gpu=None if self.gpu is None or other.gpu is None else self.gpu + other.gpu,
        )

    @property
    def seconds(self) -> float:
        """All seconds, as if one after the other."""
        return self.start + self.device + self.cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine that was measured."""

    device: str
    """The model of its GPU, or cpu."""
    devices: int
    """Number of its devices."""
    is_separate: bool
    """Whether the device computes beside the cores, as a GPU does."""
    cores: int
    """Number of cores."""


KNOWN_GPU = "H200"
"""The GPU whose rates stand below."""
OPERATIONS_PER_SECOND = {"float64": 1.41e13, "float32": 2.94e13, "tf32": 2.94e13, "bfloat16": 2.94e13}
"""Floating-point operations a second of KNOWN_GPU by precision: ResNet-50's 1,720 images/s in float64 and 3,588 in
float32 (bench/RESULTS.md), of 8.2e9 operations each. The lower precisions, not measured, are taken for float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork:
    """Work with its cost; None, with the reason as a remark, where nothing could be measured."""

    work: Work
    cost: Cost | None = None
    remark: str = ""


def random_weights(model: str) -> str:
    """The note on a model whose weights are not here."""
    return f"{model}: its weights are not here; measured with random ones."


def of_program(model: str) -> str:
    """The remark on a model behind a command."""
    return f"{model}: a program, whose seconds are not known before it runs"


def added(planned: PlannedWork, cost: Cost) -> PlannedWork:
    """A computation that costs more."""
    return replace(planned, cost=None if planned.cost is None else planned.cost + cost)


def with_start(works: Sequence[PlannedWork], measured: Callable[[], float]) -> list[PlannedWork]:
    """The works, of which the first that is needed, and has a price, has the measured seconds before it, too."""
    found = [*works]
    for place, each in enumerate(found):
        if each.work.state == "needed" and each.cost is not None:
            found[place] = added(each, Cost(start=measured()))
            break
    return found


def duration_on(machine: Machine, planned: PlannedWork) -> float:
    """Seconds by the clock on a machine whose cores are idle; 0 for what is finished or could not be measured."""
    cost = planned.cost
    if cost is None or planned.work.state == "finished":
        return 0.0
    if machine.is_separate:
        devices = max(1, min(machine.devices, planned.work.tasks))
        return cost.start + max(cost.device / devices, cost.cores / machine.cores)
    workers = max(1, min(machine.cores, planned.work.tasks))
    return cost.start + (cost.device + cost.cores) / workers


def duration_on_gpus(machine: Machine, planned: PlannedWork, gpus: int) -> float | None:
    """Seconds by the clock with a number of GPUs and this machine's cores; None where they cannot be derived.

    The GPUs are this machine's kind if it has one, else KNOWN_GPU.
    """
    cost = planned.cost
    if cost is None or planned.work.state == "finished":
        return 0.0
    on_gpu = cost.device if machine.is_separate else cost.gpu
    if on_gpu is None:
        return None
    return cost.start + max(on_gpu / max(1, min(gpus, planned.work.tasks)), cost.cores / machine.cores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The computations of an edition, a study or a model, in their order, and the machine that was measured."""

    name: str
    """What is planned, as errors name it."""
    machine: Machine
    works: Sequence[PlannedWork]
    notes: Sequence[str] = ()
    """Facts that a reader of the numbers has to know, as sentences."""

    @property
    def needed(self) -> list[PlannedWork]:
        """The computations that are not finished."""
        return [each for each in self.works if each.work.state == "needed"]

    @property
    def unmeasured(self) -> list[PlannedWork]:
        """The computations whose hours are not known."""
        return [each for each in self.needed if each.cost is None]

    @property
    def passes(self) -> Passes:
        """All passes that are left."""
        return sum((each.work.passes for each in self.needed), NO_PASSES)

    @property
    def bytes_read(self) -> int:
        return sum(each.work.bytes_read for each in self.needed)

    @property
    def bytes_written(self) -> int:
        return sum(each.work.bytes_written for each in self.needed)

    @property
    def hours(self) -> float:
        """Hours on this machine, one computation after the other."""
        return sum(duration_on(self.machine, each) for each in self.works) / HOUR

    @property
    def processor_hours(self) -> float:
        """Hours of one device and one core, all one after the other."""
        return sum(each.cost.seconds for each in self.needed if each.cost is not None) / HOUR

    def hours_on(self, gpus: int) -> float | None:
        """Hours with a number of GPUs; None where a computation's cannot be derived."""
        found = [duration_on_gpus(self.machine, each, gpus) for each in self.needed]
        known = [each for each in found if each is not None]
        return sum(known) / HOUR if len(known) == len(found) else None


def check_budget(plan: Plan, budget: float | None) -> None:
    """Raise CleansetError if a plan takes more hours than its budget, or an unknown number of them."""
    if budget is None:
        return
    if plan.unmeasured:
        first = plan.unmeasured[0]
        raise CleansetError(
            f"{plan.name}: {len(plan.unmeasured)} of {len(plan.needed)} computations could not be measured "
            f"({first.remark}); expected a price of at most {budget:g} hours: leave --budget-hours out"
        )
    if plan.hours > budget:
        raise CleansetError(
            f"{plan.name}: {_hours(plan.hours)} hours; expected at most {budget:g}: run a part of it, or raise the "
            "budget"
        )


def _hours(hours: float) -> str:
    # a budget may be of seconds
    return f"{hours:,.2f}" if hours > FEW_HOURS else f"{hours:.2g}"
