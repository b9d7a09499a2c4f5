"""The attacks against the forward pass of as many images, and boundary against foolbox alone: ratios of one run."""

import sys
from collections.abc import Callable, Sequence
from time import perf_counter, process_time

import numpy as np
import timm
import torch
from torch import Tensor

from cleanset.edition.params import Precision
from cleanset.images.codec import decode
from cleanset.images.preprocessing import base_image
from cleanset.scoring.devices import CPU_BATCH_SIZE
from cleanset.scoring.differentiable import PixelNetwork, searching
from cleanset.scoring.models import Normalise
from cleanset.studies.attacks.base import Known, Other, Parameters, Subject, globally_seeded, to_unit
from cleanset.studies.attacks.changes import SpatialGridAttack
from cleanset.studies.attacks.gradient_attacks import SpsaAttack
from cleanset.studies.attacks.library_attacks import BoundaryAttack, chosen_start, group_seed
from export import photographs_or_drawings
from measuring import print_machine, print_table, share

LIMITS = {"spatial_grid": 1.15, "spsa": 1.1, "boundary": 1.2}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ON_GPU = ("resnet50", "tf32", 100, 256)
ON_CPU = ("efficientnet_lite0", "float32", 4, CPU_BATCH_SIZE)
"""Network with random weights, precision, images, images at a time."""
STEPS, BOUNDARY_STEPS = {"cpu": 1, "cuda": 10}, {"cpu": 20, "cuda": 200}
"""Steps of SPSA and boundary, by device; boundary asks 1.1 queries a step, and 3 before."""
ANGLES = {"cpu": 1, "cuda": 31}
"""Angles of the grid's rotations."""
ROUNDS = 3


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name, precision, count, batch_size = ON_GPU if device.type == "cuda" else ON_CPU
    torch.manual_seed(0)
    source, photographs = photographs_or_drawings()
    images = [base_image(decode(photographs[number % len(photographs)])).transpose(2, 0, 1) for number in range(count)]
    layers = torch.nn.Sequential(Normalise(MEAN, STD), varied(timm.create_model(name), images[0]))
    network = PixelNetwork(layers, device, as_precision(precision), batch_size)
    subjects = [
        Subject(f"{number}", f"ILSVRC2012_val_{number:08d}", classify(network, image), image)
        for number, image in enumerate(images)
    ]
    with searching(network.precision):
        rows = [measured(network, attack, subjects) for attack in attacks(len(subjects), device.type)]
    print_machine("torch", "foolbox", "timm")
    print_table(
        f"{name} in {precision} on {device.type}, {count} images ({source}), median of {ROUNDS}",
        ("attack", "queries an image", "seconds", "compared with", "ratio", "limit"),
        rows,
    )
    sys.exit(any(float(row[4]) > float(row[5]) for row in rows))


def as_precision(name: str) -> Precision:
    return "tf32" if name == "tf32" else "float32"


def varied(network: torch.nn.Module, image: np.ndarray) -> torch.nn.Module:
    """The network, its last layer moved so that not all images get the same class."""
    layer = network.eval().get_classifier()  # type: ignore[operator]
    pixels = torch.from_numpy(np.stack((image, 255 - image))) / 255
    with torch.no_grad():
        features = network.forward_features(pixels)  # type: ignore[operator]
        layer.bias -= layer.weight @ network.forward_head(features, pre_logits=True).mean(dim=0)  # type: ignore[operator]
    return network


def classify(network: PixelNetwork, image: np.ndarray) -> int:
    with torch.inference_mode():
        return int(network(to_unit([image], network)).argmax())


def attacks(count: int, device: str) -> list[Parameters]:
    """The three attacks with few steps; SPSA's margin is so large that it never stops at a success."""
    return [
        SpatialGridAttack(angles=np.linspace(30, -30, ANGLES[device]).tolist()),
        SpsaAttack(steps=STEPS[device], stop_margin=1e9, after=None),
        # so small a ball that the search goes on to its end
        BoundaryAttack(queries=3 + BOUNDARY_STEPS[device] * 11 // 10, eps=1 / 255, group=count, after=None),
    ]


def known_of(subjects: Sequence[Subject]) -> Known:
    """The seed, and the negatives of the images to start from."""
    others = {f"negative {one.name}": Other(-1, lambda one=one: 255 - one.pixels) for one in subjects}  # type: ignore[misc]
    return Known(0, lambda: others)


def measured(network: PixelNetwork, attack: Parameters, subjects: Sequence[Subject]) -> tuple[str, ...]:
    """Time an attack and its counterpart in turn, so that both meet the same load of the machine."""
    before = network.queries
    searched(network, attack, subjects)
    queries = network.queries - before

    def compare() -> None:
        if isinstance(attack, BoundaryAttack):
            foolbox_alone(network, attack, subjects)
        else:
            forward(network, queries, subjects[0].pixels.shape)

    pairs = [
        (seconds(network, lambda: searched(network, attack, subjects)), seconds(network, compare))
        for _ in range(ROUNDS)
    ]
    own, other = (float(np.median(each)) for each in zip(*pairs, strict=True))
    compared = "foolbox alone" if isinstance(attack, BoundaryAttack) else "as many forward"
    each = f"{queries / len(subjects):,.0f}"
    return attack.kind, each, f"{own:.1f}", f"{compared} {other:.1f}", share(own, other), f"{LIMITS[attack.kind]:.2f}"


def searched(network: PixelNetwork, attack: Parameters, subjects: Sequence[Subject]) -> None:
    for start in range(0, len(subjects), attack.group_size):
        attack.results(network, subjects[start : start + attack.group_size], known_of(subjects))


def forward(network: PixelNetwork, count: int, shape: tuple[int, ...]) -> None:
    """The forward pass alone, in batches of the same size."""
    pixels: Tensor = torch.rand((network.batch_size, *shape), device=network.device)
    with torch.inference_mode():
        for _ in range(count // network.batch_size):
            network(pixels)
        if rest := count % network.batch_size:
            network(pixels[:rest])


def foolbox_alone(network: PixelNetwork, attack: BoundaryAttack, subjects: Sequence[Subject]) -> None:
    """The library on the same groups, with the same starts and random numbers."""
    from foolbox.attacks.boundary_attack import BoundaryAttack as FoolboxAttack
    from foolbox.models.pytorch import PyTorchModel

    images = to_unit([subject.pixels for subject in subjects], network)
    known = known_of(subjects)
    starts = to_unit([chosen_start(known.seed, subject, known.others()) for subject in subjects], network)
    labels = torch.tensor([subject.class_index for subject in subjects], device=network.device)
    with torch.no_grad(), globally_seeded(group_seed(attack, subjects, known), network.device):
        model = PyTorchModel(network, bounds=(0, 1), device=network.device)
        FoolboxAttack(steps=BOUNDARY_STEPS[network.device.type]).run(model, images, labels, starting_points=starts)


def seconds(network: PixelNetwork, work: Callable[[], object]) -> float:
    """Processor seconds on a CPU, which other work hardly lengthens; wall-clock seconds on a GPU."""
    clock = process_time if network.device.type == "cpu" else perf_counter
    before = clock()
    work()
    if network.device.type == "cuda":
        torch.cuda.synchronize()
    return clock() - before


if __name__ == "__main__":
    main()
