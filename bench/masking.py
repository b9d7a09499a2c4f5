"""Limits of the signs of gradient masking: honest networks compared with masked ones.

Each network gets a row: how many of the images have a sign, how many withstand the probe's PGD (with a sign: bounds)
and an independent plain search through the network without its defence, the smallest share that its gradient keeps of
its promise, and the largest share of the changes by random steps that it does not explain (see `signs.MIN_KEPT` and
`MAX_UNEXPLAINED`). Honest networks: the sample's three trained ones, small architectures of timm with random weights,
and wrappers of the trained ones. Masked ones: the sample's `standard` behind a defence of the literature. Those of
`held_out` were made after the limits had been set, and see other images. Everything is drawn from a seed.

    python bench/masking.py            # all, 20 minutes on one core
    python bench/masking.py rounded    # those whose names begin so
    python bench/masking.py held-out   # those of held_out
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
import timm
import torch
from PIL import Image
from torch import Tensor, nn

from measuring import PROJECT, print_machine, print_table

sys.path.insert(0, str(PROJECT))

from cleanset.scoring.differentiable import PixelNetwork, searching
from cleanset.studies.attacks import probing
from cleanset.studies.attacks.base import Known, Subject, margins, to_unit
from cleanset.studies.attacks.gradient_attacks import PgdAttack
from cleanset.studies.attacks.warnings import trust_of
from docs import defences

SEED = 0
IMAGES = 5
SIDE = 96
"""Pixels a side: fewer than the networks are trained with, as searches take long on one core."""
TRAINED_SIDE = 160
"""Pixels a side of the sample's ViT, which takes no others."""
RADIUS = 4
"""Levels of the ball in which gradients are checked."""

TRAINED = ("standard", "norm_robust", "corruption_robust")
ARCHITECTURES = (
    "resnet10t", "resnet14t", "resnet18", "mobilenetv3_small_050", "mobilenetv3_small_100", "lcnet_050", "tinynet_e",
    "mnasnet_small", "mobilenetv2_035", "regnetx_002", "regnety_002", "ghostnet_050", "convnext_atto",
    "convnextv2_atto", "mobilevit_xxs", "edgenext_xx_small", "repvgg_a0", "dla46_c", "hardcorenas_a", "resnext26ts",
)  # fmt: skip
SIZED = ("vit_tiny_patch16_224", "deit_tiny_patch16_224", "mixer_s32_224", "resmlp_12_224", "xcit_nano_12_p16_224")
"""Architectures that are built for a size."""

Network = Callable[[], nn.Module]


class Around(nn.Module):
    """A network of the sample behind a step on the pixels, and before one on the logits."""

    def __init__(
        self,
        before: Callable[[Tensor], Tensor] | None = None,
        after: Callable[[Tensor], Tensor] | None = None,
        role: str = "standard",
    ) -> None:
        super().__init__()
        self.network = defences.Normalised(role)
        self._before = before
        self._after = after

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.network(pixels if self._before is None else self._before(pixels))
        return logits if self._after is None else self._after(logits)


class Rounded(nn.Module):
    """A network whose weights and layers are rounded to a narrower dtype, as on a GPU that computes in it.

    A CPU is slow in narrow dtypes: everything else is computed in the dtype of the pixels.
    """

    def __init__(self, network: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.network = network
        self._dtype = dtype
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.copy_(parameter.to(dtype))
        for module in network.modules():
            if not list(module.children()):
                module.register_forward_hook(self._rounded)

    def _rounded(self, module: nn.Module, given: object, output: Tensor) -> Tensor:
        exact = output.detach()
        return output + (exact.to(self._dtype).to(exact.dtype) - exact)

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.network(pixels)
        return logits


class Mean(nn.Module):
    """The mean of several networks' logits."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        return torch.stack([network(pixels) for network in self.networks]).mean(dim=0)


class Smoothed(nn.Module):
    """Randomized smoothing with the same noise on every image (J. Cohen and others 2019), of mean logits."""

    def __init__(self, network: nn.Module, copies: int = 4, deviation: float = 0.1) -> None:
        super().__init__()
        self.network = network
        generator = torch.Generator().manual_seed(SEED)
        self.noise = deviation * torch.randn((copies, 3, SIDE, SIDE), generator=generator)

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        return torch.stack([self.network(pixels + each.to(pixels)) for each in self.noise]).mean(dim=0)


def with_gradient(gradient: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A step that keeps the pixels, and makes of the gradient by them what the function makes of it."""

    def step(pixels: Tensor) -> Tensor:
        copied = pixels + 0
        if copied.requires_grad:
            copied.register_hook(gradient)  # type: ignore[no-untyped-call]
        return copied

    return step


def instead(change: Callable[[Tensor], Tensor], leak: float = 0.0) -> Callable[[Tensor], Tensor]:
    """A step without a gradient, but for a leak of it."""
    return lambda pixels: change(pixels.detach()) + leak * (pixels - pixels.detach())


def region(share: float) -> Callable[[Tensor], Tensor]:
    """1 in the middle of an image, 0 around it."""

    def mask(pixels: Tensor) -> Tensor:
        side = pixels.shape[-1]
        edge = round(side * (1 - share**0.5) / 2)
        found = torch.zeros_like(pixels)
        found[..., edge : side - edge, edge : side - edge] = 1
        return found

    return mask


def scattered(share: float) -> Callable[[Tensor], Tensor]:
    """1 at places that a seed scatters."""

    def mask(pixels: Tensor) -> Tensor:
        drawn = torch.rand(pixels.shape[1:], generator=torch.Generator().manual_seed(SEED))
        return (drawn < share).to(pixels)[None].expand_as(pixels)

    return mask


def masked(mask: Callable[[Tensor], Tensor], factor: float) -> Callable[[Tensor], Tensor]:
    """The gradient times a factor under a mask."""
    return with_gradient(lambda gradient: gradient * (1 + (factor - 1) * mask(gradient)))


def levels(number: int) -> Callable[[Tensor], Tensor]:
    """Pixels in a number of levels (W. Xu and others 2018)."""
    return lambda pixels: torch.round(pixels * (number - 1)) / (number - 1)


def median(pixels: Tensor) -> Tensor:
    """The median of 3 x 3 pixels."""
    padded = nn.functional.pad(pixels, (1, 1, 1, 1), mode="reflect")
    return padded.unfold(2, 3, 1).unfold(3, 3, 1).flatten(4).median(dim=-1).values


def blocks(pixels: Tensor, steps: int = 20) -> Tensor:
    """Blocks of 8 x 8 pixels with rounded frequencies, as of a JPEG (C. Guo and others 2018)."""
    place = torch.arange(8, dtype=pixels.dtype)
    basis = torch.cos(torch.pi / 8 * (place[None, :] + 0.5) * place[:, None]) / 2
    basis[0] /= 2**0.5
    parts = pixels.unfold(2, 8, 8).unfold(3, 8, 8)
    frequencies = torch.round(basis @ parts @ basis.T * steps) / steps
    found: Tensor = basis.T @ frequencies @ basis
    return found.permute(0, 1, 2, 4, 3, 5).reshape(pixels.shape)


def drawn_noise(pixels: Tensor) -> Tensor:
    """Noise, another whenever the model is asked."""
    return pixels + 0.05 * torch.randn_like(pixels)


def drawn_size(pixels: Tensor) -> Tensor:
    """Another size and padding whenever the model is asked (C. Xie and others 2018)."""
    side = int(torch.randint(SIDE - 24, SIDE, ()))
    left = int(torch.randint(0, SIDE - side + 1, ()))
    small = nn.functional.interpolate(pixels, (side, side), mode="bilinear")
    return nn.functional.pad(small, (left, SIDE - side - left, left, SIDE - side - left))


class OfClasses(Around):
    """A gradient times a factor for those images that get one of every third class."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        with torch.no_grad():
            chosen = self.network(pixels.detach()).argmax(dim=1) % 3 > 0
        factor = torch.where(chosen, self.factor, 1.0).to(pixels)[:, None, None, None]
        logits: Tensor = self.network(factor * pixels + (1 - factor) * pixels.detach())
        return logits


class Cheating(Around):
    """Other pixels where a gradient is wanted."""

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.network(pixels.flip(3) if pixels.requires_grad else pixels)
        return logits


MASKED: dict[str, Network] = {
    "rounded to 16 levels": lambda: Around(instead(levels(16))),
    "rounded to 8 levels, a leak": lambda: Around(instead(levels(8), 1e-9)),
    "blocks as of a JPEG": lambda: Around(instead(blocks)),
    "median, a roll leaks": lambda: Around(lambda pixels: instead(median)(pixels) + 1e-6 * _same(pixels).roll(9, 2)),
    "turned around": lambda: Around(with_gradient(lambda gradient: -gradient)),
    "noise in place of it": lambda: Around(with_gradient(_noise)),
    "middle 27 %: turned around": lambda: Around(masked(region(0.27), -1)),
    "scattered 40 %: 0": lambda: Around(masked(scattered(0.4), 0)),
    "one color turned around": lambda: Around(with_gradient(_one_color)),
    "2 of 3 classes: turned around": lambda: OfClasses(-1.0),
    "noise when asked": lambda: Around(drawn_noise),
    "size when asked": lambda: Around(drawn_size),
    "hashed noise": lambda: defences.Defended(defences.HashedNoise()),
    "logits times 1,000": lambda: Around(after=lambda logits: 1000 * logits),
    "probabilities": lambda: Around(after=lambda logits: logits.softmax(dim=1)),
    "one-hot": lambda: defences.OneHot(),
    "other pixels for a gradient": lambda: Cheating(),
}
"""The defences, by what they do to the gradient or to the answers."""


def _same(pixels: Tensor) -> Tensor:
    """0, with the gradient of the pixels."""
    return pixels - pixels.detach()


def _noise(gradient: Tensor) -> Tensor:
    drawn = torch.randn(gradient.shape[1:], generator=torch.Generator().manual_seed(SEED))
    return drawn.to(gradient)[None].expand_as(gradient) * gradient.abs().mean()


def _one_color(gradient: Tensor) -> Tensor:
    return gradient * torch.tensor([1.0, -1.0, 1.0]).to(gradient)[:, None, None]


def honest() -> Iterator[tuple[str, Network, int]]:
    """Name, network and side of the images of each honest network."""
    for role in TRAINED:
        yield role, partial(defences.Normalised, role), TRAINED_SIDE if role == "corruption_robust" else SIDE
    yield "float16", lambda: Rounded(defences.Normalised("standard"), torch.float16), SIDE
    yield "bfloat16", lambda: Rounded(defences.Normalised("standard"), torch.bfloat16), SIDE
    yield "ViT in float16", lambda: Rounded(defences.Normalised("corruption_robust"), torch.float16), TRAINED_SIDE
    yield "ViT in bfloat16", lambda: Rounded(defences.Normalised("corruption_robust"), torch.bfloat16), TRAINED_SIDE
    yield "smoothed", lambda: Smoothed(defences.Normalised("standard")), SIDE
    yield "ensemble of three", lambda: Mean([defences.Normalised(role) for role in TRAINED]), TRAINED_SIDE
    for name in ARCHITECTURES:
        yield name, partial(timm.create_model, name), SIDE
    for name in SIZED:
        yield name, partial(timm.create_model, name, img_size=SIDE), SIDE


@dataclass(frozen=True, slots=True)
class Row:
    """What the probe tells of a network on the images."""

    name: str
    with_sign: int
    """Images with a sign; all of them with one that is of the model. With a sign on more than half, none is trusted."""
    bounds: str
    """The images that withstand the probe's searches; untrusted ones may not."""
    own: int
    """The images that withstand a plain search through the network without its defence."""
    kept: float
    unexplained: float
    signs: str
    seconds: float


PGD = PgdAttack(eps=RADIUS / 255, steps=10, group=IMAGES)


def measured(name: str, network: nn.Module, side: int, undefended: nn.Module, first: int = 0) -> Row:
    """The probe's findings on a network from class `first`, and what a search without a defence leaves."""
    start = process_time()
    asked = PixelNetwork(network.eval(), torch.device("cpu"), "float32", 32)
    with searching("float32"):
        subjects = labelled(asked, side, first)
        found = probing.probe(asked, subjects, Known(SEED), PGD, [])
        near = probing.changes_at_places(asked, [subjects], RADIUS)
        own = withstood(asked, undefended.eval(), subjects)
    names = [subject.name for subject in subjects]
    files = {file for each in found.seen for file in each.images or names}
    broken = np.any([each.success for each in found.searches.values()] or [np.zeros(len(names), bool)], axis=0)
    trusted = ~broken & trust_of(found.seen, names).of(names)
    return Row(
        name=name,
        with_sign=len(files),
        bounds=f"{trusted.sum()} to {(~broken).sum()}" if files else str((~broken).sum()),
        own=own,
        kept=float(near.kept.min()),
        unexplained=float(np.nan_to_num(near.unexplained).max()),
        signs=", ".join(dict.fromkeys(each.sign for each in found.seen)),
        seconds=process_time() - start,
    )


def withstood(asked: PixelNetwork, undefended: nn.Module, subjects: Sequence[Subject], steps: int = 40) -> int:
    """The images that withstand steps along the sign of the margin's gradient, each of an eighth of the radius."""
    images = to_unit([subject.pixels for subject in subjects], asked)
    label = torch.tensor([subject.class_index for subject in subjects])
    places = images
    is_broken = torch.zeros(len(subjects), dtype=torch.bool)
    for _ in range(steps):
        places = places.detach().requires_grad_()
        margin = margins(undefended(places), label)
        (gradient,) = torch.autograd.grad(margin.sum(), places)
        change = (places + RADIUS / 8 / 255 * gradient.sign() - images).clamp(-RADIUS / 255, RADIUS / 255)
        places = (images + change).clamp(0, 1).detach()
        with torch.no_grad():
            is_broken |= asked(torch.round(places * 255) / 255).argmax(dim=1) != label
    return int((~is_broken).sum())


def labelled(network: PixelNetwork, side: int, first: int = 0) -> list[Subject]:
    """Images of the sample's set, starting with its class `first`, with the class that the network predicts."""
    found = []
    for place, path in enumerate(files(first)):
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BICUBIC)).transpose(2, 0, 1)
        with torch.no_grad():
            label = int(network(to_unit([pixels], network)).argmax())
        found.append(Subject(f"{place}.png", str(place), label, pixels))
    return found


def files(first: int) -> list[Path]:
    """Images of different classes."""
    folders = sorted(each for each in (PROJECT / "data" / "export" / "standard").iterdir() if each.is_dir())
    return [sorted(folder.iterdir())[0] for folder in folders[first : first + IMAGES]]


def main() -> None:
    """Print the table of honest and of masked networks."""
    import held_out

    wanted = tuple(sys.argv[1:])
    torch.set_num_threads(1)
    listed = [("honest", *each, 0) for each in honest()]
    listed += [("masked", name, network, SIDE, 0) for name, network in MASKED.items()]
    listed += [("honest", f"held-out: {name}", network, side, IMAGES) for name, network, side in held_out.honest()]
    listed += [("masked", f"held-out: {name}", network, side, IMAGES) for name, network, side in held_out.masked()]
    rows = []
    for kind, name, make, side, first in listed:
        if wanted and not name.startswith(wanted):
            continue
        torch.manual_seed(SEED)
        network = make()
        undefended = network if kind == "honest" else network.get_submodule("network")
        row = measured(name, network, side, undefended, first)
        rows.append((kind, row))
        print(kind, row, flush=True)
    print_machine("torch", "timm")
    print_table(
        "Honest and masked networks",
        ("kind", "network", f"sign, of {IMAGES}", "withstand", "own search", "kept", "unexplained", "signs"),
        [
            (
                kind,
                row.name,
                str(row.with_sign),
                row.bounds,
                str(row.own),
                f"{row.kept:.2f}",
                f"{row.unexplained:.2f}",
                row.signs,
            )
            for kind, row in rows
        ],
    )


if __name__ == "__main__":
    main()
