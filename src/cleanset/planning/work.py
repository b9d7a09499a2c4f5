"""The work of computations before they run: counts, what is left, and hours, measured or by what is finished."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Literal

from cleanset.errors import CleansetError
from cleanset.planning.costs import Costs
from cleanset.plumbing.progress import print_notice
from cleanset.scoring.parts import NOTHING, FinishedPart

HOUR = 3600
"""Seconds of an hour."""
State = Literal["needed", "finished"]
"""finished: DVC finds a stage up to date, or results of these inputs are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Images that go through a network: forward, and of gradients backward, too."""

    forward: int = 0
    backward: int = 0

    def __add__(self, other: "Passes") -> "Passes":
        return Passes(forward=self.forward + other.forward, backward=self.backward + other.backward)

    def __mul__(self, count: int) -> "Passes":
        return Passes(forward=self.forward * count, backward=self.backward * count)


NO_PASSES = Passes()


def no_measure() -> None:
    """Measure nothing."""


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
    """Images in all, changed ones each; for a training, those of all epochs."""
    changes: int = 0
    """The changes of each image, the unchanged one among them; 0: images are not changed."""
    part: FinishedPart = NOTHING
    """What finished shards, groups or epochs have, which are not computed again."""
    of_image: Passes = NO_PASSES
    """Passes of each image that is left."""
    besides: Passes = NO_PASSES
    """Further passes, of clean images or of tests."""
    is_bound: bool = False
    """Whether the passes are an upper bound, as a search may end early."""
    bytes_read: int = 0
    bytes_written: int = 0
    remark: str = ""
    """Why nothing is known of what is finished, or why it could not be measured; empty: it is known."""
    costs: Costs | None = None
    """Its costs, once they are measured."""
    measure: Callable[[], Costs | None] = field(default=no_measure, repr=False, compare=False)
    """Measures its costs on a sample of its images; None of a training, whose start is kept as its finished part."""

    @property
    def left(self) -> int:
        """The images that are left."""
        return 0 if self.state == "finished" else self.images - self.part.images

    @property
    def passes(self) -> Passes:
        """The passes that are left."""
        return NO_PASSES if self.state == "finished" else self.of_image * self.left + self.besides

    @property
    def seconds(self) -> float | None:
        """Seconds of what is left, as measured, or as long for each image as those finished; None: not known."""
        if not self.left:
            return 0.0
        if self.costs is not None:
            return self.costs.start + self.costs.image * self.left
        return self.part.seconds / self.part.images * self.left if self.part.seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The computations of an edition, a study or a command, in their order."""

    name: str
    """What is planned, as errors name it."""
    works: Sequence[Work]
    notes: Sequence[str] = ()
    """Facts that a reader of the numbers has to know, as sentences."""

    @property
    def needed(self) -> list[Work]:
        """The computations that are not finished."""
        return [each for each in self.works if each.state == "needed"]

    @property
    def passes(self) -> Passes:
        """All passes that are left."""
        return sum((each.passes for each in self.needed), NO_PASSES)

    @property
    def bytes_read(self) -> int:
        return sum(each.bytes_read for each in self.needed)

    @property
    def bytes_written(self) -> int:
        return sum(each.bytes_written for each in self.needed)

    @property
    def not_measured(self) -> list[Work]:
        """The computations whose seconds are not known, but can be measured."""
        return [each for each in self.needed if each.seconds is None and each.measure is not no_measure]

    @property
    def hours(self) -> float | None:
        """Hours of what is known, one computation after the other; None if nothing is."""
        known = [each.seconds for each in self.needed if each.left and each.seconds is not None]
        return sum(known) / HOUR if known or not any(each.left for each in self.needed) else None


def check_budget(plan: Plan, budget: float | None) -> None:
    """Raise CleansetError if a plan takes more hours than its budget, or an unknown number of them."""
    if budget is None:
        return
    if unknown := [each.remark for each in plan.needed if each.remark]:
        raise CleansetError(f"{plan.name}: its hours are not known ({unknown[0]}); expected at most {budget:g} hours")
    if plan.not_measured:
        raise CleansetError(
            f"{plan.name}: the hours of {len(plan.not_measured)} of {len(plan.needed)} computations are not known; "
            f"expected at most {budget:g} hours: add --measure, which measures them"
        )
    if plan.hours is not None and plan.hours > budget:
        raise CleansetError(
            f"{plan.name}: {plan.hours:.3g} hours; expected at most {budget:g}: run a part of it, or raise the budget"
        )


def check_measured(plan: Plan) -> None:
    """Raise CleansetError for a computation that could not be measured."""
    for work in plan.needed:
        if work.remark:
            name = f"{work.name} {work.model}".rstrip()
            raise CleansetError(f"{plan.name}: {name} could not be measured, so its hours are not known: {work.remark}")


Count = Callable[[], Plan]
"""Counts the work again: what is finished meanwhile is taken off."""


def measured_plan(count: Count) -> Plan:
    """The plan with the costs of each computation whose seconds are not known, on a sample of its images.

    The start of a process is what this one has taken, which has imported and read the same: once for a command, for
    each stage of DVC otherwise.
    """
    problems = dict[tuple[str, str], str]()
    costs = dict[tuple[str, str], Costs]()
    works = count().not_measured
    own_start = process_time()
    for place, work in enumerate(works):
        print_notice(f"measuring {work.name} {work.model}".rstrip())
        try:
            found = work.measure()
        except CleansetError as error:
            problems[work.name, work.model] = str(error)
            continue
        if found is not None:
            is_process = bool(work.stage) or place == 0
            costs[work.name, work.model] = replace(found, start=found.start + own_start * is_process)
    return _with_costs(count(), costs, problems)


def _with_costs(plan: Plan, costs: Mapping[tuple[str, str], Costs], problems: Mapping[tuple[str, str], str]) -> Plan:
    works = [
        replace(
            each,
            costs=costs.get((each.name, each.model)),
            remark=problems.get((each.name, each.model), each.remark),
        )
        for each in plan.works
    ]
    return replace(plan, works=works)
