"""Networks around a network: two groups of classes in place of all, and a defense that only looks strong."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

NOISE = 0.05
"""Standard deviation, in 0..1, of the noise of the uninteresting defense: source 004, appendix E."""


class GroupedNetwork(nn.Module):
    """One logit for each group of classes: the log-sum-exp of the logits of its members."""

    def __init__(self, network: nn.Module, groups: Sequence[Sequence[int]]) -> None:
        """`groups` have class indices. Raises ValueError for an empty group and a class in two of them."""
        super().__init__()
        members = [index for group in groups for index in group]
        if not all(groups) or len(groups) < 2 or len(set(members)) != len(members):
            raise ValueError(f"groups {[list(group) for group in groups]}; expected two or more, not empty, disjoint")
        self.network, self._groups = network, [list(group) for group in groups]

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of shape (n, groups)."""
        logits = self.network(pixels)
        return torch.stack([torch.logsumexp(logits[:, group], dim=1) for group in self._groups], dim=1)


class Uninteresting(nn.Module):
    """The defense of source 004's appendix E: noise is added to the pixels, and the answer is one-hot.

    Attacks that estimate gradients or follow a decision boundary fail on it, and nothing is gained. Its answers differ
    from call to call; what it draws follows from `seed`, or from that of the last `reseed`, and the calls since.
    """

    def __init__(self, network: nn.Module, seed: int = 0, noise: float = NOISE) -> None:
        super().__init__()
        self.network, self.noise, self._seed = network, noise, seed
        self._generator: torch.Generator | None = None

    def forward(self, pixels: Tensor) -> Tensor:
        """1 for the top-1 class, 0 for the others; without a gradient."""
        if self._generator is None:
            self.reseed(self._seed, pixels.device)
        generator = cast(torch.Generator, self._generator)
        drawn = torch.randn(pixels.shape, generator=generator, device=generator.device, dtype=pixels.dtype)
        logits = self.network((pixels + self.noise * drawn.to(pixels.device)).clamp(0, 1))
        return nn.functional.one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits.dtype)

    def reseed(self, seed: int, device: torch.device) -> None:
        """Draw from the beginning of a seed from now on, on a device: another device draws other numbers."""
        self._generator = torch.Generator(device).manual_seed(seed)

    def __deepcopy__(self, memo: dict[int, object]) -> "Uninteresting":
        """A copy that draws from the beginning."""
        import copy

        return Uninteresting(copy.deepcopy(self.network, memo), self._seed, self.noise)


def reseed(network: nn.Module, seed: int, device: torch.device) -> None:
    """Let all that is random in a network draw from the beginning of a seed; nothing where nothing is."""
    for module in network.modules():
        if isinstance(module, Uninteresting):
            module.reseed(seed, device)


def wrapped(network: nn.Module, groups: Sequence[Sequence[int]] | None, uninteresting: bool) -> nn.Module:
    """The network with one logit for each group of class indices, and then in the defense that only looks strong."""
    found = network if groups is None else GroupedNetwork(network, groups)
    return Uninteresting(found) if uninteresting else found
