"""A model as a differentiable function of pixels in 0..1, on one device, in one precision: for who looks for pixels."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from cleanset.errors import CleansetError
from cleanset.machine import keep_freed_memory
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import CPU_BATCH_SIZE, DTYPES, Precision, arithmetic
from cleanset.scoring.wrappers import reseed


class PixelNetwork(nn.Module):
    """A copy of a network on one device: pixels in 0..1, float of shape (n, 3, size, size), to logits (n, classes).

    Normalization is inside. Logits have the dtype of the pixels; gradients flow to the pixels, never to weights.
    Where none are wanted, at most `batch_size` images are computed at a time. `queries` counts the images whose logits
    were computed. Compute within `searching`.
    """

    def __init__(
        self, network: nn.Module, device: torch.device, precision: Precision, batch_size: int = CPU_BATCH_SIZE
    ) -> None:
        super().__init__()
        if device.type != "cuda":
            keep_freed_memory()
        self.device, self.dtype, self.precision = device, DTYPES[precision], precision
        self.batch_size, self.queries = batch_size, 0
        self._network = copy.deepcopy(network).to(device, self.dtype).requires_grad_(False)
        self.eval()

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits. Raises CleansetError where the device's memory does not suffice for so many images."""
        self.queries += len(pixels)
        most = len(pixels) if torch.is_grad_enabled() and pixels.requires_grad else self.batch_size
        lower = torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16")
        try:
            with lower:
                parts = [self._network(part) for part in torch.split(pixels.to(self.dtype), max(1, most))]
                logits = torch.cat(parts)
        except torch.OutOfMemoryError:
            raise CleansetError(
                f"{self.device}: no memory for {len(pixels)} images at a time; expected a larger device: "
                "set fewer of them in the params, or score.device cpu"
            ) from None
        return logits.to(pixels.dtype)

    def reseed(self, seed: int, device: torch.device | None = None) -> None:
        """Let a random network draw from the beginning of a seed: on its own device, or on another one."""
        reseed(self._network, seed, self.device if device is None else device)


class EightBit(nn.Module):
    """A network of images in 8 bits: pixels are rounded before it, and gradients pass as if they were not.

    What an attack finds misclassified with it stays so when it is stored.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self._network = network
        self.eval()

    def forward(self, pixels: Tensor) -> Tensor:
        """The logits of the nearest images of 8 bits."""
        exact = pixels.detach()
        logits: Tensor = self._network(pixels + (torch.round(exact * 255) / 255 - exact))
        return logits


def pixel_network(
    model: LoadedModel, device: torch.device, precision: Precision, batch_size: int = CPU_BATCH_SIZE
) -> PixelNetwork:
    """A model as a function of pixels."""
    return PixelNetwork(model.network, device, precision, batch_size)


@contextmanager
def searching(precision: Precision) -> Iterator[None]:
    """Set torch's switches for a precision as `scorer.arithmetic`, but allow gradients that only atomics compute."""
    with arithmetic(precision):
        torch.use_deterministic_algorithms(False)
        yield
