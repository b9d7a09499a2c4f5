"""Measure the seconds of a few batches.

On a CPU the seconds are those of its cores, which other work on the machine hardly changes; on a GPU they are the
clock's, once the device has finished.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from cleanset.edition.params import Precision
from cleanset.machine import available_cores
from cleanset.planning.work import OPERATIONS_PER_SECOND, Cost, Machine, Passes
from cleanset.scoring.devices import Device, computing_threads
from cleanset.scoring.differentiable import PixelNetwork, searching

MIN_SECONDS = 0.4
"""A measurement is repeated until it has taken that long."""
MAX_REPEATS = 20
LONG_BATCH = 4.0
"""Seconds of a batch on a CPU that is measured in a smaller one: of FEW images, which take about as long each."""
FEW = 8


def now(device: Device) -> float:
    """Seconds since any time, once a device has finished: of the cores of this process, with a GPU of the clock."""
    device.synchronize()
    return perf_counter() if device.is_separate else process_time()


class Elapsed:
    """Seconds since the beginning of a block; after it, those of the block."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._begin = now(device)
        self._end: float | None = None

    def stop(self) -> None:
        """End the block."""
        self._end = now(self._device)

    @property
    def seconds(self) -> float:
        """The seconds so far, or of the block."""
        return (now(self._device) if self._end is None else self._end) - self._begin


@contextmanager
def timed(device: Device) -> Iterator[Elapsed]:
    """Measure the seconds of the block."""
    elapsed = Elapsed(device)
    yield elapsed
    elapsed.stop()


def machine_of(devices: Sequence[Device]) -> Machine:
    """This machine with these devices."""
    first = devices[0]
    return Machine(device=first.name, devices=len(devices), is_separate=first.is_separate, cores=available_cores())


def seconds_of_call(device: Device, call: Callable[[], object]) -> float:
    """Mean seconds of a call after a first one, which allocates memory."""
    call()
    with timed(device) as elapsed:
        repeats = 0
        while repeats < MAX_REPEATS and (not repeats or elapsed.seconds < MIN_SECONDS):
            call()
            repeats += 1
    return elapsed.seconds / repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpeed:
    """What the passes of a network cost in one precision."""

    precision: Precision
    forward: float
    """Seconds of an image forward."""
    backward: float
    """Seconds of an image backward, beside its forward pass."""
    operations: float
    """Floating-point operations of an image forward."""

    def cost(self, passes: Passes) -> Cost:
        """The cost of passes."""
        # the gradient by the pixels alone takes as many operations as the pass forward
        operations = self.operations * (passes.forward + passes.backward)
        return Cost(
            device=passes.forward * self.forward + passes.backward * self.backward,
            gpu=operations / OPERATIONS_PER_SECOND[self.precision],
        )


def speed_of(
    network: nn.Module, side: int, device: Device, *, precision: Precision, batch: int, gradients: bool = False
) -> NetworkSpeed:
    """The speed of a network on random pixels of a side, in batches, with one thread of the CPU.

    `gradients`: measure backward passes, too. Raises CleansetError as the network does.
    """
    asked = PixelNetwork(network, device.torch, precision, batch)
    generator = torch.Generator().manual_seed(0)
    pixels = torch.rand((batch, 3, side, side), generator=generator).to(device.torch, asked.dtype)

    def forward() -> object:
        with torch.inference_mode():
            return asked(pixels)

    def both() -> object:
        wanted = pixels.detach().requires_grad_()
        logits = asked(wanted)
        return torch.autograd.grad(logits.sum(), wanted) if logits.requires_grad else logits

    with searching(precision), computing_threads(1):
        counter = FlopCounterMode(display=False)
        with counter, torch.inference_mode():
            asked(pixels[:1])
        with timed(device) as one, torch.inference_mode():
            asked(pixels[:1])
        if not device.is_separate and one.seconds * batch > LONG_BATCH:
            pixels = pixels[:FEW]
        of_forward = seconds_of_call(device, forward)
        of_both = seconds_of_call(device, both) if gradients else of_forward
    shown = len(pixels)
    return NetworkSpeed(
        precision=precision,
        forward=of_forward / shown,
        backward=max(0.0, of_both - of_forward) / shown,
        operations=float(counter.get_total_flops()),
    )
