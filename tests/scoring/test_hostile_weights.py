"""Mutated weight files: each is loaded or refused in one line; none hangs, ends the process, or is half accepted."""

import io
import json
import random
import tempfile
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save
from torch import Tensor

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.scoring.models import load_model
from tests.hostile.mutators import damaged
from tests.scoring.networks import settle
from tests.time_limits import TooSlow, at_most

pytestmark = pytest.mark.slow

SECONDS = 20
"""A case that takes longer counts as hanging."""
CASES = (*range(150), 272)
"""In the last, a counter is a quantized tensor."""
NETWORKS = ("test_vit", "test_byobnet")
FILES = ("w.safetensors", "w.pt", "legacy.pt")
Tensors = dict[Any, Any]


@cache
def whole(name: str) -> Tensors:
    """The tensors of a network, as they should be."""
    return dict(settle(timm.create_model(name, pretrained=False), 4).state_dict())


# Tables of tensors

DTYPES = (
    torch.int64, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128, torch.float64, torch.float16,
    torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16,
)  # fmt: skip


def not_finite(value: Tensor, rng: random.Random) -> Tensor:
    changed = value.double().clone()
    if changed.numel():
        changed.view(-1)[rng.randrange(changed.numel())] = rng.choice([torch.nan, torch.inf, -torch.inf, 1e300])
    return changed


CHANGES: tuple[tuple[Callable[[Tensor, random.Random], Tensor], ...], ...] = (
    (
        lambda value, rng: value[None], lambda value, rng: value.flatten(),
        lambda value, rng: value.mT if value.ndim > 1 else value[..., None],
        lambda value, rng: value[: len(value) // 2] if value.ndim else value,
        lambda value, rng: torch.cat([value.flatten()] * 2), lambda value, rng: torch.zeros(0),
        lambda value, rng: torch.zeros(()), lambda value, rng: value.flatten().repeat(2)[::2].reshape(value.shape),
        lambda value, rng: torch.ones(1).expand(rng.choice([2, 10**6, 2**40])),
        lambda value, rng: value.expand(3, *value.shape), lambda value, rng: torch.zeros([1] * 60),
        lambda value, rng: torch.ones(1, 1, rng.randrange(1, 400), rng.randrange(1, 400)),
    ),
    (lambda value, rng: value.to(rng.choice(DTYPES)),),
    (
        lambda value, rng: value.float().to_sparse(), lambda value, rng: torch.ones(4, 4).to_sparse_csr(),
        lambda value, rng: value.to("meta"), lambda value, rng: torch.nn.Parameter(value.float()),
        lambda value, rng: torch.quantize_per_tensor(value.float(), 0.1, 0, torch.qint8),
        lambda value, rng: torch.quantize_per_channel(
            torch.ones(2, 2), torch.ones(2), torch.zeros(2), 0, torch.quint8
        ),
        lambda value, rng: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda value, rng: torch.complex(value.float(), value.float()).conj(),
        lambda value, rng: torch.complex(value.float(), value.float()).imag,
    ),
    (not_finite,),
)  # fmt: skip
"""Other shapes, types, kinds and values of a tensor."""
KEYS = (
    "", "module.", "model.", "module.module.", "attacker.", "normalizer.new_mean", "attacker.normalize.new_mean",
    "normalize.mean", "normalize.std", "mask_token", "encoder", "visual.class_embedding", "visual.trunk.pos_embed",
    "state_dict", "model", "pos_embed", "patch_embed.proj.weight", "\u2028", "a\nb", "x" * 5000, "__metadata__", "é",
)  # fmt: skip
WRONG_KEYS = (0, None, (), b"a", 1.5, True, ("a", 1))


def mutated_table(tensors: Tensors, rng: random.Random) -> Tensors:
    """The tensors, one of them changed, renamed, missing, or one more."""
    key, prefix, other = rng.choice(list(tensors)), rng.choice(KEYS), rng.choice(KEYS + WRONG_KEYS)
    changed = rng.choice(rng.choice(CHANGES))(tensors[key], rng)
    return rng.choice([
        *[tensors | {key: changed}] * 4, {other if name == key else name: value for name, value in tensors.items()},
        {name: value for name, value in tensors.items() if name != key}, tensors | {other: changed},
        {f"{prefix}{name}": value for name, value in tensors.items()},
    ])  # fmt: skip


def nested(tensors: Tensors, rng: random.Random) -> Any:
    """What a .pt may hold around its tensors, sensible or not."""
    return rng.choice([
        {"state_dict": tensors}, {"model": tensors, "epoch": 3}, [tensors], None, OrderedDict(tensors), {1: tensors},
        {"state_dict": tensors, "model_ema": tensors}, {"state_dict": {"state_dict": tensors}}, tensors | {"epoch": 1},
        {}, {"state_dict": {}}, {"state_dict": []}, torch.ones(3), 10**5000, "text", tensors | {"self": [[]]},
        {"model": {**tensors, "args": Path("x")}},
    ])  # fmt: skip


# Bytes


def written(content: Any, file: str) -> bytes:
    """The bytes of a weight file; raises what the library raises that cannot write it."""
    if file == "w.safetensors":
        return save({str(key): value.contiguous() for key, value in content.items()})
    out = io.BytesIO()
    torch.save(content, out, _use_new_zipfile_serialization=file == "w.pt")
    return out.getvalue()


VALUES: tuple[Any, ...] = (
    0, -1, 1, 2**31, 2**63, 2**64, 1.5, None, "F32", "BF16", "X", [], [0], [-1, 4], [2**40] * 2, {}, True
)  # fmt: skip


def mutated_header(data: bytes, rng: random.Random) -> bytes:
    """A safetensors file with an altered header."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    key, value, field = rng.choice(list(header)), rng.choice(VALUES), rng.choice(["dtype", "shape", "data_offsets"])
    kept = {name: each for name, each in header.items() if name != key}
    text = json.dumps(rng.choice([
        header, header | {key: header[key] | {field: value}}, header | {key: value},
        kept | {rng.choice(KEYS): header[key]}, header | {"__metadata__": rng.choice([value, {"a": 1}, {"a": "b"}])},
        rng.choice([{}, [], key, 3, {key: header[key]}]),
    ])).encode()  # fmt: skip
    if rng.randrange(6) == 5:
        text = rng.choice([text[:-1], b"[" * 10**5, text * 2, text.replace(b":", b"", 1), b"\xff" + text])
    size = rng.choice([len(text)] * 4 + [2**63, 0, len(data)])
    return size.to_bytes(8, "little") + text + data[8 + length :]


def case(number: int) -> tuple[str, str, bytes]:
    """A network, the name of a file, and its bytes: a sound weight file, changed in one way."""
    rng = random.Random(number)
    name, file = rng.choice(NETWORKS), rng.choice(FILES)
    content: Any = whole(name)
    kind = rng.randrange(10)
    if kind < 4:
        content = mutated_table(content, rng)
        if file != "w.safetensors" and rng.random() < 0.3:
            content = nested(content, rng)
    elif kind == 4:
        content = whole(NETWORKS[name == NETWORKS[0]])
    try:
        data = written(content, file)
    except Exception:  # what cannot be written as safetensors or in the old form, such as shared or nested tensors
        data, file = written(content if file != "w.safetensors" else {"a": content}, "w.pt"), "w.pt"
    if kind > 4:
        data = mutated_header(data, rng) if file == "w.safetensors" and rng.random() < 0.6 else damaged(rng, data)
    return name, file, data


# Running them

REFUSALS = (
    "does not fit the model", "not plain tensors", "no table of tensors", "holds NaN or infinity",
    "expected keys that are text", "expected dense tensors", "trained with normalisation", "tensors under",
    "not weights",
)  # fmt: skip


def outcome(number: int, folder: Path) -> str:
    """The outcome of a case: `loaded`, the kind of refusal, or a text that begins with BROKEN."""
    name, file, data = case(number)
    path = folder / file
    path.write_bytes(data)
    try:
        with at_most(SECONDS):
            loaded = load_model(Model(source="timm", name=name, weights=file, sha256=sha256(data)), folder)
    except CleansetError as error:
        text = str(error)
        if not text.startswith(f"{path}: ") or not text.isprintable() or len(text) > 800:
            return f"BROKEN {number}: {text[:300]!r}"
        return next((each for each in REFUSALS if each in text), text)
    except (Exception, TooSlow) as error:
        return f"BROKEN {number}: {type(error).__name__}: {str(error)[:300]}"
    tensors = loaded.network.state_dict().values()
    finite = all(value.isfinite().all() for value in tensors if value.is_floating_point())
    return "loaded" if finite else f"BROKEN {number}: loaded, but not finite"


def run(numbers: Sequence[int]) -> Counter[str]:
    """The outcomes of some cases."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        return Counter(outcome(number, Path(folder)) for number in numbers)


@pytest.mark.hostile
@pytest.mark.long
def test_no_mutated_weight_file_gives_a_traceback_or_hangs() -> None:
    found = run(CASES)
    assert [what for what in found if what.startswith("BROKEN")] == []
    assert found.total() == len(CASES)
    assert min(found["loaded"], found["does not fit the model"], found["not plain tensors"]) > 5
