"""Image classification as a training task: batches, networks, recipes, and tests on scenarios.

Batches are decoded in worker processes or kept in memory; they are the same for one seed however many workers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torchvision.transforms import v2

from cleanset.classes import ClassTable
from cleanset.edition.params import Model
from cleanset.errors import CleansetError, reason
from cleanset.images.preprocessing import Resized
from cleanset.measure.specs import ModuleModel
from cleanset.measure.user_model import returned_by
from cleanset.progress import tracked
from cleanset.scoring.checkpoints import load_checkpoint
from cleanset.scoring.devices import to_device
from cleanset.scoring.models import weights_at_hand
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.robustness.trained_models import OnClasses, normalised, trained_preprocessing
from cleanset.studies.training.fold_data import ALONE, FoldData, ProcessShare
from cleanset.studies.training.loop import LOSS, ROBUST_LOSS, Outcome, epoch_seed, loaded
from cleanset.studies.training.pixels import TrainingPixels
from cleanset.studies.training.recipes import Recipe, Standard
from cleanset.studies.training.run_params import Network, Run
from cleanset.studies.training.study import network_of_record, record_of_weights
from cleanset.validation import shown

# pixels of up to this size are decoded once and kept in memory
KEPT_BYTES = 2**32
SHIFT_SHARE = 12
"""Images are shifted by up to a twelfth of their side in each direction."""


class ClassificationBatch(NamedTuple):
    """Views of images in 0..255, (n, views, 3, size, size); their labels (n); the seed of the draws for them."""

    views: Tensor
    labels: Tensor
    seed: int


@dataclass(eq=False)
class TrainingBatches:
    """The batches of every epoch. Images that do not fill a last batch are left out, unless the run takes them."""

    pixels: TrainingPixels
    recipe: Recipe
    run: Run
    workers: int = 0
    share: ProcessShare = ALONE
    kept: Tensor | None = None

    @property
    def count(self) -> int:
        """Batches in an epoch; at least one, which may be smaller. Each process gets an image of a smaller one."""
        full, rest = divmod(len(self.pixels), self.run.batch)
        return max(1, full + (self.run.incomplete_batch and rest >= self.share.processes))

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
        number, places, share = group[0], group[1][self.share.rank :: self.share.processes], self.share
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
        images = _stacked(self.pixels, places) if self.kept is None else self.kept[places]
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


def _stacked(pixels: TrainingPixels, places: Sequence[int]) -> Tensor:
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
    if not wanted.normalised:
        network = nn.Sequential(nn.Identity(), cast(nn.Sequential, network)[1])
    _check_size(network, wanted.name, classes, size)
    return network


def trained_network(weights: Path, known: ClassTable) -> tuple[nn.Module, str | Resized]:
    """The network of a finished fold with its weights, for all `known` classes, and its preprocessing.

    Raises CleansetError as `record_of_weights` does, and for a class that is not known.
    """
    folder = weights.resolve().parent
    record = record_of_weights(folder / "record.json", weights)
    classes = record["classes"]
    size = record["settings"]["size"]
    for key in classes:
        if key not in known.indices:
            raise CleansetError(f"{weights}: trained on class {shown(key)}; expected {known.expected_key}")
    # of runs/NAME/FOLD in the study's data
    network = build_network(network_of_record(record), len(classes), size, folder, 0, folder.parents[3])
    load_checkpoint(cast(nn.Sequential, network)[1], weights, None)
    whole = OnClasses(network, [known.indices[key] for key in classes], len(known))
    # the record of an older version names no resizing
    if (resizing := record["settings"].get("resizing", "cropped")) != "cropped":
        return whole, Resized(size, resizing == "nearest")
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


class Classification:
    """A network that learns the classes of the images of a fold; `validated` are those that it is validated on.

    Raises CleansetError for a network that does not fit, and where no image is in a scenario.
    """

    def __init__(self, data: FoldData) -> None:
        run, study = data.run, data.study
        network = build_network(
            run.network, len(data.class_indices), run.size, study.edition.folder, run.seed, study.folder
        )
        pixels = data.pixels(data.training, run.scenario, whole=run.augmentation in CROP_TRANSFORMS)
        self.data, self.name = data, data.name
        self.training = TrainingBatches(pixels, run.training_recipe, run, data.params.workers, data.share)
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
        losses, correct = self.answers(self.validated)
        found = {LOSS: float(losses.mean()), "accuracy": float(correct.mean())}
        if self.data.run.is_attacked and epoch > self.training.recipe.clean_epochs:
            losses, correct = self.answers(self.validated, is_attacked=True)
            found |= {ROBUST_LOSS: float(losses.mean()), "robust_accuracy": float(correct.mean())}
        return found

    inner_name = "1"
    """The name of the library's network in its weights, behind the normalisation."""

    def test_table(self, sheets: Path) -> pd.DataFrame:
        """Rows of TEST_COLUMNS for each scenario of the run's tests, on the images left out; empty without any.

        A classifier has no `sheets`.
        """
        found = [pd.DataFrame(columns=list(TEST_COLUMNS))]
        for scenario in self.data.run.tests if len(self.data.left_out) else []:
            pixels = self.data.pixels(self.data.left_out, scenario)
            losses, correct = self.answers(pixels)
            classes = np.array(self.data.class_indices)[pixels.labels]
            answers = pd.DataFrame({"class_index": classes, "correct": correct, "loss": losses})
            table = answers.groupby("class_index", as_index=False).agg(
                images=("loss", "size"), correct=("correct", "sum"), loss=("loss", "mean")
            )
            found.append(table.assign(scenario=scenario)[list(TEST_COLUMNS)])
        return pd.concat(found[1:] or found, ignore_index=True)

    def answers(self, pixels: TrainingPixels, *, is_attacked: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
        """Cross-entropy (float64) and correctness of each image, in evaluation mode; under the attack if asked for."""
        self.network.eval()
        losses, correct = [], []
        # the same starts at every epoch, so that epochs can be compared
        generator = torch.Generator(self.data.device).manual_seed(self.data.run.seed)
        groups = np.split(np.arange(len(pixels)), range(TESTED_AT_A_TIME, len(pixels), TESTED_AT_A_TIME))
        images_of = loaded(partial(_stacked, pixels), groups, self.training.workers)
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
