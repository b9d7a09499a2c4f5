"""Image classification as a training task: its loss, its validation, and its tests on scenarios."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from cleanset.errors import CleansetError
from cleanset.scoring.devices import to_device
from cleanset.studies.training.batches import CROP_TRANSFORMS, ClassificationBatch, TrainingBatches, stacked_pixels
from cleanset.studies.training.fold_data import FoldData
from cleanset.studies.training.loop import LOSS, ROBUST_LOSS, Outcome, loaded
from cleanset.studies.training.networks import build_network
from cleanset.studies.training.pixels import TrainingPixels
from cleanset.studies.training.recipes import Standard

TESTED_AT_A_TIME = 64
"""Images of a batch that is tested or validated."""
TEST_COLUMNS = ("scenario", "class_index", "images", "correct", "loss")
"""The columns of test.csv."""


class Classification:
    """A network that learns the classes of the images of a fold; `validated` are those that it is validated on.

    Raises CleansetError for a network that does not fit, where no image is in a scenario, and for fewer training images
    than devices.
    """

    def __init__(self, data: FoldData) -> None:
        run = data.run
        network = build_network(
            run.network,
            classes=len(data.class_indices),
            size=run.size,
            edition=data.study.edition.folder,
            seed=run.seed,
            study=data.study.folder,
        )
        self.data = data
        self.name = data.name
        self.training = TrainingBatches(
            pixels=data.pixels(data.training, run.scenario, whole=run.augmentation in CROP_TRANSFORMS),
            recipe=run.training_recipe,
            run=run,
            workers=data.params.workers,
            share=data.share,
        )
        if len(self.training.pixels) < data.share.processes:
            raise CleansetError(
                f"{self.name}: {len(self.training.pixels)} training images for {data.share.processes} devices; "
                "expected at least one image for each: add images, or set fewer devices"
            )
        self.validated = data.pixels(data.validation, run.scenario) if len(data.validation) else None
        # weights in the order of channels last: half as long again on a CPU otherwise
        self.network: nn.Module = network.to(data.device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in an epoch."""
        return self.training.count

    def batches(self, epoch: int) -> Iterable[ClassificationBatch]:
        """The batches of an epoch."""
        return self.training(epoch)

    def loss(self, network: nn.Module, batch: ClassificationBatch, epoch: int) -> Outcome:
        """The recipe's loss, and the accuracy on its training views."""
        images = to_device(batch.views, self.data.device).float() / 255
        labels = to_device(batch.labels, self.data.device)
        generator = torch.Generator(self.data.device).manual_seed(batch.seed)
        recipe = self.training.recipe
        if epoch <= recipe.clean_epochs:
            recipe = Standard()
        learnt = recipe.learn(network, images, labels, generator)
        accuracy = (learnt.logits.argmax(dim=1) == labels).float().mean()
        return Outcome(learnt.loss, len(labels), {"accuracy": accuracy})

    @property
    def chosen_by(self) -> str:
        """The validation measure that chooses an epoch."""
        return ROBUST_LOSS if self.data.run.is_attacked else LOSS

    def validate(self, epoch: int) -> Mapping[str, float]:
        """Mean loss and accuracy on the images to validate on; from the first attack on, those under attack, too."""
        if self.validated is None:
            return {}
        workers = self.training.workers
        losses, correct = self.answers(self.validated, workers=workers)
        found = {LOSS: float(losses.mean()), "accuracy": float(correct.mean())}
        if self.data.run.is_attacked and epoch > self.training.recipe.clean_epochs:
            losses, correct = self.answers(self.validated, workers=workers, is_attacked=True)
            found |= {ROBUST_LOSS: float(losses.mean()), "robust_accuracy": float(correct.mean())}
        return found

    inner_name = "1"
    """The name of the library's network in its weights, behind the normalisation."""

    def test_table(self, sheets: Path) -> pd.DataFrame:
        """Rows of TEST_COLUMNS for each scenario of the run's tests, on the images left out; empty without any.

        A classifier has no `sheets`.
        """
        found = [pd.DataFrame(columns=list(TEST_COLUMNS))]
        left_out = self.data.left_out
        for scenario in self.data.run.tests if len(left_out) else []:
            pixels = self.data.pixels(left_out, scenario)
            losses, correct = self.answers(pixels, workers=self.training.workers)
            classes = np.array(self.data.class_indices)[pixels.labels]
            answers = pd.DataFrame({"class_index": classes, "correct": correct, "loss": losses})
            table = answers.groupby("class_index", as_index=False).agg(
                images=("loss", "size"), correct=("correct", "sum"), loss=("loss", "mean")
            )
            found.append(table.assign(scenario=scenario)[list(TEST_COLUMNS)])
        return pd.concat(found[1:] or found, ignore_index=True)

    def answers(
        self, pixels: TrainingPixels, *, workers: int, is_attacked: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Cross-entropy (float64) and correctness of each image, in evaluation mode; under the attack if asked for."""
        self.network.eval()
        losses: list[Tensor] = []
        correct: list[Tensor] = []
        # the same starts at every epoch, so that epochs can be compared
        generator = torch.Generator(self.data.device).manual_seed(self.data.run.seed)
        groups = np.split(np.arange(len(pixels)), range(TESTED_AT_A_TIME, len(pixels), TESTED_AT_A_TIME))
        images_of = loaded(partial(stacked_pixels, pixels), groups, workers)
        for places, group in zip(groups, images_of, strict=True):
            wanted = torch.from_numpy(pixels.labels[places])
            images = to_device(group, self.data.device).float() / 255
            if is_attacked:
                images = self.training.recipe.learnt_from(self.network, images, wanted.to(self.data.device), generator)
            with torch.no_grad():
                logits = self.network(images).cpu().double()
            losses.append(functional.cross_entropy(logits, wanted, reduction="none"))
            correct.append(logits.argmax(dim=1) == wanted)
        return torch.cat(losses).numpy(), torch.cat(correct).numpy()
