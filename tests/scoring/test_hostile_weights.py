"""Mutated weight files: each is loaded or refused in one line; none hangs, ends the process, or is half accepted."""

import io
import json
import random
import signal
import tempfile
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import timm
import torch
from safetensors.torch import save
from torch import Tensor

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.scoring.models import load_model
from tests.scoring.networks import settle

pytestmark = pytest.mark.slow

SECONDS = 20
"""A case that takes longer counts as hanging."""
NETWORKS = ("test_vit", "test_byobnet")
FILES = ("w.safetensors", "w.pt", "legacy.pt")
Tensors = dict[Any, Any]
T = TypeVar("T")


@cache
def whole(name: str) -> Tensors:
    """The tensors of a network, as they should be."""
    return dict(settle(timm.create_model(name, pretrained=False), 4).state_dict())


def choice(rng: random.Random, makers: Sequence[Callable[[], T]]) -> T:
    """What one of them makes."""
    return rng.choice(makers)()


# Tables of tensors


def other_shape(value: Tensor, rng: random.Random) -> Tensor:
    return choice(rng, [
        lambda: value[None], lambda: value.flatten(), lambda: value.mT if value.ndim > 1 else value[..., None],
        lambda: value[: len(value) // 2] if value.ndim else value, lambda: torch.cat([value.flatten()] * 2),
        lambda: torch.zeros(0), lambda: torch.zeros(()), lambda: value.flatten().repeat(2)[:: 2].reshape(value.shape),
        lambda: torch.ones(1).expand(rng.choice([2, 10**6, 2**40])), lambda: value.expand(3, *value.shape),
        lambda: torch.zeros([1] * 60), lambda: torch.ones(1, 1, rng.randrange(1, 400), rng.randrange(1, 400)),
    ])  # fmt: skip


def other_type(value: Tensor, rng: random.Random) -> Tensor:
    dtypes = [
        torch.int64, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128, torch.float64,
        torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16,
    ]  # fmt: skip
    return value.to(rng.choice(dtypes))


def other_kind(value: Tensor, rng: random.Random) -> Tensor:
    return choice(rng, [
        lambda: value.float().to_sparse(), lambda: torch.ones(4, 4).to_sparse_csr(), lambda: value.to("meta"),
        lambda: torch.quantize_per_tensor(value.float(), 0.1, 0, torch.qint8),
        lambda: torch.nn.Parameter(value.float()),
        lambda: torch.quantize_per_channel(torch.ones(2, 2), torch.ones(2), torch.zeros(2), 0, torch.quint8),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: torch.complex(value.float(), value.float()).conj(),
        lambda: torch.complex(value.float(), value.float()).imag,
    ])  # fmt: skip


def not_finite(value: Tensor, rng: random.Random) -> Tensor:
    changed = value.double().clone()
    if changed.numel():
        changed.view(-1)[rng.randrange(changed.numel())] = rng.choice([torch.nan, torch.inf, -torch.inf, 1e300])
    return changed


CHANGES: tuple[Callable[[Tensor, random.Random], Tensor], ...] = (other_shape, other_type, other_kind, not_finite)
KEYS = (
    "", "module.", "model.", "module.module.", "attacker.", "normalizer.new_mean", "attacker.normalize.new_mean",
    "normalize.mean", "normalize.std", "mask_token", "encoder", "visual.class_embedding", "visual.trunk.pos_embed",
    "state_dict", "model", "pos_embed", "patch_embed.proj.weight", "\u2028", "a\nb", "x" * 5000, "__metadata__", "é",
)  # fmt: skip
WRONG_KEYS = (0, None, (), b"a", 1.5, True, ("a", 1))


def mutated_table(tensors: Tensors, rng: random.Random) -> Tensors:
    """The tensors, one of them changed, renamed, missing, or one more."""
    key = rng.choice(list(tensors))
    kind = rng.randrange(8)
    if kind < 4:
        return tensors | {key: rng.choice(CHANGES)(tensors[key], rng)}
    if kind == 4:
        return {(rng.choice(KEYS + WRONG_KEYS) if name == key else name): value for name, value in tensors.items()}
    if kind == 5:
        return {name: value for name, value in tensors.items() if name != key}
    if kind == 6:
        return tensors | {rng.choice(KEYS + WRONG_KEYS): rng.choice(CHANGES)(tensors[key], rng)}
    prefix = rng.choice(KEYS)
    return {f"{prefix}{name}": value for name, value in tensors.items()}


def nested(tensors: Tensors, rng: random.Random) -> Any:
    """What a .pt may hold around its tensors, sensible or not."""
    return choice(rng, [
        lambda: {"state_dict": tensors}, lambda: {"model": tensors, "epoch": 3}, lambda: [tensors], lambda: None,
        lambda: {"state_dict": tensors, "model_ema": tensors}, lambda: {"state_dict": {"state_dict": tensors}},
        lambda: OrderedDict(tensors), lambda: tensors | {"epoch": 1}, lambda: {1: tensors}, lambda: {},
        lambda: {"state_dict": {}}, lambda: {"state_dict": []}, lambda: torch.ones(3), lambda: 10**5000, lambda: "text",
        lambda: {"model": {**tensors, "args": Path("x")}}, lambda: tensors | {"self": [[]]},
    ])  # fmt: skip


# Bytes


def written(content: Any, file: str) -> bytes:
    """The bytes of a weight file; raises what the library raises that cannot write it."""
    if file == "w.safetensors":
        return save({str(key): value.contiguous() for key, value in content.items()})
    out = io.BytesIO()
    torch.save(content, out, _use_new_zipfile_serialization=file == "w.pt")
    return out.getvalue()


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes changed, cut off, repeated, or put in; most of the time near the start or the end, where structure is."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        near = rng.choice([64, 2000, 20000, len(changed)])
        at = rng.randrange(min(near, len(changed)) or 1)
        at = rng.choice([at, max(0, len(changed) - 1 - at)])
        taken, new = rng.choice([
            (1, bytes([rng.randrange(256)])), (len(changed), b""), (rng.randrange(1, 100), b""),
            (1, bytes(each ^ (1 << rng.randrange(8)) for each in changed[at : at + 1])),
            (0, rng.randbytes(rng.randrange(1, 20))),
            (8, rng.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]).to_bytes(8, "little")),
        ])  # fmt: skip
        changed[at : at + taken] = new
    return bytes(changed)


VALUES: tuple[Any, ...] = (
    0, -1, 1, 2**31, 2**63, 2**64, 1.5, None, "F32", "BF16", "X", [], [0], [-1, 4], [2**40] * 2, {}, True
)  # fmt: skip


def mutated_header(data: bytes, rng: random.Random) -> bytes:
    """A safetensors file with an altered header."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    key = rng.choice(list(header))
    kind = rng.randrange(6)
    if kind == 0:
        header[key][rng.choice(["dtype", "shape", "data_offsets"])] = rng.choice(VALUES)
    elif kind == 1:
        header[key] = rng.choice(VALUES)
    elif kind == 2:
        header[rng.choice(KEYS)] = header.pop(key)
    elif kind == 3:
        header["__metadata__"] = rng.choice([*VALUES, {"a": 1}, {"a": "b"}])
    elif kind == 4:
        header = rng.choice([{}, [], key, 3, {key: header[key]}])
    text = json.dumps(header).encode()
    if kind == 5:
        text = rng.choice([text[:-1], b"[" * 10**5, text * 2, text.replace(b":", b"", 1), b"\xff" + text])
    size = rng.choice([len(text)] * 4 + [2**63, 0, len(data)])
    return size.to_bytes(8, "little") + text + data[8 + length :]


def case(number: int) -> tuple[str, str, bytes]:
    """A network, the name of a file, and its bytes: a sound weight file, changed in one way."""
    rng = random.Random(number)
    name, file = rng.choice(NETWORKS), rng.choice(FILES)
    tensors, kind = whole(name), rng.randrange(10)
    if kind < 4:
        content: Any = mutated_table(tensors, rng)
        if file != "w.safetensors" and rng.random() < 0.3:
            content = nested(content, rng)
    elif kind == 4:
        content = whole(NETWORKS[0] if name == NETWORKS[1] else NETWORKS[1])
    else:
        content = tensors
    try:
        data = written(content, file)
    except Exception:  # what cannot be written as safetensors or in the old form, such as shared or nested tensors
        data, file = written(content if file != "w.safetensors" else {"a": content}, "w.pt"), "w.pt"
    if kind > 4:
        data = mutated_header(data, rng) if file == "w.safetensors" and rng.random() < 0.6 else mutated_bytes(data, rng)
    return name, file, data


# Running them

REFUSALS = (
    "does not fit the model", "not plain tensors", "no table of tensors", "holds NaN or infinity",
    "expected keys that are text", "expected dense tensors", "trained with normalisation", "tensors under",
    "not weights",
)  # fmt: skip


class Hanging(BaseException):
    """Not an Exception, so that nothing takes it for an ordinary failure."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Hanging in the block when it takes too long."""

    def stop(*_: object) -> None:
        raise Hanging

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(number: int, folder: Path) -> str:
    """The outcome of a case: `loaded`, the kind of refusal, or a text that begins with BROKEN."""
    name, file, data = case(number)
    path = folder / file
    path.write_bytes(data)
    try:
        with limited(SECONDS):
            loaded = load_model(Model(source="timm", name=name, weights=file, sha256=sha256(data)), folder)
    except CleansetError as error:
        text = str(error)
        if not text.startswith(f"{path}: ") or not text.isprintable() or len(text) > 800:
            return f"BROKEN {number}: {text[:300]!r}"
        return next((each for each in REFUSALS if each in text), text)
    except (Exception, Hanging) as error:
        return f"BROKEN {number}: {type(error).__name__}: {str(error)[:300]}"
    tensors = loaded.network.state_dict().values()
    finite = all(value.isfinite().all() for value in tensors if value.is_floating_point())
    return "loaded" if finite else f"BROKEN {number}: loaded, but not finite"


def run(numbers: range) -> Counter[str]:
    """The outcomes of some cases."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        return Counter(outcome(number, Path(folder)) for number in numbers)


@pytest.mark.hostile
def test_no_mutated_weight_file_gives_a_traceback_or_hangs() -> None:
    found = run(range(300))
    assert [what for what in found if what.startswith("BROKEN")] == []
    assert found.total() == 300
    assert min(found["loaded"], found["does not fit the model"], found["not plain tensors"]) > 5
