"""The training loop: any task, optimizer and schedule of timm, early stopping, and a state that survives kills."""

import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import torch
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from cleanset.errors import CleansetError
from cleanset.files import remove_abandoned, replacing, sha256
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.training.images import ALONE, Share
from cleanset.studies.training.params import Optimization
from cleanset.validation import shown

LOSS = "loss"
ROBUST_LOSS = "robust_loss"
"""The loss under the attack that a network is trained against."""
Batch = TypeVar("Batch")
Row = dict[str, float]
"""A line of the history: epoch, step, train_*, validation_*, rate."""

# timm's sgd is Nesterov's; its momentum is the plain one
_OPTIMIZERS = {"sgd": "momentum", "adam": "adam", "adamw": "adamw"}
# timm's step schedule that decays by 1 is constant, and has a warm-up
_SCHEDULES: dict[str, dict[str, Any]] = {
    "constant": {"sched": "step", "decay_epochs": 1, "decay_rate": 1.0},
    "cosine": {"sched": "cosine"},
    # timm takes poly's power from here; MMSegmentation's is .9
    "poly": {"sched": "poly", "decay_rate": 0.9},
}
STATE_FILE = "state.pt"
_STATE_REMEDY = "remove the folder to begin again"


class StateFolder:
    """A folder with the state after the last finished epoch: a line with a SHA-256, and the bytes that it is of.

    `settings`: everything that the result depends on, of JSON's types; a state of other settings is refused.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        # through JSON, so that tuples and lists compare as equal
        self._settings = json.loads(json.dumps(settings))

    def load(self) -> dict[str, Any] | None:
        """The state, or None if there is none. Raises CleansetError for one of other settings, and a damaged file."""
        remove_abandoned(self.folder)
        path = self.folder / STATE_FILE
        if not path.is_file():
            return None
        # torch itself reads a weight with a flipped bit as another weight
        digest, _, content = path.read_bytes().partition(b"\n")
        if digest != sha256(content).encode():
            raise CleansetError(
                f"{path}: damaged, or not the state of a training; expected the bytes whose SHA-256 it begins with: "
                f"{_STATE_REMEDY}"
            )
        found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        settings, state = found["settings"], found["state"]
        if (key := _first_difference(settings, self._settings)) is not None:
            name, found, wanted = key
            raise CleansetError(
                f"{self.folder}: begun with {name} {shown(found)}, now {shown(wanted)}; expected the same settings: "
                f"put it back, or {_STATE_REMEDY}"
            )
        return dict(state)

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace the state; a killed process or a full disk leaves the one before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # into memory first: torch's own writer reports a full disk as an error of its own
        buffer = io.BytesIO()
        torch.save({"settings": self._settings, "state": dict(state)}, buffer)
        content = buffer.getvalue()
        with replacing(self.folder / STATE_FILE) as partial:
            partial.write_bytes(b"%b\n%b" % (sha256(content).encode(), content))


def _first_difference(one: Any, other: Any, name: str = "settings") -> tuple[str, Any, Any] | None:
    """The first key in which two settings differ, with both values; None for equal ones."""
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            inner = key if name == "settings" else f"{name}.{key}"
            if (found := _first_difference(one.get(key), other.get(key), inner)) is not None:
                return found
    return name, one, other


class Outcome(NamedTuple):
    """The loss of a batch, a scalar with its graph; the number of images; means over the batch, such as accuracy."""

    loss: Tensor
    images: int
    measures: Mapping[str, Tensor] = {}


class Task(Protocol[Batch]):
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
        """The loss; `network` is the task's own, or what shares its gradients with other processes."""

    @property
    def chosen_by(self) -> str:
        """The measure of validation whose smallest value says which epoch is kept, and when training ends early."""

    def validate(self, epoch: int) -> Mapping[str, float]:
        """Measures after an epoch, in evaluation mode on the images to validate on; empty if there are none.

        An epoch without the measure `chosen_by` is never chosen.
        """


class Progress(NamedTuple):
    """A step of a training: its number from 1, of `steps` in all; its loss; images per second so far."""

    epoch: int
    step: int
    steps: int
    loss: float
    images: int
    images_per_second: float


@dataclass(slots=True, eq=False)
class Trained:
    """A finished training. `weights`: of `epoch`, which is the best one or the last one.

    `images` and `seconds` count all that was trained, before an interruption, too.
    """

    weights: dict[str, Tensor]
    epoch: int
    history: list[Row] = field(default_factory=list)
    images: int = 0
    seconds: float = 0.0


def train(
    task: Task[Batch],
    settings: Optimization,
    state: StateFolder,
    report: Callable[[Progress], None] = lambda _: None,
    share: Share = ALONE,
) -> Trained:
    """Train until the settings' end, from the state if there is one.

    Of several processes that share each batch all call it, and the first one alone validates and saves. Raises
    CleansetError for a loss that is not finite; the state is then that of the epoch before. Call it within
    `deterministic`.
    """
    optimizer = create_optimizer_v2(
        task.network,
        opt=_OPTIMIZERS[settings.optimizer],
        lr=settings.rate,
        weight_decay=settings.weight_decay,
        momentum=settings.momentum,
    )
    per_epoch = task.steps_per_epoch
    steps = settings.steps or per_epoch * (settings.epochs or 0)
    scheduler = _scheduler(optimizer, settings, steps, per_epoch)
    trained, first, step = _restored(task.network, optimizer, settings, state)
    # its gradients are the means over all processes
    network = DistributedDataParallel(task.network) if share.processes > 1 else task.network
    stepping = _Stepping(task, settings, network, optimizer, scheduler, steps, step)
    start = perf_counter() - trained.seconds
    for epoch in range(first, math.ceil(steps / per_epoch) + 1):
        if settings.early_stopping and stops_early(trained.history, settings.early_stopping, task.chosen_by):
            break
        means = stepping.epoch(epoch, trained, start, report)
        validation = _from_first(task.validate(epoch) if share.rank == 0 else {}, share)
        row = {"epoch": epoch, "step": stepping.step, **means, **{f"validation_{k}": v for k, v in validation.items()}}
        trained.history.append({**row, "rate": float(optimizer.param_groups[0]["lr"])})
        if settings.keep == "last" or epoch == best_epoch(trained.history, task.chosen_by):
            trained.weights, trained.epoch = _copy(task.network.state_dict()), epoch
        trained.seconds = perf_counter() - start
        if share.rank == 0:
            state.save(_state(task.network, optimizer, trained, stepping.step))
    return trained


def _from_first(values: Mapping[str, float], share: Share) -> Mapping[str, float]:
    """The values of the first process."""
    found = [values]
    if share.processes > 1:
        distributed.broadcast_object_list(found, src=0)
    return found[0]


@dataclass(slots=True, eq=False)
class _Stepping(Generic[Batch]):
    """A task with its optimizer and schedule, and the number of steps done, of `steps` in all."""

    task: Task[Batch]
    settings: Optimization
    network: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: Any
    steps: int
    step: int

    def epoch(self, epoch: int, trained: Trained, start: float, report: Callable[[Progress], None]) -> dict[str, float]:
        """Train an epoch, and leave the network in evaluation mode; the means of its measures over the images."""
        torch.manual_seed(epoch_seed(self.settings.seed, epoch))
        totals, images = dict[str, Tensor](), 0
        self.task.network.train()
        for batch in self.task.batches(epoch):
            outcome, loss = self._step(batch, epoch)
            images += outcome.images
            for name, value in {LOSS: outcome.loss, **outcome.measures}.items():
                totals[name] = totals.get(name, torch.zeros(())) + value.detach().float().cpu() * outcome.images
            trained.images += outcome.images
            rate = trained.images / (perf_counter() - start)
            report(Progress(epoch, self.step, self.steps, loss, outcome.images, rate))
            if self.step == self.steps:
                break
        self.task.network.eval()
        return {f"train_{name}": float(total) / images for name, total in totals.items()}

    def _step(self, batch: Batch, epoch: int) -> tuple[Outcome, float]:
        """Learn from a batch; its loss. Raises CleansetError, before the weights change, if that is not finite."""
        self.scheduler.step_update(self.step)
        is_bfloat16 = self.settings.precision == "bfloat16"
        with torch.autocast(next(self.task.network.parameters()).device.type, torch.bfloat16, enabled=is_bfloat16):
            outcome = self.task.loss(self.network, batch, epoch)
        self.optimizer.zero_grad(set_to_none=True)
        outcome.loss.backward()  # type: ignore[no-untyped-call]
        self.step += 1
        loss = float(outcome.loss.detach())
        if not math.isfinite(loss):
            kept = f"the state after epoch {epoch - 1} stays; " if epoch > 1 else ""
            raise CleansetError(
                f"{self.task.name}: the loss is {loss} in epoch {epoch}, step {self.step}; expected a finite one: "
                f"{kept}set a lower rate"
            )
        self.optimizer.step()
        return outcome, loss


def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of what an epoch draws. Nothing of a generator has to be kept: it begins anew at every epoch."""
    return change_seed(image_seed(seed, "training"), "epoch", "order", epoch)


def best_epoch(history: Sequence[Row], measure: str = LOSS) -> int:
    """The first epoch with the smallest measure of validation; the last one as long as none has the measure."""
    key = f"validation_{measure}"
    chosen = min((row for row in history if key in row), key=lambda row: row[key], default=None)
    return int((chosen or history[-1])["epoch"])


def stops_early(history: Sequence[Row], patience: int, measure: str = LOSS) -> bool:
    """Whether the last `patience` epochs brought no smaller measure of validation."""
    return bool(history) and history[-1]["epoch"] - best_epoch(history, measure) >= patience


def _scheduler(optimizer: torch.optim.Optimizer, settings: Optimization, steps: int, per_epoch: int) -> Any:
    scheduler, _ = create_scheduler_v2(
        optimizer,
        **_SCHEDULES[settings.schedule],
        # an epoch may be longer than the whole training; timm counts in epochs
        num_epochs=steps,
        warmup_epochs=settings.warm_up_epochs * per_epoch,
        warmup_lr=settings.rate / 100,
        updates_per_epoch=1,
        step_on_epochs=False,
    )
    return scheduler


def _restored(
    network: nn.Module, optimizer: torch.optim.Optimizer, settings: Optimization, state: StateFolder
) -> tuple[Trained, int, int]:
    """The training before, the epoch to begin with, and the number of finished steps."""
    found = state.load()
    if found is None:
        return Trained(_copy(network.state_dict()), 0), 1, 0
    network.load_state_dict(found["network"])
    optimizer.load_state_dict(found["optimizer"])
    trained = Trained(found["weights"], found["epoch"], found["history"], found["images"], found["seconds"])
    return trained, int(found["history"][-1]["epoch"]) + 1, found["step"]


def _state(network: nn.Module, optimizer: torch.optim.Optimizer, trained: Trained, step: int) -> dict[str, Any]:
    return {
        "network": network.state_dict(),
        "optimizer": optimizer.state_dict(),
        "weights": trained.weights,
        "epoch": trained.epoch,
        "history": trained.history,
        "step": step,
        "images": trained.images,
        "seconds": trained.seconds,
    }


def _copy(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in tensors.items()}
