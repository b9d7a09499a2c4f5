"""Models: weights, a named preprocessing, and the normalisation inside.

A model comes from timm, by name and tag, or from RobustBench's ImageNet zoo; its weights are
downloaded once or lie in a local file. Weight files may hold tensors only: nothing is unpickled.
"""

import hashlib
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import timm
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from cleanset.errors import CleansetError
from cleanset.ilsvrc import CLASSES
from cleanset.images import RES256CROP224, Preprocessing, timm_preprocessing
from cleanset.params import Model
from cleanset.scoring.downloads import Drive, Hub, fetch, what_instead_of_weights


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """`network` maps pixels in [0, 1], shape (n, 3, size, size), to logits of shape (n, 1000)."""

    network: nn.Module
    preprocessing: Preprocessing
    weights_sha256: str


class Normalise(nn.Module):
    """(x - mean) / std, each of the three channels by its own."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float64).view(1, -1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Normalised pixels, in the precision of `pixels`."""
        return (pixels - self.mean.to(pixels.dtype)) / self.std.to(pixels.dtype)


def load_model(model: Model, folder: Path) -> LoadedModel:
    """Build a model and load its weights; `folder` is the edition's, downloads go to data/weights in it.

    Raises CleansetError if the weights are missing, of another SHA-256 than params.yaml says, not
    plain tensors, or do not fit the model key by key.
    """
    preprocessing = preprocessing_of(model)
    network = _timm_network(model) if model.source == "timm" else _robustbench_entry(model)["model"]()
    path = weights_at_hand(model, folder)
    found = sha256_of(path)
    if model.sha256 not in (None, found):
        raise CleansetError(
            f"{path}: SHA-256 {found}, expected {model.sha256} as in params.yaml: fetch the weights again, "
            "or correct params.yaml if these are meant"
        )
    tensors = _read_tensors(path)
    if not _load_by_key(network, tensors, path) and not (
        model.source == "timm" and _load_as_timm(network, model, tensors)
    ):
        raise CleansetError(f"{path}: does not fit the model: {_differences(network, tensors)}")
    return LoadedModel(network.eval().requires_grad_(False), preprocessing, found)


def describe(model: Model, loaded: LoadedModel) -> dict[str, object]:
    """What was run, in plain values: the same for the same model on every machine."""
    return {
        "source": model.source,
        "name": model.name,
        **({"threat_model": model.threat_model} if model.threat_model else {}),
        "preprocessing": asdict(loaded.preprocessing),
        "weights_sha256": loaded.weights_sha256,
    }


def preprocessing_of(model: Model) -> Preprocessing:
    """The preprocessing that the model was trained for; builds no network.

    Raises CleansetError if timm or RobustBench has no such model, or not one that can be served.
    """
    if model.source == "robustbench":
        entry = _robustbench_entry(model)
        if entry.get("preprocessing") != RES256CROP224.name:
            raise CleansetError(
                f"{model.name}: preprocessing {entry.get('preprocessing')}; expected {RES256CROP224.name}"
            )
        return RES256CROP224
    config: dict[str, Any] = timm.data.resolve_data_config({}, pretrained_cfg=_timm_config(model).to_dict())
    try:
        return timm_preprocessing(
            config["input_size"][-1], config["crop_pct"], config["interpolation"], config["crop_mode"]
        )
    except ValueError as error:
        raise CleansetError(f"{model.name}: {error}") from None


def weights_path(model: Model, folder: Path) -> Path:
    """Where a model's weights lie or will lie, in an edition's folder."""
    if model.weights is not None:
        return folder / model.weights
    weights = folder / "data" / "weights"
    if model.source == "timm":
        return weights / "timm" / model.name / "model.safetensors"
    return weights / "imagenet" / str(model.threat_model) / f"{model.name}.pt"  # where RobustBench looks


def weights_at_hand(model: Model, folder: Path) -> Path:
    """The weights of a model, downloaded unless they are there; then nothing goes over the network.

    Raises CleansetError if they are missing, cannot be downloaded, or something else lies in their place.
    """
    path = weights_path(model, folder)
    if model.weights is not None:
        if not path.is_file():
            raise CleansetError(f"{path}: missing; expected the weights of {model.name} (params.yaml)")
    elif not path.is_file():
        _download(model, path)
    if (other := what_instead_of_weights(path)) is not None:
        if model.weights is not None:
            raise CleansetError(f"{path}: {other}, not weights: remove it; expected the weights of {model.name}")
        path.unlink()
        raise CleansetError(f"{path}: {other}, not weights: removed; run again to download the weights of {model.name}")
    return path


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(model: Model, path: Path) -> None:
    origin = _origin(model)
    try:
        if origin is None:
            raise ValueError(f"{model.source} has no address")
        fetch(origin, path)
    except ValueError as error:
        by_hand = f"save {origin.url} under that name" if origin else "put a file there"
        raise CleansetError(
            f"{path}: cannot be downloaded ({error}); run again, or {by_hand}, "
            f"or name a file with the weights of {model.name} in params.yaml (weights and sha256)"
        ) from None


def _origin(model: Model) -> Hub | Drive | None:
    """Where the zoos keep a model's weights; None if they do not say."""
    if model.source == "robustbench":
        return Drive(_robustbench_entry(model)["gdrive_id"])
    config = _timm_config(model)
    return Hub(config.hf_hub_id, config.hf_hub_filename or "model.safetensors") if config.hf_hub_id else None


def _timm_config(model: Model) -> Any:
    """timm's configuration of a pretrained model."""
    expected = f"expected a model name of timm {timm.__version__}"
    if ":" in model.name:  # hf-hub:… would read a configuration from elsewhere
        raise CleansetError(f"params.yaml: {model.name!r}; {expected}")
    try:
        config = timm.get_pretrained_cfg(model.name, allow_unregistered=False)
    except RuntimeError as error:
        raise CleansetError(f"params.yaml: {model.name!r}: {str(error).rstrip('.')}; {expected}") from None
    if config.num_classes != CLASSES:
        raise CleansetError(f"{model.name}: {config.num_classes} classes; expected {CLASSES}, those of ImageNet-1k")
    return config


def _timm_network(model: Model) -> nn.Module:
    """timm's network behind its normalisation."""
    config = _timm_config(model)
    return nn.Sequential(Normalise(config.mean, config.std), timm.create_model(model.name, pretrained=False))


def _robustbench_entry(model: Model) -> Any:
    """What RobustBench's ImageNet zoo holds under the model's name."""
    import pyautoattack

    # robustbench 1.1.1 imports autoattack, but depends on its renamed release
    sys.modules.setdefault("autoattack", pyautoattack)
    sys.modules.setdefault("autoattack.state", pyautoattack.state)
    with warnings.catch_warnings(action="ignore"), _homeless():
        from robustbench.model_zoo.enums import ThreatModel
        from robustbench.model_zoo.imagenet import imagenet_models

    zoo = imagenet_models.get(ThreatModel(model.threat_model), {})
    # the others fetch their own weights when they are built, or are several in one
    served = [name for name, entry in zoo.items() if entry["gdrive_id"] and isinstance(entry["gdrive_id"], str)]
    if model.name not in served:
        how = "is not downloaded as one file by" if model.name in zoo else "is not in"
        raise CleansetError(
            f"params.yaml: {model.name!r} {how} RobustBench's ImageNet zoo for {model.threat_model}; "
            f"expected one of {', '.join(served) or 'another threat_model'}"
        )
    return zoo[model.name]


@contextmanager
def _homeless() -> Iterator[None]:
    """Without a home folder: gdown, which robustbench imports, would make a cache in it."""
    home = os.environ.get("HOME")
    os.environ["HOME"] = os.devnull
    try:
        yield
    finally:
        if home is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = home


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a .pt/.pth that holds tensors only, also nested."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises whatever the bytes lead it to
        objects = re.search(r"GLOBAL (\S+)", str(error))
        found = f"it holds {objects[1]}" if objects else next(iter(str(error).splitlines()), type(error).__name__)
        raise CleansetError(
            f"{path}: not plain tensors ({found}); expected safetensors, or a .pt with tensors only: load it "
            "where you trust it, and save its state_dict with safetensors.torch.save_file (see README)"
        ) from None
    if not isinstance(content, dict):
        raise CleansetError(f"{path}: no table of tensors; expected a state_dict")
    nested = [key for key in _NESTED if _is_table(content.get(key))]
    if len(nested) > 1:
        raise CleansetError(f"{path}: tensors under {' and '.join(nested)}; expected one: save the one that is meant")
    content = content[nested[0]] if nested else content
    if not _is_table(content):
        raise CleansetError(f"{path}: no table of tensors; expected a state_dict")
    return dict(content)


_NESTED = ("state_dict", "model", "model_state_dict", "state_dict_ema", "model_ema")
"""Under which keys training programs keep the tensors, beside epochs and optimizers."""


def _is_table(content: object) -> bool:
    return isinstance(content, dict) and bool(content) and all(isinstance(value, Tensor) for value in content.values())


def _load_by_key(network: nn.Module, tensors: dict[str, Tensor], path: Path) -> bool:
    """Load tensors whose keys are those of the network, or of the one behind its normalisation.

    A prefix `module.` or `model.` that all keys share is dropped. Constants of a normalisation that
    come along are loaded where RobustBench does, and must agree with timm's. False if they do not fit.
    """
    for form in _forms(tensors):  # a network may itself have a part called model
        if _fits(network, form):
            return _load(network, form)
    tensors = _bare(tensors)
    constants = {key: tensors[key] for key in _CONSTANTS if key in tensors}
    inner, rest = _inner(network), _bare({key: value for key, value in tensors.items() if key not in constants})
    if not _fits(inner, rest):
        return False
    if constants:
        ours = [value.flatten().float() for value in network[0].state_dict().values()]  # type: ignore[index]
        theirs = [value.flatten().float() for value in constants.values()]
        if [value.tolist() for value in ours] != [value.tolist() for value in theirs]:
            raise CleansetError(
                f"{path}: trained with normalisation {[value.tolist() for value in theirs]}, the model's is "
                f"{[value.tolist() for value in ours]}; expected the weights of exactly this model"
            )
    return _load(inner, rest)


_CONSTANTS = ("normalize.mean", "normalize.std")


def _inner(network: nn.Module) -> nn.Module:
    """The network behind its normalisation."""
    return network[1] if isinstance(network, nn.Sequential) and len(network) == 2 else network


def _forms(tensors: dict[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """As they are, then without what wrappers add: one prefix that all keys share after the other.

    MadryLab's robustness saves the network twice, as `model.` and inside `attacker.`, and calls the
    constants of the normalisation otherwise than RobustBench does.
    """
    yield tensors
    while prefix := next((p for p in ("module.", "model.") if all(key.startswith(p) for key in tensors)), ""):
        tensors = {key.removeprefix(prefix): value for key, value in tensors.items()}
        yield tensors
    if "normalizer.new_mean" in tensors and "attacker.normalize.new_mean" in tensors:
        tensors = {key: value for key, value in tensors.items() if not key.startswith("attacker.")}
        for ours, theirs in zip(_CONSTANTS, ("normalizer.new_mean", "normalizer.new_std"), strict=True):
            if theirs in tensors:
                tensors[ours] = tensors.pop(theirs).reshape(1, -1, 1, 1)
        yield tensors


def _bare(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The last of the forms."""
    return list(_forms(tensors))[-1]


def _fits(network: nn.Module, tensors: dict[str, Tensor]) -> bool:
    return not any(_comparison(network, tensors))


def _comparison(network: nn.Module, tensors: dict[str, Tensor]) -> tuple[list[str], list[str], list[str]]:
    """Keys that are missing, surplus, and of another shape; counters that are only used in training may be missing."""
    wanted = network.state_dict()
    missing = [key for key in sorted(set(wanted) - set(tensors)) if not key.endswith(".num_batches_tracked")]
    surplus = sorted(set(tensors) - set(wanted))
    misshapen = sorted(key for key in set(wanted) & set(tensors) if wanted[key].shape != tensors[key].shape)
    return missing, surplus, misshapen


def _load(network: nn.Module, tensors: dict[str, Tensor]) -> bool:
    network.load_state_dict(network.state_dict() | tensors)
    return True


def _load_as_timm(network: nn.Module, model: Model, tensors: dict[str, Tensor]) -> bool:
    """Load tensors of an older layout the way timm does, which renames keys for many models."""
    try:
        overlay = {"state_dict": _bare(tensors)}
        loaded = timm.create_model(model.name, pretrained=True, pretrained_cfg_overlay=overlay)
    except Exception:  # timm's filters raise whatever the keys lead them to
        return False
    return _load(_inner(network), loaded.state_dict())


def _differences(network: nn.Module, tensors: dict[str, Tensor]) -> str:
    """How a checkpoint differs from the model, by key."""
    tensors = _bare(tensors)
    part = network if any(key in tensors for key in _CONSTANTS) else _inner(network)
    missing, surplus, misshapen = _comparison(part, tensors)

    def listed(keys: list[str]) -> str:
        more = f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else ""
        return f"{keys[:MOST_KEYS]}{more}" if keys else "none"

    return (
        f"missing {listed(missing)}, surplus {listed(surplus)}, of another shape {listed(misshapen)}; "
        "expected the weights of exactly this model"
    )


MOST_KEYS = 20
"""Keys that an error message lists."""
