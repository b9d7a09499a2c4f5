"""Learning to classify: batches, networks and recipes of a run, the task that the loop trains, tests on scenarios.

Batches are decoded in worker processes or kept in memory; they are the same for one seed however many workers.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from cleanset.edition.params import Model
from cleanset.errors import CleansetError, reason
from cleanset.measure.specs import ModuleModel
from cleanset.measure.user_model import returned_by
from cleanset.progress import tracked
from cleanset.scoring.checkpoints import load_checkpoint
from cleanset.scoring.models import weights_at_hand
from cleanset.scoring.scorer import to_device
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.robustness.trained_models import OnClasses, normalised, trained_preprocessing
from cleanset.studies.training.images import ALONE, FoldData, Share, TrainingPixels, in_scenario, pixels_of
from cleanset.studies.training.loop import LOSS, ROBUST_LOSS, Outcome, epoch_seed
from cleanset.studies.training.params import Network, Run
from cleanset.studies.training.recipes import AdversarialTraining, AugmixTraining, GaussianNoise, Recipe, Standard
from cleanset.studies.training.study import record_of_weights
from cleanset.validation import shown
from cleanset.vocabulary import class_indices, known_classes

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


TESTED_AT_A_TIME = 64
TEST_COLUMNS = ("scenario", "class_index", "images", "correct", "loss")


def build_network(
    wanted: Network, classes: int, size: int, folder: Path, seed: int, study: Path | None = None
) -> nn.Module:
    """A network from pixels in 0..1, of shape (n, 3, size, size), to logits (n, classes).

    New weights are drawn from `seed`; published ones are downloaded to the edition in `folder`, and their classifier
    is replaced by a new one where they have other classes. The module of a custom network is looked for in the folder
    `study` first. Raises CleansetError for a network that the library does
    not have, that takes no images of that size, and whose weights are missing.
    """
    if wanted.source == "smp":
        raise CleansetError(f"smp:{wanted.name}: it segments; expected a network of timm or torchvision")
    if wanted.source == "module":
        network = _network_of_module(wanted.name, size, study, seed)
        _check_size(network, wanted.name, classes, size)
        return network
    weights = None
    if wanted.pretrained:
        if wanted.source == "torchvision" and "." not in wanted.name:
            raise CleansetError(f"torchvision:{wanted.name}: pretrained without weights; expected NAME.WEIGHTS")
        weights = weights_at_hand(Model(source=wanted.source, name=wanted.name), folder)
    # new weights are the same whatever was drawn before
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = normalised(wanted.source, wanted.name, classes, size, weights)
    _check_size(network, wanted.name, classes, size)
    return network


def trained_network(weights: Path) -> tuple[nn.Module, str]:
    """The network of a finished fold with its weights, for all classes in use, and the name of its preprocessing.

    Raises CleansetError as `record_of_weights` does, and for classes that are not in use.
    """
    folder = weights.resolve().parent
    record = record_of_weights(folder / "record.json", weights)
    classes, size = record["classes"], record["settings"]["size"]
    for key in classes:
        if key not in class_indices():
            raise CleansetError(f"{weights}: trained on class {shown(key)}; expected {known_classes()}")
    wanted = Network.model_validate(record["settings"]["network"] | {"pretrained": False})
    # of runs/NAME/FOLD in the study's data
    network = build_network(wanted, len(classes), size, folder, 0, folder.parents[3])
    load_checkpoint(cast(nn.Sequential, network)[1], weights, None)
    whole = OnClasses(network, [class_indices()[key] for key in classes])
    return whole, trained_preprocessing(size).name


def _network_of_module(name: str, size: int, study: Path | None, seed: int) -> nn.Module:
    """The network that a callable returns, by itself behind no normalisation, in which its weights have its own names.

    Raises CleansetError unless its preprocessing gives images of that size.
    """
    module, _, function = name.partition(":")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network, preprocessing = returned_by(ModuleModel(name, module, function, study))
    if preprocessing.size != size:
        raise CleansetError(
            f"{name}: its preprocessing gives images of {preprocessing.size} x {preprocessing.size}, size is {size}; "
            "expected the same: set size"
        )
    return nn.Sequential(nn.Identity(), network)


def _check_size(network: nn.Module, name: str, classes: int, size: int) -> None:
    """Raise CleansetError unless the network gives a logit for each class of an image of that size."""
    was_training = network.training
    try:
        with torch.no_grad():
            shape = tuple(network.eval()(torch.zeros(1, 3, size, size)).shape)
    except Exception as error:  # a network raises whatever the size leads it to
        raise CleansetError(
            f"{name}: takes no images of {size} x {size} ({reason(error)}); expected its own size: set size"
        ) from None
    finally:
        network.train(was_training)
    if shape != (1, classes):
        raise CleansetError(f"{name}: gives {shape[1:]} numbers an image; expected {classes} logits")


def recipe_of(run: Run) -> Recipe:
    """The recipe of a run with its settings."""
    if run.recipe == "adversarial":
        return AdversarialTraining(run.adversarial)
    if run.recipe in ("augmix", "augmix_mixing"):
        return AugmixTraining(run.augmix, run.recipe == "augmix_mixing")
    return GaussianNoise(run.noise.largest) if run.recipe == "noise" else Standard()


@dataclass(eq=False)
class Classification:
    """A network that learns the classes of images; `validated` are those that it is validated on, with `labels`."""

    data: FoldData
    network: nn.Module
    training: TrainingBatches
    validated: TrainingPixels | None
    labels: NDArray[np.int64]

    @classmethod
    def of_fold(cls, data: FoldData) -> Self:
        """The task of a fold. Raises CleansetError for its network, and where no image is in its scenario."""
        run, size = data.run, data.run.size
        folders = data.study.edition.folder, data.study.folder
        network = build_network(run.network, len(data.classes), size, folders[0], run.seed, folders[1])
        whole = run.augmentation == "random_resized_crop"
        sources = data.study, data.params.data
        training = in_scenario(data.training, run.scenario)
        batches = TrainingBatches(
            pixels_of(*sources, training, size, run.scenario, data.params.seed, whole=whole),
            data.labels(training),
            recipe_of(run),
            run.augmentation,
            run.batch,
            run.seed,
            data.params.workers,
            data.share,
        )
        validated, pixels = data.validation, None
        if len(validated):
            validated = in_scenario(validated, run.scenario)
            pixels = pixels_of(*sources, validated, size, run.scenario, data.params.seed)
        # weights in the order of channels last: half as long again on a CPU otherwise
        network = network.to(data.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        return cls(data, network, batches, pixels, data.labels(validated))

    @property
    def name(self) -> str:
        """Run and fold."""
        return self.data.name

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in an epoch."""
        return self.training.count

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        return self.training(epoch)

    def loss(self, network: nn.Module, batch: Batch, epoch: int) -> Outcome:
        """The recipe's loss, and the accuracy on what it has learnt from."""
        images = to_device(batch.views, self.data.device).float() / 255
        labels = to_device(batch.labels, self.data.device)
        generator = torch.Generator(self.data.device).manual_seed(batch.seed)
        learnt = self.training.recipe(network, images, labels, generator, epoch)
        accuracy = (learnt.logits.argmax(dim=1) == labels).float().mean()
        return Outcome(learnt.loss, len(labels), {"accuracy": accuracy})

    @property
    def chosen_by(self) -> str:
        """The measure of validation by which an epoch is chosen."""
        return ROBUST_LOSS if self.data.run.is_attacked else LOSS

    def validate(self, epoch: int) -> Mapping[str, float]:
        """Mean loss and accuracy on the images to validate on; from the first attack on, those under attack, too."""
        if self.validated is None:
            return {}
        losses, correct = self.answers(self.validated, self.labels)
        found = {LOSS: float(losses.mean()), "accuracy": float(correct.mean())}
        if self.data.run.is_attacked and epoch > self.data.run.adversarial.warm_up_epochs:
            losses, correct = self.answers(self.validated, self.labels, is_attacked=True)
            found |= {ROBUST_LOSS: float(losses.mean()), "robust_accuracy": float(correct.mean())}
        return found

    inner_name = "1"
    """The name of the library's network in its weights, behind the normalisation."""

    def test_table(self, sheets: Path) -> pd.DataFrame:
        """Rows of TEST_COLUMNS for each scenario of the run's tests, on the images left out; none without any.

        A classifier has no `sheets`.
        """
        found = [pd.DataFrame(columns=list(TEST_COLUMNS))]
        for scenario in self.data.run.tests if len(self.data.left_out) else []:
            images = in_scenario(self.data.left_out, scenario)
            sources = self.data.study, self.data.params.data
            pixels = pixels_of(*sources, images, self.data.run.size, scenario, self.data.params.seed)
            losses, correct = self.answers(pixels, self.data.labels(images))
            found.append(test_rows(scenario, images["class_index"].tolist(), losses, correct))
        return pd.concat(found[1:] or found, ignore_index=True)

    def answers(
        self, pixels: TrainingPixels, labels: NDArray[np.int64], *, is_attacked: bool = False
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Cross-entropy (float64) and correctness of each image, in evaluation mode; under the attack if asked for."""
        self.network.eval()
        losses, correct, first = [], [], 0
        # the same starts at every epoch, so that epochs can be compared
        generator = torch.Generator(self.data.device).manual_seed(self.data.run.seed)
        for group in pixel_batches(pixels, self.training.workers, TESTED_AT_A_TIME):
            wanted = torch.from_numpy(labels[first : first + len(group)])
            images = to_device(group, self.data.device).float() / 255
            if is_attacked:
                recipe = cast(AdversarialTraining, self.training.recipe)
                images = recipe.ascent(self.network, images, wanted.to(self.data.device), generator)
            with torch.no_grad():
                logits = self.network(images).cpu().double()
            losses.append(functional.cross_entropy(logits, wanted, reduction="none"))
            correct.append(logits.argmax(dim=1) == wanted)
            first += len(group)
        return torch.cat(losses).numpy(), torch.cat(correct).numpy()


def test_rows(
    scenario: str, classes: Sequence[int], losses: NDArray[np.float64], correct: NDArray[np.bool_]
) -> pd.DataFrame:
    """A row of TEST_COLUMNS for each class, with the mean loss, from the answers to images of these class indices."""
    answers = pd.DataFrame({"class_index": list(classes), "correct": correct, "loss": losses})
    table = answers.groupby("class_index").agg(
        images=("loss", "size"), correct=("correct", "sum"), loss=("loss", "mean")
    )
    found = table.reset_index()
    found.insert(0, "scenario", scenario)
    return found[list(TEST_COLUMNS)]
