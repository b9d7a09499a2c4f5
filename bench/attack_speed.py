"""Attacks beside the programs that users would take otherwise: how many times their processor time ours takes.

Square and AutoAttack's fab-t beside fra31's code (as pyautoattack has it, the same but for its imports), boundary
beside foolbox, PGD and SPSA beside plain loops of torch that ask the network as often. Each pair has one network of
timm with random weights, in float64 and on one thread, and takes turns; of several rounds the fastest counts.
Brightness decides the class, so that all steps are taken, or that an attack succeeds at once where its row says so.

Then what the process of a device does for the file of a candidate, which others make beside a GPU.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from time import process_time

import numpy as np
import timm
import torch
from torch import Tensor, nn

from cleanset.images.preprocessing import PixelPlanes
from cleanset.plumbing.machine import available_cores
from cleanset.scoring.devices import device_of
from cleanset.scoring.differentiable import PixelNetwork, searching
from cleanset.studies.attacks.ascent import Answers, finished, projected
from cleanset.studies.attacks.autoattack import FIRST_SHARE, AutoAttackAttack, SquareAttack
from cleanset.studies.attacks.base import Known, Other, Result, Subject, globally_seeded, group_seed, to_unit
from cleanset.studies.attacks.boundary import BoundaryAttack, chosen_start
from cleanset.studies.attacks.candidate_files import Writers
from cleanset.studies.attacks.gradient_attacks import Adam, PgdAttack, SpsaAttack
from cleanset.studies.attacks.judge import unwritten
from measuring import print_machine, print_table

CPU = torch.device("cpu")
NETWORK = "test_efficientnet"
CLASSES = 12
SEED = 0
BATCH = 4
"""The batch size of scores on a CPU."""
SMALL = 1 / 255
LARGE = 64 / 255
FILE_SIDE = 224
FILES = 32
FILE_LIMIT = 2
"""Milliseconds: a tenth of what a file takes."""
LIMITS = {"square": 1.05, "boundary": 1.05, "fab-t, broken at once": 1.1, "fab-t": 1.1, "pgd": 1.05, "spsa": 1.05}


class Bright(nn.Module):
    """A network that puts bright images into class 0; it counts the images of its passes."""

    def __init__(self, name: str = NETWORK) -> None:
        super().__init__()
        torch.manual_seed(SEED)
        self.network = timm.create_model(name, num_classes=CLASSES).eval()
        self.forward_images = self.backward_images = 0

    def forward(self, pixels: Tensor) -> Tensor:
        self.forward_images += len(pixels)
        logits: Tensor = self.network(pixels)
        brightness = 1000 * (pixels.mean(dim=(1, 2, 3)) - 0.5)
        found = torch.cat((logits[:, :1] + brightness[:, None], logits[:, 1:]), dim=1)
        if found.requires_grad:
            found.register_hook(self._count)  # type: ignore[no-untyped-call]
        return found

    def _count(self, gradient: Tensor) -> None:
        self.backward_images += len(gradient)


@dataclass(frozen=True, kw_only=True)
class Case:
    """An attack and another program that does the same."""

    name: str
    beside: str
    ours: Callable[[], object]
    theirs: Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Processor seconds of a run, and the images of its forward and backward passes."""

    seconds: float
    forward: int
    backward: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(LIMITS))
    parser.add_argument("--side", type=int, default=64, help="pixels of an image")
    parser.add_argument("--steps", type=int, default=10, help="of attacks with a gradient; the others ask more")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    bright = Bright()
    network = PixelNetwork(bright, CPU, "float64", BATCH, query_size=device_of(CPU).query_size(BATCH))
    counting = network.get_submodule("_network")
    assert isinstance(counting, Bright)
    rows = []
    with searching("float64"):
        for case in cases(network, arguments.side, arguments.steps):
            if arguments.names and case.name not in arguments.names:
                continue
            rounds = [(taken(counting, case.ours), taken(counting, case.theirs)) for _ in range(arguments.rounds)]
            ours, theirs = (min(each, key=lambda run: run.seconds) for each in zip(*rounds, strict=True))
            rows.append(
                (
                    case.name,
                    case.beside,
                    *(f"{run.forward:,}; {run.backward:,}" for run in (ours, theirs)),
                    *(f"{run.seconds:.2f}" for run in (ours, theirs)),
                    f"{ours.seconds / theirs.seconds:.2f}",
                    f"{LIMITS[case.name]:g}",
                )
            )
    beside = [file_milliseconds(processes) for processes in (0, available_cores())]
    print_machine("torch", "timm", "pyautoattack", "foolbox")
    print_table(
        f"{NETWORK}, images of {arguments.side} pixels a side, {arguments.steps} steps, float64",
        ("attack", "beside", "passes", "theirs", "seconds", "theirs", "ratio", "limit"),
        rows,
    )
    print_table(
        f"Milliseconds that the process of a device takes for the file of a candidate of {FILE_SIDE} pixels a side",
        ("what", "found", "limit"),
        [
            ("made there, as on a CPU", f"{beside[0]:.1f}", ""),
            ("made by other processes, as beside a GPU", f"{beside[1]:.1f}", f"{FILE_LIMIT:g}"),
        ],
    )


def file_milliseconds(processes: int) -> float:
    """Processor time of this process for a file, while others make it or without any."""
    attack = PgdAttack(eps=8 / 255)
    random = np.random.default_rng(SEED)
    asked = []
    for number in range(FILES):
        one = subject(number, FILE_SIDE, 0.6)
        change = random.integers(-8, 9, one.pixels.shape)
        candidate = np.clip(one.pixels + change, 0, 255).astype(np.uint8)
        asked.append(unwritten(one, Result(candidate, 1), attack.ball))
    with Writers(processes) as writers:
        for begun in [writers.begin(each) for each in asked[:processes]]:
            begun()
        begin = process_time()
        for begun in [writers.begin(each) for each in asked]:
            begun()
        return (process_time() - begin) / FILES * 1000


def taken(counting: Bright, run: Callable[[], object]) -> Taken:
    """Run something."""
    counting.forward_images = counting.backward_images = 0
    begin = process_time()
    with redirect_stdout(StringIO()):
        run()
    return Taken(seconds=process_time() - begin, forward=counting.forward_images, backward=counting.backward_images)


def cases(network: PixelNetwork, side: int, steps: int) -> Iterator[Case]:
    """All attacks."""
    bright = [subject(number, side, 0.6) for number in range(16)]
    dark = [subject(number, side, 0.4) for number in range(20, 40)]
    others = {each.name: Other(each.class_index, partial(_pixels_of, each)) for each in dark}
    known = Known(SEED, lambda: others)
    square = SquareAttack(eps=SMALL, queries=10 * steps)
    yield Case(
        name="square",
        beside="fra31",
        ours=lambda: square.results(network, bright, known),
        theirs=lambda: their_square(network, bright, square),
    )
    boundary = BoundaryAttack(eps=0.1, queries=20 * steps, after=None)
    few = bright[: boundary.group]
    yield Case(
        name="boundary",
        beside="foolbox",
        ours=lambda: boundary.results(network, few, known),
        theirs=lambda: their_boundary(network, few, boundary, known),
    )
    for name, eps in (("fab-t, broken at once", LARGE), ("fab-t", SMALL)):
        fab = AutoAttackAttack(eps=eps, attacks=["fab-t"], steps=steps)
        yield Case(
            name=name,
            beside="fra31",
            ours=partial(fab.results, network, bright, known),
            theirs=partial(their_fab, network, bright, fab),
        )
    pgd = PgdAttack(eps=SMALL, steps=steps, max_steps=steps, losses=["margin"])
    yield Case(
        name="pgd",
        beside="a plain loop",
        ours=lambda: pgd.results(network, bright, known),
        theirs=lambda: plain_pgd(network, bright, pgd),
    )
    spsa = SpsaAttack(eps=SMALL, steps=steps // 2, after=None)
    yield Case(
        name="spsa",
        beside="a plain loop",
        ours=lambda: spsa.results(network, bright[:1], known),
        theirs=lambda: plain_spsa(network, bright[0], spsa),
    )


def subject(number: int, side: int, brightness: float) -> Subject:
    """An image of noise around a brightness."""
    values = np.random.default_rng(number).normal(brightness * 255, 40, (3, side, side))
    pixels = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return Subject(f"n0/{number}.JPEG", f"{number}", int(brightness < 0.5), pixels)


def _pixels_of(one: Subject) -> PixelPlanes:
    return one.pixels


def asked(network: PixelNetwork, group: Sequence[Subject]) -> tuple[Tensor, Tensor]:
    """The pixels and classes of a group, in the precision of pyautoattack."""
    return to_unit([each.pixels for each in group], network).float(), labels(group, network)


def labels(group: Sequence[Subject], network: PixelNetwork) -> Tensor:
    """The classes of a group, on the device of a network."""
    return torch.tensor([each.class_index for each in group], device=network.device)


def their_square(network: PixelNetwork, group: Sequence[Subject], attack: SquareAttack) -> None:
    """fra31's search, as its program calls it."""
    from pyautoattack.square import SquareAttack as TheirSquare

    with torch.no_grad():
        TheirSquare(
            network, n_queries=attack.queries, eps=attack.eps, p_init=FIRST_SHARE, seed=SEED, device=CPU
        ).perturb(*asked(network, group))


def their_fab(network: PixelNetwork, group: Sequence[Subject], attack: AutoAttackAttack) -> None:
    """fra31's program with one of its attacks."""
    import pyautoattack

    program = pyautoattack.AutoAttack(network, attacks=["fab-t"], version="custom", eps=attack.eps, seed=SEED)
    program.verbose = False
    program.fab.n_iter = attack.steps
    program.run_standard_evaluation(*asked(network, group), batch_size=len(group))


def their_boundary(network: PixelNetwork, group: Sequence[Subject], attack: BoundaryAttack, known: Known) -> None:
    """foolbox, for as many queries of each image."""
    from foolbox.attacks.boundary_attack import BoundaryAttack as TheirBoundary
    from foolbox.criteria import Misclassification
    from foolbox.models.pytorch import PyTorchModel

    # one asks for the start, and every tenth step for two
    steps = max(each for each in range(attack.queries) if 1 + each + each // 10 <= attack.queries)
    starts = [chosen_start(known.seed, each, known.others()) for each in group]
    with torch.no_grad(), globally_seeded(group_seed(attack, group, known), CPU):
        TheirBoundary(steps=steps).run(
            PyTorchModel(network, bounds=(0, 1), device=CPU),
            to_unit([each.pixels for each in group], network),
            Misclassification(labels(group, network)),
            starting_points=to_unit(starts, network),
        )


def plain_pgd(network: PixelNetwork, group: Sequence[Subject], attack: PgdAttack) -> None:
    """PGD in the way of tutorials, which ends with files in the ball as ours does."""
    images = to_unit([each.pixels for each in group], network)
    label = labels(group, network)
    places = images + torch.empty_like(images).uniform_(-attack.eps, attack.eps)
    answers = Answers(network=network, label=label)
    for _ in range(attack.steps):
        pixels = places.detach().requires_grad_()
        logits = network(pixels)
        others = logits.scatter(1, label[:, None], float("-inf")).max(dim=1).values
        (ascent,) = torch.autograd.grad((others - logits.gather(1, label[:, None])[:, 0]).sum(), pixels)
        places = projected(pixels.detach() + attack.length * ascent.sign(), images, "Linf", attack.eps)
    _, ascent = answers(places)
    finished(answers, [each.pixels for each in group], places, ascent, attack.ball, min(attack.files, attack.steps))


def plain_spsa(network: PixelNetwork, one: Subject, attack: SpsaAttack) -> None:
    """SPSA with Adam."""
    image = to_unit([one.pixels], network)[0]
    label = torch.full((attack.samples + 1,), one.class_index, device=network.device)
    found = image + torch.empty_like(image).uniform_(-attack.eps, attack.eps)
    half = attack.samples // 2
    adam = Adam(attack.learning_rate, found)
    with torch.inference_mode():
        for _ in range(attack.steps):
            signs = torch.randint(0, 2, (half, *image.shape), device=image.device).to(image.dtype) * 2 - 1
            logits = network(torch.cat((found + attack.delta * signs, found - attack.delta * signs, found[None])))
            others = logits.scatter(1, label[:, None], float("-inf")).max(dim=1).values
            margin = others - logits.gather(1, label[:, None])[:, 0]
            weights = (margin[:half] - margin[half:-1]) / (attack.samples * attack.delta)
            ascent = (weights[:, None, None, None] * signs).sum(dim=0)
            found = torch.clamp(found + adam.step(ascent), image - attack.eps, image + attack.eps).clamp(0, 1)


if __name__ == "__main__":
    main()
