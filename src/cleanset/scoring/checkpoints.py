"""Weight files: reading the tensors of a .safetensors, .pt or .pth file, and loading them into a network key by key.

No object is unpickled, so that a file from anywhere can be read: a .pt or .pth may hold tensors and plain values only.
"""

import hashlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import timm
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from cleanset.errors import CleansetError, cut, one_line, reason

# under which keys training programs keep the tensors, with epochs and optimizers
_NESTED = ("state_dict", "model", "model_state_dict", "state_dict_ema", "model_ema")
# characters of a key or an object's name in a message
MAX_KEY_CHARACTERS = 80


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a weight file, by key, all of them dense.

    Raises CleansetError for a file that is cut off, damaged, empty, or holds anything but a table of tensors.
    """
    table = _table_of(_content(path), path)
    for key, value in table.items():
        shown = cut(repr(key), MAX_KEY_CHARACTERS)
        if not isinstance(key, str):
            raise CleansetError(f"{path}: a tensor under the key {shown}; expected keys that are text")
        kind = unusable_kind(value)
        size = path.stat().st_size
        if kind is None and value.numel() > size:  # one value, repeated by a stride of 0
            kind = f"a tensor of {value.numel():,} values in a file of {size:,} bytes"
        if kind is not None:
            raise CleansetError(f"{path}: {shown} is {kind}; expected dense tensors: save them as such")
    return table


def _content(path: Path) -> object:
    """The contents of the file, as its library reads it."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with warnings.catch_warnings(action="ignore"):  # of kinds of tensors that are refused
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises whatever the bytes lead it to
        objects = re.search(r"GLOBAL (\S+)", str(error))
        found = f"it holds {cut(one_line(objects[1]), MAX_KEY_CHARACTERS)}" if objects else reason(error)
        raise CleansetError(
            f"{path}: not plain tensors ({found}); expected safetensors, or a .pt with tensors only: fetch it again if "
            "it is incomplete, or load it where you trust it, and save its state_dict with safetensors.torch.save_file"
        ) from None


def _table_of(content: object, path: Path) -> dict[str, Tensor]:
    """The table of tensors, also where a training program has put it under a key of its own."""
    if not isinstance(content, dict):
        raise CleansetError(f"{path}: no table of tensors; expected a state_dict")
    nested = [key for key in _NESTED if _is_table(content.get(key))]
    if len(nested) > 1:
        raise CleansetError(f"{path}: tensors under {' and '.join(nested)}; expected one: save the one that is meant")
    table = content[nested[0]] if nested else content
    if not _is_table(table):
        raise CleansetError(f"{path}: no table of tensors; expected a state_dict")
    return dict(table)


def _is_table(content: object) -> bool:
    return isinstance(content, dict) and bool(content) and all(isinstance(value, Tensor) for value in content.values())


def unusable_kind(tensor: Tensor) -> str | None:
    """The reason why a tensor has no values to compute with, such as a sparse tensor; None for an ordinary one."""
    if nn.parameter.is_lazy(tensor):  # which has no layout to ask for
        return "a parameter without values yet"
    kinds = {
        "a nested tensor": tensor.is_nested,
        "a meta tensor, which has no values": tensor.is_meta,
        "a quantized tensor": tensor.is_quantized,
        "a sparse tensor": tensor.layout is not torch.strided,
    }
    return next((kind for kind, is_so in kinds.items() if is_so), None)


# prefixes of the keys, from data parallel training, Lightning, or a compiled network
_WRAPPERS = ("module.", "model.", "_orig_mod.")
_CONSTANTS = ("normalize.mean", "normalize.std")
# keys of torchvision's DenseNets: modules were called norm.1 when they were saved, and are called norm1
_OLD_DENSE = re.compile(r"(.*denselayer\d+\.(?:norm|relu|conv))\.([12]\..*)")
# end of the keys of counters that are only used in training: they may be missing, and of any type of number
_COUNTER = ".num_batches_tracked"
MAX_KEYS = 3
"""Keys that an error message lists."""


def load_checkpoint(network: nn.Module, path: Path, timm_name: str | None) -> None:
    """Load the weights at `path` into a network; `timm_name` is its name in timm, if it is timm's.

    Raises CleansetError if the file holds anything but tensors, if they do not fit the network key by key, or if one
    is NaN or infinite.
    """
    tensors = read_tensors(path)
    if not _load_by_key(network, tensors, path) and not (timm_name and _load_as_timm(network, timm_name, tensors)):
        raise CleansetError(f"{path}: does not fit the model: {_described_differences(network, tensors)}")
    for key, value in network.state_dict().items():
        if value.is_floating_point() and not value.isfinite().all():
            key = key.removeprefix("1.")  # of the network behind our normalisation
            raise CleansetError(f"{path}: {key!r} holds NaN or infinity; expected finite weights: fetch them again")


def _load_by_key(network: nn.Module, tensors: dict[str, Tensor], path: Path) -> bool:
    """Load tensors whose keys are those of the network, or of the one behind its normalisation.

    A prefix of `_WRAPPERS` that all keys share is dropped. Constants of a normalisation that
    come along are loaded where RobustBench does, and must agree with timm's. False if they do not fit.
    """
    for form in _forms(tensors):  # a network may itself have a part called model
        if _fits(network, form):
            return _load(network, form)
    tensors = _bare(tensors)
    constants = {key: tensors[key] for key in _CONSTANTS if key in tensors}
    inner = _inner(network)
    rest = _bare({key: value for key, value in tensors.items() if key not in constants})
    if not _fits(inner, rest) or (constants and inner is network):
        return False
    if constants:
        ours = [value.flatten().float().tolist() for value in network[0].state_dict().values()]  # type: ignore[index]
        theirs = [value.flatten()[:3].real.float().tolist() for value in constants.values()]
        if ours != theirs:
            raise CleansetError(
                f"{path}: trained with normalisation {theirs}, the model's is {ours}; "
                "expected the weights of exactly this model"
            )
    return _load(inner, rest)


def _inner(network: nn.Module) -> nn.Module:
    """The network behind its normalisation."""
    return network[1] if isinstance(network, nn.Sequential) and len(network) == 2 else network


def _forms(tensors: dict[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """The tensors unchanged, then without what wrappers add: one prefix that all keys share after the other.

    MadryLab's robustness saves the network twice, as `model.` and inside `attacker.`, and calls the
    constants of the normalisation otherwise than RobustBench does.
    """
    yield tensors
    if not tensors:
        return
    while prefix := next((p for p in _WRAPPERS if all(key.startswith(p) for key in tensors)), ""):
        tensors = {key.removeprefix(prefix): value for key, value in tensors.items()}
        yield tensors
    if any(_OLD_DENSE.fullmatch(key) for key in tensors):
        tensors = {_OLD_DENSE.sub(r"\1\2", key): value for key, value in tensors.items()}
        yield tensors
    if "normalizer.new_mean" in tensors and "attacker.normalize.new_mean" in tensors:
        tensors = {key: value for key, value in tensors.items() if not key.startswith("attacker.")}
        for ours, theirs in zip(_CONSTANTS, ("normalizer.new_mean", "normalizer.new_std"), strict=True):
            if theirs in tensors:
                tensors[ours] = tensors.pop(theirs).flatten().view(1, -1, 1, 1)
        yield tensors


def _bare(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The last of the forms."""
    return list(_forms(tensors))[-1]


def _differences(network: nn.Module, tensors: dict[str, Tensor]) -> dict[str, list[str]]:
    """The keys in which tensors differ from a network's, by kind; types differ where one of two is floating point."""
    wanted = network.state_dict()
    both = sorted(set(wanted) & set(tensors))
    return {
        "missing keys": [key for key in sorted(set(wanted) - set(tensors)) if not key.endswith(_COUNTER)],
        "unexpected keys": sorted(set(tensors) - set(wanted)),
        "shape mismatch": [key for key in both if wanted[key].shape != tensors[key].shape],
        "type mismatch": [key for key in both if not _same_type(key, wanted[key], tensors[key])],
    }


def _same_type(key: str, wanted: Tensor, found: Tensor) -> bool:
    if found.is_complex():
        return False
    return key.endswith(_COUNTER) or wanted.is_floating_point() == found.is_floating_point()


def _fits(network: nn.Module, tensors: dict[str, Tensor]) -> bool:
    return not any(_differences(network, tensors).values())


def _load(network: nn.Module, tensors: dict[str, Tensor]) -> bool:
    network.load_state_dict(network.state_dict() | tensors)
    return True


def _load_as_timm(network: nn.Module, name: str, tensors: dict[str, Tensor]) -> bool:
    """Load tensors of an older layout as timm does, which renames keys for many models.

    timm also resamples tensors whose size differs, such as the position embedding of a vision transformer for
    larger images. That is another model, so False unless every value is taken from the file unchanged.
    """
    inner = _inner(network)
    tensors = _bare(tensors)
    wanted = inner.state_dict()
    for key, value in tensors.items():
        if key in wanted and not _same_type(key, wanted[key], value):
            return False
    try:
        loaded = timm.create_model(name, pretrained=True, pretrained_cfg_overlay={"state_dict": dict(tensors)})
    except Exception:  # timm's filters raise whatever the keys lead them to
        return False
    found = loaded.state_dict()
    if found.keys() != wanted.keys():  # RobustBench adds layers to some of timm's networks
        return False
    sizes = {value.numel() for value in found.values()}
    given = {_digest(value) for value in tensors.values() if value.is_floating_point() and value.numel() in sizes}
    if any(value.is_floating_point() and _digest(value) not in given for value in found.values()):
        return False
    return _load(inner, found)


def _digest(tensor: Tensor) -> bytes:
    """SHA-256 of the values in their order, as float32."""
    return hashlib.sha256(tensor.detach().to(torch.float32).contiguous().numpy().tobytes()).digest()


def _described_differences(network: nn.Module, tensors: dict[str, Tensor]) -> str:
    """The differences between a checkpoint and the model, for people."""
    tensors = _bare(tensors)
    part = network if any(key in tensors for key in _CONSTANTS) else _inner(network)

    def listed(keys: list[str]) -> str:
        shown = [cut(key, MAX_KEY_CHARACTERS) for key in keys[:MAX_KEYS]]
        more = f" and {len(keys) - MAX_KEYS} more" if len(keys) > MAX_KEYS else ""
        return f"{shown}{more}" if keys else "none"

    found = ", ".join(f"{kind} {listed(keys)}" for kind, keys in _differences(part, tensors).items())
    return f"{found}; expected the weights of exactly this model"
