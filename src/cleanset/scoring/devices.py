"""The devices that networks are computed on. Only this module asks whether one is a CPU or a GPU."""

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanset.errors import CleansetError
from cleanset.plumbing.machine import keep_freed_memory

# images in a batch without a GPU: with more, half of the time goes into allocating memory
CPU_BATCH_SIZE = 4
# images of a query of an attack: small networks compute up to a third more a second than in fours
CPU_QUERY_SIZE = 16


Wait = Callable[[], None]
"""Waits for the end of a copy."""


class Device:
    """A CPU, and the base of other kinds of devices; `torch` is torch's own object.

    `is_separate`: it computes without the processor's cores, which decode, copy and rank in the meantime.
    `backend`: torch's, with which the processes of a training exchange gradients.
    """

    is_separate = False
    backend = "gloo"

    def __init__(self, device: torch.device) -> None:
        self.torch = device

    def __str__(self) -> str:
        return str(self.torch)

    @property
    def name(self) -> str:
        """The model of a GPU, or cpu."""
        return "cpu"

    def batch_size(self, wanted: int) -> int:
        """The number of images in a batch, if `wanted` are asked for."""
        return min(wanted, CPU_BATCH_SIZE)

    def query_size(self, batch_size: int) -> int:
        """The number of images that the queries of an attack are computed in at a time, given the batch size here."""
        return max(batch_size, CPU_QUERY_SIZE) if batch_size >= CPU_BATCH_SIZE else batch_size

    def prepare(self) -> None:
        """Prepare this process for computing on the device; call it before threads are started."""
        keep_freed_memory()

    def use(self) -> AbstractContextManager[object]:
        """Make the device the current one of this thread."""
        return nullcontext()

    def pin(self, memory: NDArray[np.uint8]) -> AbstractContextManager[object]:
        """Page-lock memory, from which the device then copies without the processor."""
        return nullcontext()

    def moved(self, tensor: Tensor) -> Tensor:
        """A tensor on the device."""
        return tensor.to(self.torch)

    def upload(self, pixels: NDArray[np.uint8]) -> tuple[Tensor, Wait]:
        """Pixels on the device for its next computation, and the end of the copy: the memory may then be reused."""
        return torch.from_numpy(pixels), self.synchronize

    def download(self, values: Tensor) -> tuple[Tensor, Wait]:
        """Values in the memory of the processor, which are valid after the end of the copy."""
        return values, self.synchronize

    def synchronize(self) -> None:
        """Wait for all that the device computes."""

    def free_memory(self) -> None:
        """Give back memory that this process holds and does not use."""

    def generators(self) -> list[torch.device]:
        """The devices, next to the CPU, with a random number generator."""
        return []

    def peak_memory(self) -> int:
        """Bytes that this process took at most."""
        # Linux counts in kilobytes, macOS in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Cuda(Device):
    """An NVIDIA GPU."""

    is_separate = True
    backend = "nccl"

    @property
    def name(self) -> str:
        return torch.cuda.get_device_name(self.torch)

    def batch_size(self, wanted: int) -> int:
        return wanted

    def query_size(self, batch_size: int) -> int:
        return batch_size

    def prepare(self) -> None:
        pass

    @contextmanager
    def use(self) -> Iterator[None]:
        with torch.cuda.device(self.torch):
            self._copying = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            yield

    @contextmanager
    def pin(self, memory: NDArray[np.uint8]) -> Iterator[None]:
        runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        address = torch.from_numpy(memory).data_ptr()
        # where that fails, the copy is only slower
        is_pinned = int(runtime.cudaHostRegister(address, memory.nbytes, 0)) == 0
        try:
            yield
        finally:
            if is_pinned:
                runtime.cudaHostUnregister(address)

    def moved(self, tensor: Tensor) -> Tensor:
        return tensor.pin_memory().to(self.torch, non_blocking=True)

    def upload(self, pixels: NDArray[np.uint8]) -> tuple[Tensor, Wait]:
        computing = torch.cuda.current_stream()
        copying = self._copying
        with torch.cuda.stream(copying):
            on_device = torch.from_numpy(pixels).to(self.torch, non_blocking=True)
            copied = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            copied.record(copying)
        computing.wait_event(copied)
        on_device.record_stream(computing)
        return on_device, copied.synchronize

    def download(self, values: Tensor) -> tuple[Tensor, Wait]:
        found = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        found.copy_(values, non_blocking=True)
        finished = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        finished.record(torch.cuda.current_stream())
        return found, finished.synchronize

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.torch)

    def free_memory(self) -> None:
        torch.cuda.empty_cache()

    def generators(self) -> list[torch.device]:
        return [self.torch]

    def peak_memory(self) -> int:
        return int(torch.cuda.max_memory_allocated(self.torch))


def device_of(device: torch.device) -> Device:
    """The device that torch names."""
    return Cuda(device) if device.type == "cuda" else Device(device)


def to_device(images: Tensor, device: torch.device) -> Tensor:
    """Images, or their labels, on a device; a GPU copies them from page-locked memory, while the CPU continues."""
    return device_of(device).moved(images)


def choose_devices(device: str) -> list[Device]:
    """The devices that a name stands for; `auto` is every CUDA device, otherwise the CPU.

    Raises CleansetError for a CUDA device that does not exist.
    """
    found = torch.cuda.device_count()
    if device == "auto":
        chosen = [torch.device("cuda", number) for number in range(found)] or [torch.device("cpu")]
        return [device_of(each) for each in chosen]
    named = device_of(torch.device(device))
    if named.is_separate and (named.torch.index or 0) >= found:
        raise CleansetError(f"device {device}: {found} CUDA devices found; expected it among them: set auto or cpu")
    return [named]


@contextmanager
def computing_threads(count: int) -> Iterator[None]:
    """Let torch compute with that number of threads, and with as many as before at the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
