"""Training batches: decoded in worker processes or kept in memory, the same for one seed however many workers."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from cleanset.progress import tracked
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.training.folds import ALONE, Share
from cleanset.studies.training.images import TrainingPixels
from cleanset.studies.training.loop import epoch_seed
from cleanset.studies.training.recipes import Recipe

KEPT_BYTES = 2**32
"""Largest size of the pixels that are decoded once and kept."""
SHIFT_SHARE = 12
"""Images are shifted by up to a twelfth of their side in each direction."""


class Batch(NamedTuple):
    """Views of images in 0..255, (n, views, 3, size, size); their labels (n); the seed of what is drawn for them."""

    views: Tensor
    labels: Tensor
    seed: int


@dataclass(eq=False)
class TrainingBatches:
    """The batches of every epoch.

    `labels` has the network's class of each image. Images that do not fill a last batch are left out in that epoch.
    """

    pixels: TrainingPixels
    labels: NDArray[np.int64]
    recipe: Recipe
    augmentation: str
    batch: int
    seed: int
    workers: int = 0
    share: Share = ALONE
    kept: Tensor | None = None

    @property
    def count(self) -> int:
        """Batches in an epoch; at least one, which may be smaller."""
        return max(1, len(self.pixels) // self.batch)

    def __call__(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch in their order."""
        if self.kept is None and self._fits():
            self.kept = _all_pixels(self.pixels, self.workers)
        generator = torch.Generator().manual_seed(epoch_seed(self.seed, epoch))
        order = torch.randperm(len(self.pixels), generator=generator).tolist()
        groups = [order[number * self.batch : (number + 1) * self.batch] for number in range(self.count)]
        yield from _loader(_Epoch(self, epoch, groups), self.workers)

    def _fits(self) -> bool:
        # a random crop is of the whole image, another one at every epoch
        is_fixed = self.augmentation != "random_resized_crop"
        return is_fixed and 3 * self.pixels.size**2 * len(self.pixels) <= KEPT_BYTES


@dataclass(eq=False)
class _Epoch(Dataset[Batch]):
    """The batches of one epoch, by number."""

    source: TrainingBatches
    epoch: int
    groups: Sequence[Sequence[int]]

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, number: int) -> Batch:
        source, share = self.source, self.source.share
        places = self.groups[number][share.rank :: share.processes]
        name = f"{share.rank} of {share.processes}" if share.processes > 1 else "batch"
        seed = change_seed(image_seed(source.seed, f"epoch {self.epoch}"), "training", name, number)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            views = source.recipe.views(self._augmented(places))
        return Batch(views, torch.from_numpy(source.labels[list(places)]), seed)

    def _augmented(self, places: Sequence[int]) -> Tensor:
        source = self.source
        if source.augmentation == "random_resized_crop":
            cropped = v2.Compose(
                [v2.RandomResizedCrop(source.pixels.size), v2.RandomHorizontalFlip(), v2.PILToTensor()]
            )
            return torch.stack([cropped(source.pixels.image(place).convert("RGB")) for place in places])
        if source.kept is not None:
            images = source.kept[list(places)]
        else:
            images = torch.stack([torch.from_numpy(source.pixels(place)) for place in places])
        return shifted_and_mirrored(images) if source.augmentation == "shift_and_mirror" else images


def shifted_and_mirrored(images: Tensor) -> Tensor:
    """Each image, of uint8 (n, 3, size, size), shifted by a few pixels with its edges reflected, and half of them
    mirrored; drawn from torch's global generator."""
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


class _Images(Dataset[Tensor]):
    def __init__(self, pixels: TrainingPixels) -> None:
        self._pixels = pixels

    def __len__(self) -> int:
        return len(self._pixels)

    def __getitem__(self, place: int) -> Tensor:
        return torch.from_numpy(self._pixels(place))


def _all_pixels(pixels: TrainingPixels, workers: int) -> Tensor:
    """All pixels, uint8 of shape (images, 3, size, size)."""
    found = torch.empty(len(pixels), 3, pixels.size, pixels.size, dtype=torch.uint8)
    for place, image in enumerate(tracked(pixel_batches(pixels, workers), len(pixels), f"reading {pixels.scenario}")):
        found[place] = image
    return found


def pixel_batches(pixels: TrainingPixels, workers: int, size: int | None = None) -> Iterable[Tensor]:
    """The pixels in order, decoded ahead by worker processes if there are any: `size` images at a time, or each."""
    return _loader(_Images(pixels), workers, size)


def _loader(dataset: Dataset[Any], workers: int, size: int | None = None) -> Iterable[Any]:
    options: dict[str, Any] = {"prefetch_factor": 4, "worker_init_fn": _in_worker} if workers else {}
    return DataLoader(dataset, batch_size=size, shuffle=False, num_workers=workers, **options)


def _in_worker(_: int) -> None:
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
