"""A small task: a network that learns a plane from points that are drawn again for every epoch."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from cleanset.studies.training.loop import LOSS, Outcome, Trained, train
from cleanset.studies.training.run_params import Optimization
from cleanset.studies.training.state import StateFolder

STEPS = 3
Points = tuple[Tensor, Tensor]


class ToyTask:
    """Linear layers with dropout, so that the loop's seeds matter; `values` replaces the validation losses."""

    name = "toy, all"
    steps_per_epoch = STEPS
    chosen_by = LOSS

    def __init__(self, values: list[float] | None = None, nan_in: int | None = None) -> None:
        torch.manual_seed(0)
        self.network: nn.Module = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        self.values, self.nan_in, self.begun = values, nan_in, list[int]()

    def batches(self, epoch: int) -> Iterator[Points]:
        self.begun.append(epoch)
        generator = torch.Generator().manual_seed(epoch)
        for _ in range(STEPS):
            points = torch.randn(8, 4, generator=generator)
            yield points, (points.sum(dim=1) > 0).long()

    def loss(self, network: nn.Module, batch: Points, epoch: int) -> Outcome:
        points, labels = batch
        logits = network(points)
        loss = functional.cross_entropy(logits, labels)
        if epoch == self.nan_in:
            loss = loss * torch.nan
        return Outcome(loss, len(labels), {"accuracy": (logits.argmax(1) == labels).float().mean()})

    def validate(self, epoch: int) -> Mapping[str, float]:
        if self.values is None:
            return {}
        assert not self.network.training
        assert epoch == self.begun[-1]
        return {LOSS: self.values[epoch - 1]}


def settings(**keys: object) -> Optimization:
    return Optimization.model_validate({"epochs": 4, "rate": 0.1, "batch": 8, **keys})


def trained(task: ToyTask, folder: Path, **keys: object) -> Trained:
    """The task trained; everything of the settings but their length is compared with the state's."""
    wanted = settings(**keys)
    state = StateFolder(folder, wanted.model_dump(exclude={"epochs", "early_stopping", "keep"}))
    return train(task, wanted, state)
