"""Networks as differentiable functions of pixels in 0..1, for attacks, and the networks that wrap a model's own.

`PixelNetwork` computes on one device in one precision; `GroupedNetwork` replaces the classes by groups of them, and
`Uninteresting` is a defense by gradient masking.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from cleanset.edition.params import Precision
from cleanset.errors import CleansetError
from cleanset.scoring.devices import CPU_BATCH_SIZE, device_of
from cleanset.scoring.scorer import DTYPES, arithmetic

# standard deviation, in 0..1, of the noise of the uninteresting defense: Unrestricted Adversarial Examples, appendix E
DEFENCE_NOISE = 0.05


class PixelNetwork(nn.Module):
    """A copy of a network on one device: pixels in 0..1, float of shape (n, 3, size, size), to logits (n, classes).

    Normalization is inside. Logits have the dtype of the pixels; gradients flow to the pixels, never to weights.
    Without gradients, at most `query_size` images are computed at a time, by default `batch_size`, which is the size
    of the batches that callers make themselves. `queries` counts the images whose logits were computed. Compute within
    `searching`.
    """

    def __init__(
        self,
        network: nn.Module,
        device: torch.device,
        precision: Precision,
        batch_size: int = CPU_BATCH_SIZE,
        query_size: int | None = None,
    ) -> None:
        super().__init__()
        device_of(device).prepare()
        self.device = device
        self.dtype = DTYPES[precision]
        self.precision = precision
        self.batch_size = batch_size
        self.query_size = batch_size if query_size is None else query_size
        self.queries = 0
        # a copy: judge and search use the same model in different precisions
        self._network = copy.deepcopy(network).to(device, self.dtype).requires_grad_(False)
        self.eval()

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits. Raises CleansetError if the images do not fit into the memory of the device."""
        self.queries += len(pixels)
        most = len(pixels) if torch.is_grad_enabled() and pixels.requires_grad else self.query_size
        lower = torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16")
        try:
            with lower:
                parts = [self._network(part) for part in torch.split(pixels.to(self.dtype), max(1, most))]
                logits = torch.cat(parts)
        except torch.OutOfMemoryError:
            raise CleansetError(
                f"{self.device}: no memory for {len(pixels)} images at a time; expected a larger device: "
                "set fewer of them in the params, or the device cpu"
            ) from None
        return logits.to(pixels.dtype)

    def reseed(self, seed: int, device: torch.device | None = None) -> None:
        """Reseed a random network, to draw on its own device or on another one."""
        reseed(self._network, seed, self.device if device is None else device)


class GroupedNetwork(nn.Module):
    """One logit for each group of classes: the log-sum-exp of the logits of its members."""

    def __init__(self, network: nn.Module, groups: Sequence[Sequence[int]]) -> None:
        """`groups` have class indices: two or more, not empty, disjoint."""
        super().__init__()
        self.network = network
        self._groups = [list(group) for group in groups]

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of shape (n, groups)."""
        logits = self.network(pixels)
        return torch.stack([torch.logsumexp(logits[:, group], dim=1) for group in self._groups], dim=1)


class Uninteresting(nn.Module):
    """A defense of Unrestricted Adversarial Examples, appendix E: noise in the pixels, one-hot answers.

    Attacks that estimate gradients or follow a decision boundary fail on it, although it protects nothing. Its answers
    differ from call to call; the noise follows from `seed`, or the seed of the last `reseed`, and the calls since.
    """

    def __init__(self, network: nn.Module, seed: int = 0) -> None:
        super().__init__()
        self.network = network
        self._seed = seed
        self._generator: torch.Generator | None = None

    def forward(self, pixels: Tensor) -> Tensor:
        """1 for the top-1 class, 0 for the others; without a gradient."""
        if self._generator is None:
            self.reseed(self._seed, pixels.device)
        generator = cast(torch.Generator, self._generator)
        # on the generator's device: seeded on the CPU, the noise is the same on every machine
        drawn = torch.randn(pixels.shape, generator=generator, device=generator.device, dtype=pixels.dtype)
        logits = self.network((pixels + DEFENCE_NOISE * drawn.to(pixels.device)).clamp(0, 1))
        return nn.functional.one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits.dtype)

    def reseed(self, seed: int, device: torch.device) -> None:
        """Restart the noise from a seed on a device; every kind of device draws other numbers."""
        self._generator = torch.Generator(device).manual_seed(seed)

    def __deepcopy__(self, memo: dict[int, object]) -> "Uninteresting":
        """A copy that draws from the beginning."""
        return Uninteresting(copy.deepcopy(self.network, memo), self._seed)


def reseed(network: nn.Module, seed: int, device: torch.device) -> None:
    """Reseed the random modules of a network, if it has any."""
    for module in network.modules():
        if isinstance(module, Uninteresting):
            module.reseed(seed, device)


def wrap_network(network: nn.Module, groups: Sequence[Sequence[int]] | None, uninteresting: bool) -> nn.Module:
    """Wrap a network: one logit for each group of class indices, then the gradient-masking defense."""
    found = network if groups is None else GroupedNetwork(network, groups)
    return Uninteresting(found) if uninteresting else found


@contextmanager
def searching(precision: Precision) -> Iterator[None]:
    """Set torch's switches for a precision as `scorer.arithmetic`, but allow gradients that only atomics compute."""
    with arithmetic(precision):
        torch.use_deterministic_algorithms(False)
        yield
