"""Attacks in a ball beside other programs: PGD, APGD and Square Attack on photographs, at five radii of each norm.

The sample's `standard` is attacked, which is small, in float32; the class to leave is the one that it predicts. What
another program returns becomes a file by rounding to levels of 8 bits, after as little of its change is taken back as
brings the file into the ball; ours are such files. All have the same numbers of steps and queries and one start; ours
goes on where it still gains.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from authors.rows import Row
from measuring import PROJECT

sys.path.insert(0, str(PROJECT))

from cleanset.images.preprocessing import PixelPlanes, base_image
from cleanset.scoring.differentiable import PixelNetwork, searching
from cleanset.studies.attacks.autoattack import AutoAttackAttack, SquareAttack
from cleanset.studies.attacks.balls import Ball, Norm
from cleanset.studies.attacks.base import InBall, Known, Subject, globally_seeded, margins, to_unit
from cleanset.studies.attacks.gradient_attacks import PgdAttack
from cleanset.studies.attacks.tries import groups_of
from docs import defences

PHOTOGRAPHS = 40
GROUP = 8
STEPS = 10
APGD_STEPS = 20
QUERIES = 50
RADII: dict[Norm, tuple[float, ...]] = {"Linf": (1, 2, 3, 4, 8), "L2": (0.05, 0.1, 0.2, 0.5, 1)}
"""Linf in levels of 8 bits, L2 of pixels in 0..1."""
SEED = 1
HALVINGS = 12
Search = Callable[[Tensor, Tensor], Tensor]
"""Another program's attack: images in 0..1 and their classes, to what it returns for them."""


@dataclass(frozen=True, slots=True)
class Compared:
    """An attack of ours, and the same one of other programs by their names."""

    name: str
    ours: InBall
    theirs: dict[str, Search]


@dataclass(frozen=True, slots=True)
class Found:
    """The margins of the files that an attack leads to; above 0 an image is misclassified."""

    margins: np.ndarray

    @property
    def broken(self) -> np.ndarray:
        """Whether each image is misclassified."""
        return self.margins > 0


def rows(programs: Path, photographs: list[Path]) -> Iterator[Row]:
    """A row for each attack, norm and radius: on how many images ours and the best of the others do not agree."""
    paths = sorted(photographs[0].parent.glob("*.JPEG"))[:PHOTOGRAPHS]
    network = _network()
    subjects = [_subject(network, path) for path in paths]
    with searching("float32"):
        for norm, radii in RADII.items():
            for radius in radii:
                ball = Ball(norm, radius / 255 if norm == "Linf" else radius)
                for compared in _attacks(programs, network, ball):
                    yield _row(network, subjects, ball, f"{norm} {radius:g}", compared)


def _network() -> PixelNetwork:
    """The sample's `standard`, from pixels in 0..1."""
    return PixelNetwork(defences.Normalised("standard").eval(), torch.device("cpu"), "float32", GROUP)


def _subject(network: PixelNetwork, path: Path) -> Subject:
    """Every second pixel of a photograph each way, with the class that the network predicts."""
    pixels = np.ascontiguousarray(base_image(Image.open(path)).transpose(2, 0, 1)[:, ::2, ::2])
    with torch.no_grad():
        return Subject(path.name, path.stem, int(network(to_unit([pixels], network)).argmax()), pixels)


def _attacks(programs: Path, network: PixelNetwork, ball: Ball) -> Iterator[Compared]:
    """PGD beside foolbox and torchattacks, APGD and Square Attack beside their authors' own program."""
    norm, eps = ball.norm, ball.eps
    yield Compared(
        f"pgd, {STEPS} steps",
        PgdAttack(norm=norm, eps=eps, steps=STEPS, group=GROUP),
        {
            "foolbox 3": partial(_foolbox, network, ball),
            "torchattacks 3.5.1": partial(_torchattacks, programs, network, ball),
        },
    )
    yield Compared(
        f"autoattack: apgd-ce, {APGD_STEPS} steps",
        AutoAttackAttack(norm=norm, eps=eps, attacks=["apgd-ce"], steps=APGD_STEPS, group=GROUP),
        {"fra31/auto-attack": partial(_apgd, programs, network, ball)},
    )
    yield Compared(
        f"square, {QUERIES} queries",
        SquareAttack(norm=norm, eps=eps, queries=QUERIES, group=GROUP),
        {"fra31/auto-attack": partial(_square, programs, network, ball)},
    )


def _row(network: PixelNetwork, subjects: Sequence[Subject], ball: Ball, where: str, compared: Compared) -> Row:
    ours = Found(np.concatenate([_ours(network, group, compared.ours) for group in groups_of(subjects, GROUP)]))
    theirs = {
        name: Found(np.concatenate([_theirs(network, group, ball, search) for group in groups_of(subjects, GROUP)]))
        for name, search in compared.theirs.items()
    }
    best = max(theirs, key=lambda name: (theirs[name].broken.sum(), theirs[name].margins.mean()))
    counts = ", ".join(
        f"{name} {found.broken.sum()} (margin {found.margins.mean():.2f})"
        for name, found in {"ours": ours, **theirs}.items()
    )
    return Row(
        measure=f"{compared.name}, {where}: misclassified files in the ball",
        beside=", ".join(theirs),
        on=f"{len(subjects)} photographs of 112 x 112 pixels",
        values=len(subjects),
        differing=int((ours.broken != theirs[best].broken).sum()),
        largest=float(max(0, theirs[best].broken.sum() - ours.broken.sum())),
        moves=counts,
    )


def _ours(network: PixelNetwork, group: Sequence[Subject], attack: InBall) -> np.ndarray:
    found = attack.results(network, group, Known(SEED))
    return _margins(network, group, [result.candidate for result in found])


def _theirs(network: PixelNetwork, group: Sequence[Subject], ball: Ball, search: Search) -> np.ndarray:
    """The margins of the files that another program leads to."""
    images = to_unit([each.pixels for each in group], network)
    label = torch.tensor([each.class_index for each in group])
    with globally_seeded(SEED, network.device), redirect_stdout(StringIO()):
        returned = search(images, label).detach()
    files = [_in_ball(each.pixels, one * 255, ball) for each, one in zip(group, returned.numpy(), strict=True)]
    return _margins(network, group, files)


def _in_ball(center: PixelPlanes, place: np.ndarray, ball: Ball) -> PixelPlanes:
    """The file of a place, in levels; where that leaves the ball, of the farthest place before it that does not."""
    low, high = 0.0, 1.0
    file: PixelPlanes = np.rint(place).astype(np.uint8)
    if ball.contains(center, file):
        return file
    file = center
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        nearer = np.rint(center + middle * (place - center)).astype(np.uint8)
        if ball.contains(center, nearer):
            low, file = middle, nearer
        else:
            high = middle
    return file


def _margins(network: PixelNetwork, group: Sequence[Subject], files: Sequence[PixelPlanes]) -> np.ndarray:
    with torch.no_grad():
        logits = network(to_unit(files, network))
    return margins(logits, torch.tensor([each.class_index for each in group])).numpy()


def _foolbox(network: PixelNetwork, ball: Ball, images: Tensor, label: Tensor) -> Tensor:
    from foolbox.attacks import projected_gradient_descent as pgd
    from foolbox.models.pytorch import PyTorchModel

    kind = pgd.LinfProjectedGradientDescentAttack if ball.norm == "Linf" else pgd.L2ProjectedGradientDescentAttack
    model = PyTorchModel(network, bounds=(0, 1), device=network.device)
    _, clipped, _ = kind(rel_stepsize=0.25, steps=STEPS)(model, images, label, epsilons=ball.eps)
    found: Tensor = clipped
    return found


def _torchattacks(programs: Path, network: PixelNetwork, ball: Ball, images: Tensor, label: Tensor) -> Tensor:
    with _from(programs / "torchattacks-3.5.1"):
        of = import_module("torchattacks.attacks." + ("pgd" if ball.norm == "Linf" else "pgdl2"))
        kind = of.PGD if ball.norm == "Linf" else of.PGDL2
        found: Tensor = kind(network, eps=ball.eps, alpha=ball.eps / 4, steps=STEPS)(images, label)
    return found


def _apgd(programs: Path, network: PixelNetwork, ball: Ball, images: Tensor, label: Tensor) -> Tensor:
    with _from(programs / "auto-attack"):
        kind = import_module("autoattack.autopgd_base").APGDAttack
        attack = kind(network, n_iter=APGD_STEPS, norm=ball.norm, eps=ball.eps, seed=SEED, device=network.device)
        found: Tensor = attack.perturb(images, label)
    return found


def _square(programs: Path, network: PixelNetwork, ball: Ball, images: Tensor, label: Tensor) -> Tensor:
    with _from(programs / "auto-attack"), torch.no_grad():
        kind = import_module("autoattack.square").SquareAttack
        options: dict[str, Any] = {"p_init": 0.8, "resc_schedule": True, "seed": SEED, "device": network.device}
        attack = kind(network, norm=ball.norm, n_queries=QUERIES, eps=ball.eps, **options)
        found: Tensor = attack.perturb(images, label)
    return found


@contextmanager
def _from(folder: Path) -> Iterator[None]:
    """Import from a folder first."""
    with mock.patch.object(sys, "path", [str(folder), *sys.path]):
        yield
