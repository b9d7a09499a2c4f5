"""Training on several GPUs, or in several processes of the CPU, by torch's distributed data parallel."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.multiprocessing.spawn import ProcessRaisedException, spawn
from torch.nn.parallel import DistributedDataParallel

from cleanset.errors import CleansetError
from cleanset.studies.training.folds import Share

Work = Callable[..., None]
"""A function of a module, which is called with a device, a share, and what it was started with."""


def start(work: Work, devices: list[torch.device], *arguments: Any) -> None:
    """Call `work` in a process for each device; the first error that a user can fix is raised here."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            spawn(_run, (work, devices, Path(folder), arguments), nprocs=len(devices))  # type: ignore[no-untyped-call]
        except ProcessRaisedException:
            errors = sorted(Path(folder).glob("error_*"))
            if not errors:
                raise
            raise CleansetError(errors[0].read_text(encoding="utf-8")) from None


def _run(rank: int, work: Work, devices: list[torch.device], folder: Path, arguments: tuple[Any, ...]) -> None:
    device = devices[rank]
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    store = f"file://{folder / 'store'}"
    distributed.init_process_group(backend, init_method=store, rank=rank, world_size=len(devices))
    try:
        work(device, Share(rank, len(devices)), *arguments)
    except CleansetError as error:
        (folder / f"error_{rank}").write_text(str(error), encoding="utf-8")
        raise
    finally:
        distributed.destroy_process_group()


def chosen_devices(device: torch.device, count: int) -> list[torch.device]:
    """`count` devices of the kind of `device`. Raises CleansetError if there are fewer GPUs."""
    if device.type == "cpu":
        return [device] * count
    if count > torch.cuda.device_count():
        raise CleansetError(
            f"devices: {count}, but {torch.cuda.device_count()} CUDA devices found; expected at most that number"
        )
    return [device] if count == 1 else [torch.device("cuda", number) for number in range(count)]


def wrap(network: nn.Module, share: Share) -> nn.Module:
    """The network, behind what makes the mean of the gradients of all processes if there are several."""
    return DistributedDataParallel(network) if share.processes > 1 else network


def from_first(values: Mapping[str, float], share: Share) -> dict[str, float]:
    """The values of the first process."""
    found = [dict(values)]
    if share.processes > 1:
        distributed.broadcast_object_list(found, src=0)
    return found[0]
