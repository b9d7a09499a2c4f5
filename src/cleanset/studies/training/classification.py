"""Image classification as a training task: its batches, its loss, its validation, and its tests on scenarios."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.transforms import v2

from cleanset.errors import CleansetError
from cleanset.plumbing.progress import tracked
from cleanset.scoring.devices import to_device
from cleanset.statistics.basics import Flags, Floats
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.training.fold_data import ALONE, FoldData, ProcessShare, steps_per_epoch
from cleanset.studies.training.loop import LOSS, ROBUST_LOSS, Outcome, epoch_seed, loaded
from cleanset.studies.training.networks import build_network
from cleanset.studies.training.pixels import TrainingPixels
from cleanset.studies.training.recipes import Recipe, Standard
from cleanset.studies.training.run_params import Run

KEPT_BYTES = 2**32
"""Pixels of up to this size are decoded once and kept in memory."""
SHIFT_SHARE = 12
"""Images are shifted by up to a twelfth of their side in each direction."""


class ClassificationBatch(NamedTuple):
    """A batch of images in memory."""

    views: Tensor
    """Views of the images in 0..255, of shape (n, views, 3, size, size), uint8 or float32."""
    labels: Tensor
    """The network's class of each image, int64 of shape (n)."""
    seed: int
    """Seed of the draws for the batch."""


@dataclass(eq=False, kw_only=True)
class TrainingBatches:
    """The batches of every epoch. Images that do not fill a last batch are left out, unless the run takes them."""

    pixels: TrainingPixels
    """The training images."""
    recipe: Recipe
    """Makes the views of an image."""
    run: Run
    """The run's settings."""
    workers: int = 0
    """Processes that read images ahead."""
    share: ProcessShare = ALONE
    """The part of each batch that this process gets."""
    kept: Tensor | None = None
    """All pixels, uint8 of shape (images, 3, size, size), once they have been read and if they fit into memory."""

    @property
    def count(self) -> int:
        """Batches in an epoch."""
        return steps_per_epoch(len(self.pixels), self.run, self.share.processes)

    def __call__(self, epoch: int) -> Iterable[ClassificationBatch]:
        """The batches of an epoch in their order."""
        # a random crop is of the whole image, another one at every epoch
        is_fixed = self.run.augmentation not in CROP_TRANSFORMS
        if self.kept is None and is_fixed and 3 * self.pixels.size**2 * len(self.pixels) <= KEPT_BYTES:
            self.kept = _all_pixels(self.pixels, self.workers)
        generator = torch.Generator().manual_seed(epoch_seed(self.run.seed, epoch))
        order = torch.randperm(len(self.pixels), generator=generator).tolist()
        size = self.run.batch
        groups = [(number, order[number * size : (number + 1) * size]) for number in range(self.count)]
        return loaded(partial(self._batch, epoch), groups, self.workers)

    def _batch(self, epoch: int, group: tuple[int, Sequence[int]]) -> ClassificationBatch:
        number, of_batch = group
        share = self.share
        places = of_batch[share.rank :: share.processes]
        name = f"{share.rank} of {share.processes}" if share.processes > 1 else "batch"
        seed = change_seed(image_seed(self.run.seed, f"epoch {epoch}"), "training", name, number)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            views = self.recipe.views(self._augmented(places))
        return ClassificationBatch(views, torch.from_numpy(self.pixels.labels[places]), seed)

    def _augmented(self, places: Sequence[int]) -> Tensor:
        if self.run.augmentation in CROP_TRANSFORMS:
            cropped = v2.Compose([v2.RandomResizedCrop(self.pixels.size), *CROP_TRANSFORMS[self.run.augmentation]])
            return torch.stack([cropped(self.pixels.image(place).convert("RGB")) for place in places])
        images = stacked_pixels(self.pixels, places) if self.kept is None else self.kept[places]
        return shifted_and_mirrored(images) if self.run.augmentation == "shift_and_mirror" else images


EIGENVALUES = torch.tensor([0.2175, 0.0188, 0.0045])
EIGENVECTORS = torch.tensor([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
"""Principal components of the colours of ImageNet's pixels in 0..1, a column for each eigenvalue."""
LIGHTING = 0.05
"""Standard deviation of an image's shift along each eigenvector, by its eigenvalue."""


def lit(image: Tensor) -> Tensor:
    """An image, uint8 (3, size, size), under light of another colour, as float32; drawn from torch's generator."""
    shift = EIGENVECTORS * (LIGHTING * torch.randn(3) * EIGENVALUES)
    return image + 255 * shift.sum(dim=1)[:, None, None]


CROP_TRANSFORMS: Mapping[str, Sequence[nn.Module]] = {
    "random_resized_crop": (v2.RandomHorizontalFlip(), v2.PILToTensor()),
    # MadryLab's for ImageNet
    "crop_and_jitter": (
        v2.RandomHorizontalFlip(), v2.ColorJitter(0.1, 0.1, 0.1), v2.PILToTensor(), v2.Lambda(lit),
    ),
}  # fmt: skip
"""The augmentations that begin with a random crop, and the steps after it."""


def shifted_and_mirrored(images: Tensor) -> Tensor:
    """Images, uint8 (n, 3, size, size), shifted by a few pixels with their edges reflected, and half of them mirrored.

    Drawn from torch's global generator.
    """
    size = images.shape[-1]
    reach = max(1, size // SHIFT_SHARE)
    padded = functional.pad(images.float(), (reach,) * 4, mode="reflect").to(torch.uint8)
    shifts = torch.randint(0, 2 * reach + 1, (len(images), 2)).tolist()
    mirrored = torch.randint(0, 2, (len(images),)).tolist()
    found = torch.empty_like(images)
    for place, (x, y) in enumerate(shifts):
        moved = padded[place, :, y : y + size, x : x + size]
        found[place] = moved.flip(-1) if mirrored[place] else moved
    return found


def stacked_pixels(pixels: TrainingPixels, places: Sequence[int]) -> Tensor:
    """The pixels of some images, uint8 of shape (n, 3, size, size)."""
    return torch.stack([torch.from_numpy(pixels(place)) for place in places])


def _all_pixels(pixels: TrainingPixels, workers: int) -> Tensor:
    """All pixels, uint8 of shape (images, 3, size, size)."""
    found = torch.empty(len(pixels), 3, pixels.size, pixels.size, dtype=torch.uint8)
    images = loaded(pixels, range(len(pixels)), workers)
    # a loader draws from torch's generator, and a resumed training reads the pixels in a later epoch
    with torch.random.fork_rng(devices=[]):
        for place, image in enumerate(tracked(images, len(pixels), f"reading {pixels.scenario}")):
            found[place] = torch.from_numpy(image)
    return found


TESTED_AT_A_TIME = 64
"""Images of a batch that is tested or validated."""
TEST_COLUMNS = ("scenario", "class_index", "images", "correct", "loss")
"""The columns of test.csv."""


class Classification:
    """A network that learns the classes of the images of a fold; `validated` are those that it is validated on.

    Raises CleansetError for a network that does not fit, if no image is in a scenario, and for fewer training images
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
        """Mean loss and accuracy on the images to validate on; after the first attack, those under attack, too."""
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

    def answers(self, pixels: TrainingPixels, *, workers: int, is_attacked: bool = False) -> tuple[Floats, Flags]:
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
