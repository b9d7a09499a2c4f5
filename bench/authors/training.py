"""Training beside its authors: AugMix's script for ImageNet, MadryLab's robustness, locuslab's fast_adversarial.

Their functions run as they are; of the scripts, which read command lines and GPUs, those named here are cut out.
"""

import ast
import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional
from torchvision import transforms

from authors.rows import Row, compared
from cleanset.studies.attacks.base import Norm
from cleanset.studies.training.batches import TrainingBatches
from cleanset.studies.training.loop import _scheduler, parameter_groups
from cleanset.studies.training.networks import build_network
from cleanset.studies.training.recipes import Adversarial, Augmix, Standard
from cleanset.studies.training.run_params import Network, Optimization, Run

SIZE = 224
CLASSES = 12
STEPS_PER_EPOCH = 4
AUGMIX = "augmix/imagenet.py"
MADRY = "MadryLab/robustness"
FAST = "locuslab/fast_adversarial"


def rows(programs: Path, photographs: Sequence[Path]) -> Iterator[Row]:
    images = [Image.open(path).convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR) for path in photographs]
    batch = torch.stack([torch.from_numpy(np.array(image).transpose(2, 0, 1).copy()) for image in images])
    torch.set_num_threads(1)
    yield from augmix_rows(programs / "augmix", images, batch)
    yield from madry_rows(programs / "madrylab-robustness", images, batch)
    yield from fast_rows(programs / "fast_adversarial" / "ImageNet")


def functions(path: Path, names: Sequence[str], known: dict[str, Any]) -> SimpleNamespace:
    """Functions and classes of a script, with what it finds outside them."""
    found = [each for each in ast.parse(path.read_text()).body if getattr(each, "name", None) in names]
    exec(compile(ast.Module(found, []), str(path), "exec"), known)
    return SimpleNamespace(**{name: known[name] for name in names})


def network() -> nn.Module:
    """The sample's network with new weights, behind its normalisation."""
    return build_network(Network(name="test_efficientnet"), classes=CLASSES, size=SIZE, edition=Path(), seed=0)


def augmix_rows(program: Path, images: Sequence[Image.Image], batch: torch.Tensor) -> Iterator[Row]:
    sys.path.insert(0, str(program))
    operations: Any = importlib.import_module("augmentations")
    operations.IMAGE_SIZE = SIZE
    args = SimpleNamespace(
        aug_severity=3, aug_prob_coeff=1.0, mixture_width=3, mixture_depth=-1, all_ops=False, no_jsd=False,
        batch_size=256, epochs=90, learning_rate=0.1, print_freq=1000,
    )  # fmt: skip
    known = {"np": np, "torch": torch, "F": functional, "augmentations": operations, "args": args, "time": time}
    known["accuracy"] = lambda *_, **__: (0, 0)
    script = functions(program / "imagenet.py", ("aug", "adjust_learning_rate", "train"), known)
    ours = []
    theirs = []
    for number, image in enumerate(images):
        # their draws come from the global generator of numpy, ours from a new one of its older kind
        draws: Any = LegacyDraws(number)
        ours.append(Augmix().mixture(batch[number], draws).numpy())
        np.random.seed(number)
        theirs.append(255 * script.aug(image, transforms.ToTensor()).numpy())
    on = f"{len(images)} photographs"
    yield compared("AugMix's mixture", AUGMIX, on, np.stack(ours), np.stack(theirs), "nothing: rounding of float32")

    views = torch.stack([batch.float(), *(torch.from_numpy(np.stack(each)) for each in (ours, theirs))], dim=1)
    views = views[:8] / 255
    labels = torch.arange(8) % CLASSES
    one = network()
    other = network()
    torch.autograd.backward(Augmix().learn(one, views, labels, torch.Generator()).loss)
    rate = SimpleNamespace(zero_grad=lambda: None, step=lambda: None)
    with patch.object(torch.Tensor, "cuda", lambda self: self):
        script.train(other, [([views[:, k] for k in range(3)], labels)], rate)
    found, wanted = (
        torch.cat([each.grad.flatten() for each in net.parameters() if each.grad is not None]).numpy()
        for net in (one, other)
    )
    yield compared("AugMix's loss: gradient of all weights", AUGMIX, "8 photographs", found, wanted)

    their_rates = []
    for epoch in range(args.epochs):
        group = SimpleNamespace(param_groups=[{}])
        script.adjust_learning_rate(group, epoch)
        their_rates += [group.param_groups[0]["lr"]] * STEPS_PER_EPOCH
    found = rates(schedule="step", decay_epochs=30, rate=0.1, epochs=90)
    yield compared("rate by step, grid augmix", AUGMIX, "90 epochs", found, np.array(their_rates))
    yield decayed("weight decay, grid augmix", AUGMIX, torch.optim.SGD(network().parameters(), 0.1, weight_decay=1e-4))


class LegacyDraws:
    """The draws of numpy's older generator under the names of the newer one."""

    def __init__(self, seed: int) -> None:
        self.state = np.random.RandomState(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, {"integers": "randint"}.get(name, name))


def madry_rows(program: Path, images: Sequence[Image.Image], batch: torch.Tensor) -> Iterator[Row]:
    sys.path.insert(0, str(program))
    missing = ("cox", "cox.utils", "cox.store", "dill", "robustness.loaders", "robustness.datasets", "robustness.main")
    package = ModuleType("robustness")
    package.__path__ = [str(program / "robustness")]
    with patch.dict(sys.modules, {"robustness": package, **{name: MagicMock() for name in missing}}):
        lighting = importlib.import_module("robustness.data_augmentation")
        attacker = importlib.import_module("robustness.attacker")
        training = importlib.import_module("robustness.train")
    net = network().eval()
    labels = torch.arange(8) % CLASSES
    pixels = batch[:8].float() / 255
    dataset = SimpleNamespace(mean=torch.zeros(3), std=torch.ones(3))
    balls: tuple[tuple[Norm, str, float], ...] = (("Linf", "inf", 4 / 255), ("L2", "2", 3.0))
    for norm, constraint, eps in balls:
        how = Adversarial(norm=norm, eps=eps, steps=7, random_start=False, evaluation_mode=True, best_iterate=True)
        ours = how.learnt_from(net, pixels, labels, torch.Generator()).numpy()
        options = {"constraint": constraint, "eps": eps, "step_size": how.length, "iterations": 7}
        with patch.object(torch.Tensor, "cuda", lambda self: self):
            theirs = attacker.Attacker(net, dataset)(pixels, labels, **options).detach().numpy()
        yield compared(
            f"madry: the best of 7 steps, {norm} {eps:.3g}", MADRY, "8 photographs", 255 * ours, 255 * theirs
        )

    run = Run(network=Network(name="any"), recipe="madry", trained_on=["brightness", "contrast", "saturate"])
    pixels_of: Any = SimpleNamespace(size=SIZE, image=images.__getitem__)
    batches = TrainingBatches(pixels=pixels_of, recipe=Standard(), run=run)
    torch.manual_seed(5)
    ours = batches._augmented(range(8)).numpy()
    torch.manual_seed(5)
    theirs = torch.stack([255 * lighting.TRAIN_TRANSFORMS_IMAGENET(image) for image in images[:8]]).numpy()
    yield compared(
        "madry: crop, jitter and light", MADRY, "8 photographs", ours, theirs, "nothing: rounding of float32"
    )

    args = SimpleNamespace(
        lr=run.rate, momentum=0.9, weight_decay=1e-4, mixed_precision=0, custom_lr_multiplier=None, step_lr=50,
        step_lr_gamma=0.1,
    )  # fmt: skip
    optimizer, schedule = training.make_optimizer_and_schedule(args, network(), None, None)
    their_rates = []
    for _ in range(run.epochs or 0):
        their_rates += [optimizer.param_groups[0]["lr"]] * STEPS_PER_EPOCH
        optimizer.step()
        schedule.step()
    found = rates(**run.model_dump(include={"schedule", "decay_epochs", "rate", "epochs"}))
    yield compared("rate by step, recipe madry", MADRY, "200 epochs", found, np.array(their_rates))
    yield decayed("weight decay, recipe madry", MADRY, optimizer)


def fast_rows(program: Path) -> Iterator[Row]:
    """The parameters that locuslab's script decays: all but those of batch norm, which `undecayed` can name."""
    net = build_network(Network(source="torchvision", name="resnet50"), classes=1000, size=SIZE, edition=Path(), seed=0)
    lines = [line[4:] for line in (program / "main_fast.py").read_text().splitlines()]
    first = lines.index("param_to_moduleName = {}")
    known: dict[str, Any] = {"model": net}
    exec("\n".join([*lines[first : first + 4], *(each for each in lines if each.startswith("group"))]), known)
    ours = parameter_groups(net, ["bn", "downsample.1"])
    sizes = [[sum(each.numel() for each in group["params"]) for group in groups] for groups in (ours, known["groups"])]
    yield compared("decayed and undecayed weights", FAST, "ResNet-50", np.array(sizes[0]), np.array(sizes[1]))


def rates(**keys: Any) -> np.ndarray:
    """The rate of every step of a training."""
    settings = Optimization.model_validate(keys)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], settings.rate)
    steps = STEPS_PER_EPOCH * (settings.epochs or 0)
    scheduler = _scheduler(optimizer, settings, steps, STEPS_PER_EPOCH)
    found = []
    for step in range(steps):
        scheduler.step_update(step)
        found.append(optimizer.param_groups[0]["lr"])
    return np.array(found)


def decayed(measure: str, beside: str, theirs: torch.optim.Optimizer) -> Row:
    """The number of weights that decay, of the sample's network."""
    counts = [
        sum(each.numel() for group in groups for each in group["params"] if group.get("weight_decay", 1))
        for groups in (parameter_groups(network(), []), theirs.param_groups)
    ]
    return compared(measure, beside, "the sample's network", np.array(counts[:1]), np.array(counts[1:]))
