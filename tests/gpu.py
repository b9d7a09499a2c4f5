"""A GPU that is not there: tensors that say they are on cuda:0, and are computed with on the CPU.

What a real one refuses is refused: tensors of two devices in one operation, a generator of another device, numpy of
what is on the GPU. Copies that do not block are made when somebody waits for them, so that who forgets to wait
reads noise. torch's FakeTensorMode has the same rules, but no values, and no backward pass on cuda without a driver.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

GPU, META = torch.device("cuda", 0), torch.device("meta")
MIXES_DEVICES = {"copy_", "index", "index_put", "index_put_", "_index_put_impl_"}
"""Operations that take indices, or values to copy, from the CPU."""
FACTORIES = (
    "arange", "as_tensor", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones", "ones_like", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "tensor", "zeros", "zeros_like",
)  # fmt: skip
NOISE = 77
PLAIN: Any = {name: getattr(Tensor, name) for name in ("to", "copy_")}
"""Methods of tensors, before the fixture replaces them."""
SUBMIT = ThreadPoolExecutor.submit


class OnGpu(Tensor):
    """A tensor on the GPU; for torch's C++ it is on meta, for which the backward pass needs no driver."""

    @staticmethod
    def __new__(cls, values: Tensor) -> "OnGpu":
        made: OnGpu = Tensor._make_wrapper_subclass(
            cls, values.size(), strides=values.stride(), storage_offset=values.storage_offset(), dtype=values.dtype,
            device=META,
        )  # fmt: skip
        made.values_on_cpu = values
        return made

    values_on_cpu: Tensor
    device, is_cuda, is_meta = GPU, True, False

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        kwargs = {key: value for key, value in (kwargs or {}).items() if value != META}
        given, _ = tree_flatten((args, kwargs))
        # a number from the CPU goes with a tensor on any device
        others = [each for each in given if isinstance(each, Tensor) and not isinstance(each, OnGpu) and each.ndim]
        if others and func.overloadpacket.__name__ not in MIXES_DEVICES:
            raise RuntimeError(f"{func}: expected all tensors to be on the same device; found cuda:0 and cpu")
        check_generators(given, "cuda")
        found = func(*tree_map_only(OnGpu, on_cpu, args), **tree_map_only(OnGpu, on_cpu, kwargs))
        if "out" in kwargs:
            return kwargs["out"]
        first = func._schema.arguments[0] if func._schema.arguments else None
        is_in_place = first is not None and first.alias_info is not None and first.alias_info.is_write
        if is_in_place:
            return args[0] if func._schema.returns else None
        return tree_map_only(Tensor, OnGpu, found)

    def numpy(self, *_: object, **__: object) -> Any:
        raise TypeError("cannot convert a tensor on cuda:0 to numpy")

    __array__ = numpy

    def tolist(self) -> Any:
        return self.values_on_cpu.tolist()

    def record_stream(self, stream: object) -> None:
        pass

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.values_on_cpu.__reduce_ex__(protocol)  # type: ignore[no-untyped-call]


class OfGpu(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Values for what torch's C++ makes in addition to a tensor on the GPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if kwargs.get("device") != META or any(isinstance(each, OnGpu) for each in tree_flatten((args, kwargs))[0]):
            return func(*args, **kwargs)
        return OnGpu(func(*args, **kwargs | {"device": torch.device("cpu")}))


class Generator(torch._C.Generator):
    """A generator that says which device it is of; all draw on the CPU."""

    def __new__(cls, device: Any = "cpu") -> "Generator":
        made: Generator = torch._C.Generator.__new__(cls, "cpu")  # type: ignore[call-arg]
        made.of = torch.device(device)
        return made

    of: torch.device
    device = property(lambda self: self.of)


def check_generators(given: list[Any], device: str) -> None:
    """Raise RuntimeError for a generator of another kind of device."""
    for each in given:
        if isinstance(each, torch._C.Generator) and each.device.type != device:
            raise RuntimeError(f"a generator of {each.device.type}; expected one of {device}")


def on_cpu(tensor: Tensor) -> Tensor:
    """The values of a tensor."""
    return tensor.values_on_cpu if isinstance(tensor, OnGpu) else tensor


class Moved(torch.autograd.Function):
    """A tensor on the other device, through which gradients flow."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        found = on_cpu(tensor).detach().clone()
        return found if isinstance(tensor, OnGpu) else OnGpu(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (gradient,) = gradients
        return on_cpu(gradient) if isinstance(gradient, OnGpu) else OnGpu(gradient)


class Stream:
    """Copies that are not made yet."""

    def __init__(self) -> None:
        self.pending: list[Callable[[], object]] = []

    def wait_event(self, event: "Event") -> None:
        event.synchronize()

    def synchronize(self) -> None:
        with torch.no_grad():
            while self.pending:
                self.pending.pop(0)()


class Event:
    """A moment in a stream."""

    def __init__(self, **_: object) -> None:
        self.stream = Stream()

    def record(self, stream: Stream) -> None:
        self.stream = stream

    def synchronize(self) -> None:
        self.stream.synchronize()


class Gpu:
    """The GPU.

    `transfers`: the copies to it from page-locked memory, which did not block; `slow`: those of images in 8 bits that
    did.
    """

    def __init__(self) -> None:
        self.transfers = self.slow = 0
        self.default = self.current = Stream()
        self._locked: list[range] = []
        self._kept: list[Tensor] = []

    @contextmanager
    def on(self, stream: Stream) -> Iterator[None]:
        before, self.current = self.current, stream
        yield
        self.current = before

    def lock(self, address: int, size: int, _: int = 0) -> int:
        self._locked.append(range(address, address + size))
        return 0

    def pinned(self, tensor: Tensor) -> Tensor:
        found = tensor.clone()
        self._kept.append(found)  # so that its address stays its own
        self.lock(found.data_ptr(), found.nbytes)
        return found

    def to(self, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        """In place of Tensor.to."""
        if args and isinstance(args[0], Tensor):
            args = (args[0].device, args[0].dtype)
        device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
        if device is not None and (device.type == "cuda") != isinstance(tensor, OnGpu):
            tensor = self._moved(tensor, non_blocking)
        rest = {} if memory_format is None else {"memory_format": memory_format}
        return PLAIN["to"](tensor, dtype=dtype or tensor.dtype, **rest)

    def _moved(self, tensor: Tensor, non_blocking: bool) -> Any:
        is_back = isinstance(tensor, OnGpu)
        if not is_back:
            if non_blocking and any(tensor.data_ptr() in each for each in self._locked):
                self.transfers += 1
            elif tensor.dtype == torch.uint8:
                self.slow += 1
        # what is computed in the stream of the copy waits for it anyway
        if non_blocking and not tensor.requires_grad and (is_back or self.current is not self.default):
            source = on_cpu(tensor)
            later = torch.full_like(source, NOISE)
            self.current.pending.append(lambda: later.copy_(source))
            return later if is_back else OnGpu(later)
        return Moved.apply(tensor)  # type: ignore[no-untyped-call]

    def copy(self, target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
        """In place of Tensor.copy_."""
        if isinstance(target, OnGpu) or not isinstance(source, OnGpu):
            return cast(Tensor, PLAIN["copy_"](target, source))
        target.fill_(NOISE)
        self.current.pending.append(lambda: PLAIN["copy_"](target, source.values_on_cpu))
        if not non_blocking:
            self.current.synchronize()
        return target

    def factory(self, plain: Any) -> Any:
        """In place of a function of torch that makes a tensor."""

        def make(*args: Any, **kwargs: Any) -> Any:
            device, is_pinned = kwargs.pop("device", None), kwargs.pop("pin_memory", False)
            is_like = any(isinstance(each, OnGpu) for each in args)
            on_gpu = is_like if device is None else torch.device(device).type == "cuda"
            check_generators([kwargs.get("generator")], "cuda" if on_gpu else "cpu")
            found = plain(*map(on_cpu, args), **kwargs)
            return OnGpu(found) if on_gpu else self.pinned(found) if is_pinned else found

        return make


def submit(pool: ThreadPoolExecutor, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """In place of ThreadPoolExecutor.submit: a mode of torch is of one thread."""

    def run() -> Any:
        with OfGpu():  # type: ignore[no-untyped-call]
            return function(*args, **kwargs)

    return SUBMIT(pool, run)


def apply(module: nn.Module, change: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
    """In place of Module._apply, which keeps a parameter and replaces its data: those must be of the same class."""
    for child in module.children():
        apply(child, change)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            module._parameters[name] = nn.Parameter(change(parameter.data), parameter.requires_grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = change(buffer)
    return module


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    """One GPU, until the end of the test."""
    found = Gpu()
    runtime = SimpleNamespace(cudaHostRegister=found.lock, cudaHostUnregister=lambda _: None)
    tensor: dict[str, Any] = {
        "to": lambda each, *args, **kwargs: found.to(each, *args, **kwargs), "cpu": lambda each: found.to(each, "cpu"),
        "copy_": lambda each, *args, **kwargs: found.copy(each, *args, **kwargs),
        "pin_memory": lambda each: found.pinned(each),
    }  # fmt: skip
    cuda: dict[str, Any] = {
        "is_available": lambda: True, "device_count": lambda: 1, "get_device_name": lambda *_: "no GPU",
        "current_stream": lambda *_: found.current, "Stream": Stream, "Event": Event, "stream": found.on,
        "device": lambda _: nullcontext(), "cudart": lambda: runtime, "empty_cache": lambda: None,
        "is_bf16_supported": lambda *_: True, "get_rng_state": lambda *_: torch.get_rng_state(),
        "set_rng_state": lambda *_: None, "synchronize": lambda *_: found.default.synchronize(),
        "manual_seed_all": lambda _: None, "reset_peak_memory_stats": lambda *_: None,
        "max_memory_allocated": lambda *_: 10**8, "is_current_stream_capturing": lambda: False,
    }  # fmt: skip
    # views of tensors of such a class fail in inference mode
    functions: dict[str, Any] = {"Generator": Generator, "inference_mode": torch.no_grad}
    functions |= {name: found.factory(getattr(torch, name)) for name in FACTORIES}
    replacements: list[tuple[Any, dict[str, Any]]] = [
        (Tensor, tensor), (torch.cuda, cuda), (torch, functions), (nn.Module, {"_apply": apply}),
        (ThreadPoolExecutor, {"submit": submit}),
    ]  # fmt: skip
    for owner, replaced in replacements:
        for name, value in replaced.items():
            monkeypatch.setattr(owner, name, value)
    with OfGpu():  # type: ignore[no-untyped-call]
        yield found
