"""A device that takes time and no core, in place of a GPU: scoring around it is the real one."""

import time
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cleanset.scoring.devices import Device, Wait

SECONDS = {torch.float32: 0.071 / 256, torch.float64: 0.149 / 256}
"""Seconds an image of a ResNet-50's forward pass on an H200, as measured in batches of 256."""
BYTES_PER_SECOND = 25e9
"""Rate of a copy from page-locked memory to a GPU."""
CLASSES = 1000


def wait_until(moment: float) -> None:
    """Wait until a time of the performance counter."""
    with suppress(ValueError):  # it has passed
        time.sleep(moment - time.perf_counter())


class TimedDevice(Device):
    """A device whose work ends after a set time. `first`: when the first batch came; `idle`: seconds without work."""

    is_separate = True

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self.first = self.copying = self.idle = self._free_at = 0.0

    def batch_size(self, wanted: int) -> int:
        return wanted

    def upload(self, pixels: NDArray[np.uint8]) -> tuple[Tensor, Wait]:
        """Pixels without values, which cost nothing to compute with."""
        now, seconds = time.perf_counter(), pixels.nbytes / BYTES_PER_SECOND
        self.first = self.first or now
        self.copying += seconds
        return torch.empty(pixels.shape, dtype=torch.uint8, device="meta"), partial(wait_until, now + seconds)

    def download(self, values: Tensor) -> tuple[Tensor, Wait]:
        return values, partial(wait_until, self._free_at)

    def compute(self, seconds: float) -> None:
        """Begin work when what was begun before is done."""
        now = time.perf_counter()
        if self._free_at:
            self.idle += max(0.0, now - self._free_at)
        self._free_at = max(now, self._free_at) + seconds


class TimedNetwork(nn.Module):
    """Fixed logits, computed by a TimedDevice."""

    def __init__(self, device: TimedDevice) -> None:
        super().__init__()
        self._device = device
        self._logits = torch.randn(1, CLASSES, generator=torch.Generator().manual_seed(1))

    def __deepcopy__(self, memo: Any) -> "TimedNetwork":
        return self  # a copy would have a device of its own

    def forward(self, pixels: Tensor) -> Tensor:
        self._device.compute(len(pixels) * SECONDS[pixels.dtype])
        return self._logits.expand(len(pixels), -1)  # the same for each image
