"""Trains the three small models on images that the sample does not hold.

- standard: cross-entropy on clean images.
- norm_robust: adversarial training, min over the weights of the expected maximum of
  the loss over all changes of at most EPSILON per value, the maximum sought by
  projected gradient descent (Madry et al., arXiv:1706.06083; the norm-robust role's
  training in Salman et al., arXiv:2007.08489).
- corruption_robust: AugMix (Hendrycks et al., arXiv:1912.02781) and noise.
"""

import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from random import Random

import torch
from PIL import Image
from rich.progress import track
from torch import nn
from torch.nn import functional
from torchvision.transforms import v2

import models
from archives import imagenet_wnids
from drawing.objects import DRAWERS
from drawing.scenes import PHOTO_SIZES, TRAINING_DIFFICULTIES, Scene, draw_scene

SEED = 2012_01
IMAGES_PER_CLASS = 200
BATCH = 32
EPOCHS = {"standard": 4, "norm_robust": 7, "corruption_robust": 14}
WARM_UP = {"standard": 0, "norm_robust": 4, "corruption_robust": 5}
RATE = {"standard": 3e-3, "norm_robust": 2e-3, "corruption_robust": 2e-3}
EPSILON = 4 / 255
STEP = 3 / 255
STEPS = 2
HERE = Path(__file__).parent
ARCHIVE = HERE.parent / "data/raw/ILSVRC2012_img_val.tar"
REASSESSED = HERE.parent / "data/raw/reassessed.json"

Change = Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]


def training_image(number: int) -> tuple[torch.Tensor, int]:
    """The image of this number, 160 x 160, and its class index."""
    rng = Random(f"{SEED} training {number}")
    wnid = list(DRAWERS)[number % len(DRAWERS)]
    width, height = rng.choice(PHOTO_SIZES)
    scene = Scene(width, height, (wnid,), rng.choice(TRAINING_DIFFICULTIES))
    image, _ = draw_scene(scene, rng, scale=2)
    return models.CUT(image), imagenet_wnids().index(wnid)


def training_set() -> tuple[torch.Tensor, torch.Tensor]:
    """All training images as uint8 (N, 3, 160, 160), and their class indices."""
    count = IMAGES_PER_CLASS * len(DRAWERS)
    with ProcessPoolExecutor() as pool:
        drawn = list(
            track(
                pool.map(training_image, range(count), chunksize=20),
                "drawing",
                count,
                disable=not sys.stdout.isatty(),
            )
        )
    return torch.stack([image for image, _ in drawn]), torch.tensor([index for _, index in drawn])


def shifted(images: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """The batch, moved by up to 12 pixels and perhaps mirrored."""
    x, y = (int(n) for n in torch.randint(0, 25, (2,), generator=random))
    padded = functional.pad(images.float(), (12, 12, 12, 12), mode="reflect").to(torch.uint8)
    moved = padded[..., y : y + models.SIDE, x : x + models.SIDE]
    return moved.flip(-1) if torch.randint(0, 2, (1,), generator=random) else moved


def clean(role: str) -> Change:
    """Unchanged images."""

    def change(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return images.float() / 255

    return change


def attacked(role: str) -> Change:
    """Each image changed, by at most EPSILON per value, so that the loss grows."""

    def change(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        original = images.float() / 255
        delta = torch.empty_like(original).uniform_(-EPSILON, EPSILON)
        for _ in range(STEPS):
            delta.requires_grad_()
            output = model(models.normalise(role, original + delta))
            (slope,) = torch.autograd.grad(functional.cross_entropy(output, labels), delta)
            delta = (delta.detach() + STEP * slope.sign()).clamp(-EPSILON, EPSILON)
            delta = (original + delta).clamp(0, 1) - original
        return original + delta

    return change


def mixed(role: str) -> Change:
    """Groups of eight images under AugMix's mixtures of changes, some with noise on top."""
    augmix = v2.AugMix()

    def change(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        changed = torch.cat([augmix(group) for group in torch.split(images, 8)]).float() / 255
        strength = 0.12 * torch.rand(len(changed), 1, 1, 1) * (torch.rand(len(changed), 1, 1, 1) < 0.5)
        return (changed + strength * torch.randn_like(changed)).clamp(0, 1)

    return change


CHANGES: dict[str, Callable[[str], Change]] = {
    "standard": clean,
    "norm_robust": attacked,
    "corruption_robust": mixed,
}


def train(role: str, images: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """The role's model, trained on images (uint8, N x 3 x 160 x 160) and class indices."""
    torch.manual_seed(SEED)
    random = torch.Generator().manual_seed(SEED)
    model = models.create(role)
    models.favour(model, sorted(set(labels.tolist())))
    batches = len(images) // BATCH
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE[role], weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE[role], EPOCHS[role] * batches)
    for epoch in range(EPOCHS[role]):
        change = (clean if epoch < WARM_UP[role] else CHANGES[role])(role)
        order = torch.randperm(len(images), generator=random)[: batches * BATCH]
        for rows in torch.split(order, BATCH):
            inputs = change(model, shifted(images[rows], random), labels[rows])
            loss = functional.cross_entropy(model(models.normalise(role, inputs)), labels[rows])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            schedule.step()
    return model.eval()


def sample_set() -> tuple[torch.Tensor, list[list[int]]]:
    """The sample's own images, 160 x 160, and their reassessed labels."""
    with tarfile.open(ARCHIVE) as archive:
        files = [archive.extractfile(member) for member in archive]
        images = [Image.open(io.BytesIO(file.read())).convert("RGB") for file in files if file]
    return torch.stack([models.CUT(p) for p in images]), json.loads(REASSESSED.read_text())


@torch.no_grad()
def top_1(role: str, model: nn.Module, images: torch.Tensor, labels: list[list[int]]) -> float:
    """The share of the labelled images, 0..1, whose top-1 class is among their labels."""
    inputs = (models.normalise(role, group.float() / 255) for group in torch.split(images, BATCH))
    top_1_classes = torch.cat([model(group).argmax(1) for group in inputs]).tolist()
    correct = [guess in allowed for guess, allowed in zip(top_1_classes, labels, strict=True) if allowed]
    return sum(correct) / len(correct)


def train_and_store(role: str, images: torch.Tensor, labels: torch.Tensor) -> Path:
    """Train the role's model; on one thread, so that sums are always made in the same order."""
    torch.set_num_threads(1)
    path = HERE / "weights" / f"{role}.safetensors"
    models.store(train(role, images, labels), path)
    return path


def main() -> None:
    """Train all three, store them, and say how good they are on the sample."""
    images, labels = training_set()
    roles = list(models.ARCHITECTURES)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        paths = list(pool.map(train_and_store, roles, repeat(images), repeat(labels)))
    sample, allowed = sample_set()
    for role, path in zip(roles, paths, strict=True):
        share = top_1(role, models.load(role, path), sample, allowed)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{role}: top-1 {100 * share:.1f} % of {len(sample)}, sha256 {digest}")


if __name__ == "__main__":
    main()
