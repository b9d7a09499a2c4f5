"""The attacks of the unrestricted-examples kit beside ours: the spatial grid's images, SPSA, and boundary.

The kit runs with torchvision 0.2.1, cleverhans 2.1 and foolbox 1.5 as they are. Of TensorFlow there is only what
cleverhans' SPSA calls, in numpy. SPSA and boundary attack a small random network, on a quarter of each side's pixels.
"""

import collections
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import PIL
import torch
from PIL import Image

from authors.rows import Row, compared
from cleanset.images.preprocessing import base_image
from cleanset.plumbing.files import sha256
from cleanset.scoring.differentiable import PixelNetwork
from cleanset.studies.attacks.base import Ball, Known, Subject, globally_seeded, seed_of, to_unit
from cleanset.studies.attacks.boundary import keep_nearest
from cleanset.studies.attacks.changes import SpatialGridAttack, moved_by_pillow, scaled_on_black
from cleanset.studies.attacks.gradient_attacks import SpsaAttack, random_signs

OLD = ("torchvision", "cleverhans", "foolbox", "unrestricted_advex")
ABSTRACT = ("Iterable", "Sequence")
KIT = "the kit's code"
LIMITS = (18, 18, 30)
GRID = (5, 5, 31)
BORDER = 0.15
EVERY = 29
"""Of the grid's 775 changes every 29th is made: 27, with all values of each parameter but four of the 31."""
STEPS = 60
ITERATIONS = 300
ATTACKED = 4
RADIUS = 10


def rows(programs: Path, photographs: list[Path]) -> Iterator[Row]:
    """The grid's combinations and images, SPSA's images and queries, boundary's distances."""
    images = [base_image(Image.open(path)).transpose(2, 0, 1) for path in photographs]
    subjects = [Subject(path.name, path.stem, 0, image) for path, image in zip(photographs, images, strict=True)]
    network = _network()
    small = [_small(network, one) for one in subjects]
    with _kit(programs) as attacks:
        yield from _spatial(attacks, subjects)
        yield from _spsa(network, small, sys.modules["tensorflow"])
        of_kit = _boundary_of_kit(attacks, network, small[:ATTACKED])
    yield from _boundary(network, small[:ATTACKED], of_kit)


@contextmanager
def _kit(programs: Path) -> Iterator[ModuleType]:
    """The kit's module of attacks, with the old libraries in place of the installed ones."""
    stubs: dict[str, Any] = {
        "tensorflow": _tensorflow(),
        "imagenet_c": mock.MagicMock(),
        "randomgen": SimpleNamespace(RandomGenerator=_Generator, Xoroshiro128=lambda seed: seed),
    }
    folders = ("unrestricted-adversarial-examples/unrestricted-advex", "torchvision-0.2.1", "cleverhans-2.1.0")
    paths = [str(programs / folder) for folder in (*folders, "foolbox-1.5.0")]
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] not in OLD}
    with (
        mock.patch.dict(sys.modules, {**kept, **stubs}, clear=True),
        mock.patch.object(sys, "path", paths + sys.path),
        # names that Python, numpy and Pillow had then
        mock.patch.multiple(np, create=True, int=int, bool=np.bool_, NINF=-np.inf),
        mock.patch.object(PIL, "PILLOW_VERSION", "5.4.1", create=True),
        mock.patch.multiple(collections, create=True, **{name: getattr(collections.abc, name) for name in ABSTRACT}),
        redirect_stdout(StringIO()),
    ):
        found = import_module("unrestricted_advex.attacks")
        with redirect_stdout(sys.__stdout__):
            yield found


def _spatial(attacks: ModuleType, subjects: list[Subject]) -> Iterator[Row]:
    """Combinations: what the kit hands to its function. Images: of the same changes."""
    asked = list[tuple[float, ...]]()

    class Pool:
        def __init__(self, _: int) -> None:
            pass

        def map(self, _: object, arguments: list[Any]) -> list[Any]:
            asked.extend((dx, dy, angle) for _, angle, dx, dy, _ in arguments)
            return [each[0] for each in arguments]

    with mock.patch.object(attacks.multiprocessing, "Pool", Pool):
        grid = attacks.SimpleSpatialAttack(LIMITS, GRID, BORDER)
        grid(lambda images: np.zeros((len(images), 2)), np.zeros((1, 2, 2, 3)), np.zeros(1))
    ours = SpatialGridAttack(definition="as_coded").changes()
    yield compared("spatial_grid, as_coded: dx, dy, angle", KIT, "its grid", np.array(ours), np.array(asked))
    pairs = []
    for one, (dx, dy, angle) in itertools.product(subjects, ours[::EVERY]):
        image = Image.fromarray(scaled_on_black(one.pixels, 158 / 224).transpose(1, 2, 0).copy())
        theirs = attacks.apply_transformation(one.pixels.transpose(1, 2, 0) / np.float32(255), angle, dx, dy, BORDER)
        pairs.append((moved_by_pillow(image, dx, dy, angle), np.rint(theirs * 255).transpose(2, 0, 1)))
    ours_made, theirs_made = (np.stack(each).astype(np.uint8) for each in zip(*pairs, strict=True))
    digest = f"SHA-256 of theirs {sha256(theirs_made.tobytes())[:16]}…"
    on = f"{len(subjects)} photographs, every {EVERY}th change"
    yield compared("spatial_grid, as_coded: images", KIT, on, ours_made, theirs_made, digest)


def _network() -> PixelNetwork:
    """A random network of two classes, to which an image's negative is of the other class."""
    torch.manual_seed(1)
    first = torch.nn.Linear(588, 64)
    second = torch.nn.Linear(64, 2, bias=False)
    with torch.no_grad():
        first.bias.copy_(-first.weight.sum(dim=1) / 2)
        second.weight *= 8
    layers = torch.nn.AvgPool2d(4), torch.nn.Flatten(), first, torch.nn.Tanh(), second
    return PixelNetwork(torch.nn.Sequential(*layers).eval(), torch.device("cpu"), "float64", 65)


def _small(network: PixelNetwork, one: Subject) -> Subject:
    """A quarter of each side's pixels, with the class that the network predicts."""
    pixels = np.ascontiguousarray(one.pixels[:, ::4, ::4])
    with torch.no_grad():
        return Subject(one.name, one.image_id, int(network(to_unit([pixels], network)).argmax()), pixels)


def _spsa(network: PixelNetwork, subjects: list[Subject], tensorflow: Any) -> Iterator[Row]:
    """Candidates and queries with the same start and the same signs."""
    attack = SpsaAttack(steps=STEPS, after=None)
    program: Any = import_module("cleverhans.attacks_tf")
    pairs = []
    queries = []
    for one in subjects:
        result = attack.result(network, one, Known(0))
        center = to_unit([one.pixels], network)[0]
        generator = torch.Generator().manual_seed(seed_of(0, "attack", "spsa", one.image_id))

        def draw(shape: Any, minval: float, center: Any = center, generator: Any = generator, **_: Any) -> Any:
            if minval == -attack.eps:
                drawn = torch.rand(center.shape, generator=generator, dtype=center.dtype)[None] * 2 - 1
            else:
                drawn = random_signs(int(shape[0]), center, generator)
            return (drawn.numpy().transpose(0, 2, 3, 1) * -minval).view(_Array)

        def loss(images: Any, label: Any) -> Any:
            with torch.no_grad():
                logits = network(torch.from_numpy(np.asarray(images).transpose(0, 3, 1, 2).copy())).numpy()
            return -program.margin_logit_loss(logits, label, num_classes=2)

        before = network.queries
        tensorflow.random_uniform = draw
        image = center.numpy().transpose(1, 2, 0)[None].view(_Array)
        optimizer = program.SPSAAdam(lr=attack.learning_rate, delta=attack.delta, num_samples=attack.samples)
        found = program.pgd_attack(
            loss, image, np.array([one.class_index]), attack.eps, STEPS, optimizer, early_stop_loss_threshold=-1.0
        )
        pairs.append((result.candidate, np.rint(np.asarray(found)[0] * 255).transpose(2, 0, 1)))
        queries.append((result.queries, network.queries - before))
    on = f"{len(subjects)} photographs, {STEPS} steps"
    ours, theirs = (np.stack(each) for each in zip(*pairs, strict=True))
    yield compared("spsa: images", "cleverhans 2.1", on, ours, theirs)
    ours, theirs = (np.array(each) for each in zip(*queries, strict=True))
    yield compared("spsa: queries", "cleverhans 2.1", on, ours, theirs, f"theirs {theirs.tolist()}")


def _boundary_of_kit(
    attacks: ModuleType, network: PixelNetwork, subjects: list[Subject]
) -> list[tuple[int, float, float]]:
    """Queries, L2 after them, and queries until the threshold, by the kit's attack; the start is the negative."""
    found = list[tuple[int, float, float]]()
    for one in subjects:
        image = (one.pixels.transpose(1, 2, 0) / 255).astype(np.float32)
        asked = [0]
        reached = [np.nan]

        def model(
            images: Any, image: Any = image, label: int = one.class_index, asked: Any = asked, reached: Any = reached
        ) -> Any:
            with torch.no_grad():
                logits = network(torch.from_numpy(images.transpose(0, 3, 1, 2).astype(np.float64))).numpy()
            asked[0] += len(images)
            near = np.sqrt(((images - image) ** 2).sum(axis=(1, 2, 3))) <= RADIUS
            if np.isnan(reached[0]) and (near & (logits.argmax(axis=1) != label)).any():
                reached[0] = asked[0]
            return logits

        attack = attacks.BoundaryAttack(model, image.shape, 0, {1 - one.class_index: [1 - image]})
        # neither its threshold nor its projection, and fewer than foolbox's 5,000 steps
        attack.max_l2_distortion, attack.attack = np.inf, partial(attack.attack, iterations=ITERATIONS)
        candidate = attack(model, image[None], np.array([one.class_index]))[0]
        # all queries where it does not get there, as ours
        found.append((asked[0], float(np.linalg.norm(candidate - image)), np.nan_to_num(reached[0], nan=asked[0])))
    return found


def _boundary(network: PixelNetwork, subjects: list[Subject], of_kit: list[tuple[int, float, float]]) -> Iterator[Row]:
    """L2 after as many queries as the kit's attack asked, and how many each asks until the threshold."""
    from foolbox.attacks.boundary_attack import BoundaryAttack
    from foolbox.criteria import Misclassification
    from foolbox.models.pytorch import PyTorchModel

    ours = []
    for one, (queries, _, _) in zip(subjects, of_kit, strict=True):
        image = to_unit([one.pixels], network)
        label = torch.tensor([one.class_index])
        for radius in (0.0, RADIUS):
            nearest = keep_nearest(network, image, label, Ball("L2", radius), queries)
            model = PyTorchModel(nearest, bounds=(0, 1), device=network.device)
            with torch.no_grad(), globally_seeded(1, network.device), suppress(Exception):
                BoundaryAttack(steps=queries).run(model, image, Misclassification(label), starting_points=1 - image)
            ours.append((float(torch.linalg.vector_norm(nearest.found - image)), int(nearest.queries[0])))
    theirs = np.array(of_kit)
    on = f"{len(subjects)} photographs, {ITERATIONS} steps: {int(theirs[:, 0].mean()):,} queries each"
    distances = np.array([distance for distance, _ in ours[::2]])
    asked = np.array([count for _, count in ours[1::2]])
    shown = f"means: ours {distances.mean():.2f}, theirs {theirs[:, 1].mean():.2f}"
    yield compared("boundary: L2 after as many queries", "foolbox 1.5", on, distances, theirs[:, 1], shown)
    shown = f"means: ours {asked.mean():,.0f}, theirs {theirs[:, 2].mean():,.0f}"
    yield compared(f"boundary: queries until L2 {RADIUS:g}", "foolbox 1.5", on, asked, theirs[:, 2], shown)


class _Generator:
    """The random numbers of randomgen, which foolbox imports, from numpy."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def standard_normal(self, size: tuple[int, ...], dtype: Any) -> np.ndarray:
        return self._generator.standard_normal(size, dtype)


class _Array(np.ndarray):
    """An array with the one method of tensors that cleverhans calls."""

    def get_shape(self) -> SimpleNamespace:
        return SimpleNamespace(as_list=lambda: list(self.shape))


class _Written(list[Any]):
    """A TensorArray."""

    def write(self, _: int, value: Any) -> "_Written":
        self.append(value)
        return self

    def stack(self) -> Any:
        return np.stack(self)


def _while_loop(cond: Any, body: Any, loop_vars: list[Any], **_: Any) -> list[Any]:
    while cond(*loop_vars):
        loop_vars = list(body(*loop_vars))
    return loop_vars


def _tensorflow() -> Any:
    """What cleverhans' SPSA calls of TensorFlow, in numpy."""
    found = mock.MagicMock(unsafe=True)
    for name in ("zeros_like", "sqrt", "sign", "reshape", "expand_dims", "concatenate", "shape"):
        setattr(found, name, getattr(np, name))
    found.concat = np.concatenate
    found.pow = np.power
    found.clip_by_value = np.clip
    found.less = np.less
    found.reduce_mean = np.mean
    found.reduce_sum = np.sum
    found.reduce_max = np.max
    found.identity = found.constant = found.stop_gradient = lambda value: value
    found.cond = lambda condition, first, second: (first if condition else second)()
    found.one_hot = lambda label, depth, axis: np.eye(depth)[label]
    found.while_loop = _while_loop
    found.TensorArray = lambda **_: _Written()
    nest = found.contrib.framework.nest
    # sorted by key, as TensorFlow does
    nest.flatten = lambda state: [*state["m"], state["t"], *state["u"]]
    nest.pack_sequence_as = lambda structure, flat_sequence: {
        "m": flat_sequence[:1], "t": flat_sequence[1], "u": flat_sequence[2:]
    }  # fmt: skip
    return found
