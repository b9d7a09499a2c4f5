"""Weight files: the tensors of a safetensors file, or of a .pt/.pth that holds tensors and plain values only.

No object is unpickled, so that a file from anywhere can be read.
"""

import json
import pickletools
import re
import warnings
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from cleanset.errors import CleansetError, cut, one_line, reason

_NESTED = ("state_dict", "model", "model_state_dict", "state_dict_ema", "model_ema")
"""Under which keys training programs keep the tensors, beside epochs and optimizers."""
_LEGACY_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa85019")
"""The beginning of a .pt from torch before 1.6: several pickles, then the storages."""
_LEGACY_PICKLES = 5
_ZIP_END_SIZE = 22
"""Bytes of the record at the end of a zip archive."""
_ZIP_END_SEARCH = _ZIP_END_SIZE + 2**16
"""Bytes at the end of a zip archive in which that record begins; a comment may follow it."""
MAX_NAME = 80
"""Characters of a key or an object's name in a message."""


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a weight file, by key, all of them dense.

    Raises CleansetError for a file that is cut off, damaged, empty, or holds anything but a table of tensors.
    """
    table = _table_of(_content(path), path)
    for key, value in table.items():
        shown = cut(repr(key), MAX_NAME)
        if not isinstance(key, str):
            raise CleansetError(f"{path}: a tensor under the key {shown}; expected keys that are text")
        if kind := _unusable_kind(value, path.stat().st_size):
            raise CleansetError(f"{path}: {shown} is {kind}; expected dense tensors: save them as such")
    return table


def _content(path: Path) -> object:
    """What the file holds, as its library reads it."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with warnings.catch_warnings(action="ignore"):  # of kinds of tensors that are refused
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises whatever the bytes lead it to
        if _is_truncated(path):
            raise CleansetError(
                f"{path}: truncated; expected a whole weight file: remove it and run again to download it, "
                "or fetch it again from where you have it"
            ) from None
        objects = re.search(r"GLOBAL (\S+)", str(error))
        found = f"it holds {cut(one_line(objects[1]), MAX_NAME)}" if objects else reason(error)
        raise CleansetError(
            f"{path}: not plain tensors ({found}); expected safetensors, or a .pt with tensors only: load "
            "it where you trust it, and save its state_dict with safetensors.torch.save_file (see README)"
        ) from None


def _is_truncated(path: Path) -> bool:
    """Whether a file that cannot be read is the beginning of a weight file."""
    with path.open("rb") as file:
        start = file.read(len(_LEGACY_MAGIC))
    if path.suffix == ".safetensors":
        return _is_truncated_safetensors(path)
    if start.startswith(b"PK\x03\x04"):
        return _is_truncated_zip(path)
    return start == _LEGACY_MAGIC and _is_truncated_legacy(path)


def _is_truncated_zip(path: Path) -> bool:
    """Whether a zip archive lacks the record at its end, or a part of it."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _ZIP_END_SEARCH))
        end = file.read()
    at = end.rfind(b"PK\x05\x06")
    return at < 0 or len(end) - at < _ZIP_END_SIZE


def _is_truncated_safetensors(path: Path) -> bool:
    """Whether the file ends before its header, or before the last tensor that the header names."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 9 or 8 + length > size:
            return size < 8 or file.read(1) in (b"", b"{")
        try:
            header = json.loads(file.read(length))
            ends = [entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"]
            return bool(8 + length + max(ends, default=0) > size)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            return False


def _is_truncated_legacy(path: Path) -> bool:
    """Whether one of the pickles, or the storages behind them, end too early."""
    with path.open("rb") as file:
        try:
            for _ in range(_LEGACY_PICKLES):
                for _ in pickletools.genops(file):
                    pass
        except Exception:  # a damaged length ends in MemoryError or OverflowError
            return not file.read(1)
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        return "unexpected EOF" in str(error) or isinstance(error, EOFError)
    return False


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


def _unusable_kind(tensor: Tensor, file_size: int) -> str | None:
    """What a tensor is that cannot be a weight as it is; None for an ordinary one."""
    if tensor.is_nested:
        return "a nested tensor"
    if tensor.is_meta:
        return "a meta tensor, which has no values"
    if tensor.is_quantized:
        return "a quantized tensor"
    if tensor.layout is not torch.strided:
        return "a sparse tensor"
    if tensor.numel() > file_size:  # one value, repeated by a stride of 0
        return f"a tensor of {tensor.numel():,} values in a file of {file_size:,} bytes"
    return None
