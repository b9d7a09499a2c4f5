"""Steps of a network that gradients pass as if they were the identity, for networks that hide theirs behind such steps.

Backward pass differentiable approximation: A. Athalye, N. Carlini, D. Wagner, "Obfuscated Gradients Give a False Sense
of Security" (ICML 2018).
"""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown
from cleanset.scoring.checked_network import CheckedNetwork

MAX_NAMED_STEPS = 12
"""Steps that an error names at most."""


class StraightThrough(nn.Module):
    """A step of a network, computed unchanged, with the derivative of the identity."""

    def __init__(self, name: str, step: nn.Module) -> None:
        super().__init__()
        self.name = name
        self.step = step

    def forward(self, pixels: Tensor) -> Tensor:
        """The result of the step. Raises CleansetError if its shape differs from the input's."""
        with torch.no_grad():
            found: Tensor = self.step(pixels.detach())
        if found.shape != pixels.shape:
            raise CleansetError(
                f"straight through {self.name}: it makes {tuple(found.shape)} of {tuple(pixels.shape)}; expected a "
                "step that keeps the shape"
            )
        return pixels + (found - pixels.detach())


def with_straight_through(network: nn.Module, names: Sequence[str]) -> nn.Module:
    """A copy of a network whose named submodules gradients pass straight through; itself without names.

    A name comes from `named_modules()`, such as `quantize` or `steps.0`. Raises CleansetError for an unknown name, and
    for one inside another listed module.
    """
    if not names:
        return network
    found = copy.deepcopy(network)
    # a network of a module is in a wrapper unknown to its author
    inner = found.network if isinstance(found, CheckedNetwork) else found
    known = [name for name, _ in inner.named_modules() if name]
    names = list(dict.fromkeys(names))
    for name in names:
        if name not in known:
            some = ", ".join(known[:MAX_NAMED_STEPS]) + (", …" if len(known) > MAX_NAMED_STEPS else "")
            raise CleansetError(f"straight through {shown(name)}: no such step of the network; expected some of {some}")
        if outer := next((each for each in names if name.startswith(f"{each}.")), None):
            raise CleansetError(
                f"straight through {name}: it is inside {outer}, which is also listed; expected one of the two"
            )
    for name in names:
        parent, _, last = name.rpartition(".")
        setattr(inner.get_submodule(parent), last, StraightThrough(name, inner.get_submodule(name)))
    return found
