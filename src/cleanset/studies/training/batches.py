"""Batches of images for classification: read ahead or kept in memory, augmented, with the views of a recipe.

They are the same for one seed however many workers read them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.transforms import v2

from cleanset.plumbing.progress import tracked
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.training.fold_data import ALONE, ProcessShare, steps_per_epoch
from cleanset.studies.training.loop import epoch_seed, loaded
from cleanset.studies.training.pixels import TrainingPixels
from cleanset.studies.training.recipes import Recipe
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
