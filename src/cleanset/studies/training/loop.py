"""The training loop: any task, optimizer and schedule of timm; early stopping, and when the state is saved."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from time import perf_counter
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import torch
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.scheduler.scheduler import Scheduler
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from cleanset.errors import CleansetError
from cleanset.plumbing.progress import TrainingStep
from cleanset.scoring.devices import device_of
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.training.fold_data import ALONE, ProcessShare
from cleanset.studies.training.run_params import Optimization
from cleanset.studies.training.start import ending_start
from cleanset.studies.training.state import Row, StateFolder, TrainingState

LOSS = "loss"
ROBUST_LOSS = "robust_loss"
"""The loss under the attack that a network is trained against."""
Batch = TypeVar("Batch")
Source = TypeVar("Source")
Item = TypeVar("Item")

# timm's sgd is Nesterov's; its momentum is the plain one
_OPTIMIZERS = {"sgd": "momentum", "adam": "adam", "adamw": "adamw"}


class _Schedule(NamedTuple):
    """A schedule of timm: its name, and its `decay_rate`."""

    name: str
    decay_rate: float = 0.1


_SCHEDULES = {
    # timm's step schedule that decays by 1 is constant, and has a warm-up
    "constant": _Schedule("step", 1.0),
    "step": _Schedule("step", 0.1),
    "cosine": _Schedule("cosine"),
    # timm takes poly's power from here; MMSegmentation's is .9, and 1 for transformers
    "poly": _Schedule("poly", 0.9),
    "linear": _Schedule("poly", 1.0),
}


class Outcome(NamedTuple):
    """What a batch gives."""

    loss: Tensor
    """The loss, a scalar with its graph."""
    images: int
    """Number of images in the batch."""
    measures: Mapping[str, Tensor] = MappingProxyType({})
    """Means over the batch by name, such as accuracy."""


class TrainingTask(Protocol[Batch]):
    """A network, its batches in the order of an epoch, the loss of one, and measures on images left out."""

    network: nn.Module

    @property
    def name(self) -> str:
        """The run and fold, which errors name."""

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in an epoch."""

    def batches(self, epoch: int) -> Iterable[Batch]:
        """The batches of an epoch, counted from 1: the same for the same seed, whatever came before."""

    def loss(self, network: nn.Module, batch: Batch, epoch: int) -> Outcome:
        """The loss; `network` is the task's own, or a wrapper that shares its gradients with other processes."""

    @property
    def chosen_by(self) -> str:
        """The measure of validation whose smallest value says which epoch is kept, and when training ends early."""

    def validate(self, epoch: int) -> Mapping[str, float]:
        """Measures after an epoch, in evaluation mode on the images to validate on; empty without any.

        An epoch without the measure `chosen_by` is never chosen.
        """


OnStep = Callable[[TrainingStep], object]
"""Called after each step."""


@dataclass(eq=False)
class Trained:
    """A finished training."""

    weights: dict[str, Tensor]
    """The network's state after `epoch`."""
    epoch: int = 0
    """The epoch that is kept: the best one, or the last one."""
    history: list[Row] = field(default_factory=list)
    """A row for each epoch."""
    images: int = 0
    """Number of images that all processes trained on, repeated ones and those before an interruption too."""
    seconds: float = 0.0
    """Seconds of training, those before an interruption too."""


def train(
    task: TrainingTask[Batch],
    settings: Optimization,
    state: StateFolder,
    report: OnStep = lambda _: None,
    share: ProcessShare = ALONE,
) -> Trained:
    """Train until the settings' end, from the state if it exists.

    If several processes share each batch, all call it, and only the first one validates and saves. Raises
    CleansetError for a loss, in training or validation, or a gradient that is not finite; the state of the epoch before
    is kept. Call it within `deterministic`. Torch's global generators are as before at the end.
    """
    device = device_of(next(task.network.parameters()).device)
    with torch.random.fork_rng(device.generators()):
        learning = _Learning(task, settings, share, state.load())
        trained = learning.trained
        epochs = math.ceil(learning.steps / task.steps_per_epoch)
        save = ending_start(state.save, epochs - len(trained.history))
        for epoch in range(len(trained.history) + 1, epochs + 1):
            if settings.early_stopping and stops_early(trained.history, settings.early_stopping, task.chosen_by):
                break
            learning.train_epoch(epoch, report)
            if share.rank == 0:
                save(learning.state())
    return trained


class _Learning(Generic[Batch]):
    """A task with its optimizer and schedule, over `steps` in all, and what is trained so far, from a state if any."""

    def __init__(
        self, task: TrainingTask[Batch], settings: Optimization, share: ProcessShare, state: TrainingState | None
    ) -> None:
        self.task = task
        self.settings = settings
        self.share = share
        self.steps = settings.steps or task.steps_per_epoch * (settings.epochs or 0)
        self.optimizer = create_optimizer_v2(
            parameter_groups(task.network, settings.undecayed),
            opt=_OPTIMIZERS[settings.optimizer],
            lr=settings.rate,
            weight_decay=settings.weight_decay,
            momentum=settings.momentum,
            # the roots of the plain one are MKL's, which depend on the processor's maker
            **({} if settings.optimizer == "sgd" else {"fused": True}),
        )
        self.scheduler = _scheduler(self.optimizer, settings, self.steps, task.steps_per_epoch)
        self.trained = Trained(_copy(task.network.state_dict()))
        if state is not None:
            task.network.load_state_dict(state["network"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.trained = Trained(**{each.name: state[each.name] for each in fields(Trained)})
        # its gradients are the means over all processes
        self.network = DistributedDataParallel(task.network) if share.processes > 1 else task.network
        self._start = perf_counter() - self.trained.seconds

    def state(self) -> TrainingState:
        """The state after the last epoch."""
        states = {"network": self.task.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        return states | vars(self.trained)

    def train_epoch(self, epoch: int, report: OnStep) -> None:
        """Train an epoch, validate, and add a row to the history; keep the weights if they are the best so far."""
        task = self.task
        trained = self.trained
        means, step = self._steps_of_epoch(epoch, report)
        validation = [task.validate(epoch) if self.share.rank == 0 else {}]
        if self.share.processes > 1:
            distributed.broadcast_object_list(validation, src=0)
        self.check_finite(f"validation {task.chosen_by}", validation[0].get(task.chosen_by, 0.0), epoch, step)
        # an epoch's last step, or the statistics of a normalization, may overflow without showing in a loss
        numbers = [each for each in task.network.state_dict().values() if each.is_floating_point()]
        self.check_finite("weights' length", float(torch.nn.utils.get_total_norm(numbers)), epoch, step)
        row = {"epoch": epoch, "step": step, **means, **{f"validation_{k}": v for k, v in validation[0].items()}}
        trained.history.append({**row, "rate": float(self.optimizer.param_groups[0]["lr"])})
        if self.settings.keep == "last" or epoch == best_epoch(trained.history, task.chosen_by):
            trained.weights = _copy(task.network.state_dict())
            trained.epoch = epoch
        trained.seconds = self.seconds

    @property
    def seconds(self) -> float:
        """Seconds of training so far, those before an interruption included."""
        return perf_counter() - self._start

    def _steps_of_epoch(self, epoch: int, report: OnStep) -> tuple[dict[str, float], int]:
        """Take the steps of an epoch; the means of its measures, and its last step.

        The network is left in evaluation mode.
        """
        torch.manual_seed(epoch_seed(self.settings.seed, epoch))
        history = self.trained.history
        step = int(history[-1]["step"]) if history else 0
        totals: dict[str, Tensor] = {}
        images = 0
        self.task.network.train()
        for batch in self.task.batches(epoch):
            outcome = self._step(batch, epoch, step)
            step += 1
            images += outcome.images
            for name, value in {LOSS: outcome.loss, **outcome.measures}.items():
                totals[name] = totals.get(name, torch.zeros(())) + value.detach().float().cpu() * outcome.images
            # an incomplete batch may not divide evenly; the first process has the largest part
            self.trained.images += min(self.settings.batch, outcome.images * self.share.processes)
            report(
                TrainingStep(
                    number=step,
                    total=self.steps,
                    epoch=epoch,
                    loss=float(outcome.loss.detach()),
                    images_per_second=self.trained.images / self.seconds,
                )
            )
            if step == self.steps:
                break
        self.task.network.eval()
        return {f"train_{name}": float(total) / images for name, total in totals.items()}, step

    def _step(self, batch: Batch, epoch: int, step: int) -> Outcome:
        """Learn from a batch. Raises CleansetError, before the weights change, for a loss or gradient not finite."""
        self.scheduler.step_update(step)
        is_bfloat16 = self.settings.precision == "bfloat16"
        with torch.autocast(next(self.task.network.parameters()).device.type, torch.bfloat16, enabled=is_bfloat16):
            outcome = self.task.loss(self.network, batch, epoch)
        self.optimizer.zero_grad(set_to_none=True)
        outcome.loss.backward()  # type: ignore[no-untyped-call]
        self.check_finite("loss", float(outcome.loss.detach()), epoch, step + 1)
        gradients = [each.grad for each in self.network.parameters() if each.grad is not None]
        self.check_finite("gradient's length", float(torch.nn.utils.get_total_norm(gradients)), epoch, step + 1)
        self.optimizer.step()
        return outcome

    def check_finite(self, name: str, value: float, epoch: int, step: int) -> None:
        """Raise CleansetError for a value that is not finite: no weights are kept that follow from it."""
        if not math.isfinite(value):
            kept = f"the state after epoch {epoch - 1} stays; " if epoch > 1 else ""
            raise CleansetError(
                f"{self.task.name}: the {name} is {value} in epoch {epoch}, step {step}; expected a finite one: "
                f"{kept}set a lower rate"
            )


def loaded(make: Callable[[Source], Item], items: Sequence[Source], workers: int) -> Iterable[Item]:
    """The result of `make` for each item, in their order; computed ahead by worker processes, if any."""
    # without a batch size, torch calls collate_fn on every item, in the process that reads it
    return DataLoader(
        items,  # type: ignore[arg-type]
        batch_size=None,
        collate_fn=make,  # type: ignore[arg-type]
        num_workers=workers,
        prefetch_factor=4 if workers else None,
    )


def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of an epoch's draws. Nothing of a generator has to be kept: it begins again at every epoch."""
    return change_seed(image_seed(seed, "training"), "epoch", "order", epoch)


def best_epoch(history: Sequence[Row], measure: str = LOSS) -> int:
    """The first epoch with the smallest measure of validation; the last one as long as the measure is missing."""
    key = f"validation_{measure}"
    chosen = min((row for row in history if key in row), key=lambda row: row[key], default=None)
    return int((chosen or history[-1])["epoch"])


def stops_early(history: Sequence[Row], patience: int, measure: str = LOSS) -> bool:
    """Whether the last `patience` epochs brought no smaller measure of validation."""
    return bool(history) and history[-1]["epoch"] - best_epoch(history, measure) >= patience


def parameter_groups(network: nn.Module, undecayed: Sequence[str]) -> list[dict[str, Any]]:
    """All parameters; those whose names contain one of the parts `undecayed` in a group without weight decay.

    timm, given a network, would spare all biases and norms.
    """
    decayed: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    for name, each in network.named_parameters():
        (spared if any(part in name for part in undecayed) else decayed).append(each)
    return [{"params": decayed}, *([{"params": spared, "weight_decay": 0.0}] if spared else [])]


def _scheduler(optimizer: torch.optim.Optimizer, settings: Optimization, steps: int, per_epoch: int) -> Scheduler:
    schedule = _SCHEDULES[settings.schedule]
    scheduler, _ = create_scheduler_v2(
        optimizer,
        sched=schedule.name,
        decay_rate=schedule.decay_rate,
        decay_epochs=settings.decay_epochs * per_epoch,
        min_lr=settings.end_rate,
        # an epoch may be longer than the whole training; timm counts in epochs
        num_epochs=steps,
        warmup_epochs=settings.warm_up_epochs * per_epoch,
        warmup_lr=settings.rate / 100,
        updates_per_epoch=1,
        step_on_epochs=False,
    )
    return scheduler


def _copy(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in tensors.items()}
