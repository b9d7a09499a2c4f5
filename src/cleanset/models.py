"""Models: weights, a named preprocessing, and the normalisation inside.

A model comes from timm, by name and tag, or from RobustBench's ImageNet zoo; its weights are
downloaded once or lie in a local file. Weight files may hold tensors only: nothing is unpickled.
"""

import hashlib
import sys
import warnings
from dataclasses import dataclass
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
    network, preprocessing = _timm_network(model) if model.source == "timm" else _robustbench_network(model)
    path = folder / model.weights if model.weights else _downloaded(model, folder / "data" / "weights")
    found = _checked_sha256(path, model)
    _load_weights(network, _read_tensors(path), path)
    return LoadedModel(network.eval().requires_grad_(False), preprocessing, found)


def _timm_network(model: Model) -> tuple[nn.Module, Preprocessing]:
    if ":" in model.name:  # hf-hub:… would read a configuration from elsewhere
        raise CleansetError(f"params.yaml: {model.name!r}; expected a model name of timm {timm.__version__}")
    try:
        network = timm.create_model(model.name, pretrained=False)
    except (RuntimeError, ValueError) as error:
        raise CleansetError(
            f"params.yaml: {model.name!r}: {error}; expected a model name of timm {timm.__version__}"
        ) from None
    if network.num_classes != CLASSES:
        raise CleansetError(f"{model.name}: {network.num_classes} classes; expected {CLASSES}, those of ImageNet-1k")
    config: dict[str, Any] = timm.data.resolve_data_config({}, model=network)
    try:
        preprocessing = timm_preprocessing(
            config["input_size"][-1], config["crop_pct"], config["interpolation"], config["crop_mode"]
        )
    except ValueError as error:
        raise CleansetError(f"{model.name}: {error}") from None
    return nn.Sequential(Normalise(config["mean"], config["std"]), network), preprocessing


def _robustbench_entry(model: Model) -> Any:
    """What RobustBench's ImageNet zoo holds under the model's name."""
    import pyautoattack

    # robustbench 1.1.1 imports autoattack, but depends on its renamed release
    sys.modules.setdefault("autoattack", pyautoattack)
    sys.modules.setdefault("autoattack.state", pyautoattack.state)
    with warnings.catch_warnings(action="ignore"):
        from robustbench.model_zoo.enums import ThreatModel
        from robustbench.model_zoo.imagenet import imagenet_models

    zoo = imagenet_models.get(ThreatModel(model.threat_model), {})
    if model.name not in zoo:
        raise CleansetError(
            f"params.yaml: {model.name!r} is not in RobustBench's ImageNet zoo for {model.threat_model}; "
            f"expected one of {', '.join(zoo) or 'another threat_model'}"
        )
    return zoo[model.name]


def _robustbench_network(model: Model) -> tuple[nn.Module, Preprocessing]:
    """RobustBench's network, which normalises by itself."""
    entry = _robustbench_entry(model)
    if entry["preprocessing"] != RES256CROP224.name:
        raise CleansetError(f"{model.name}: preprocessing {entry['preprocessing']}; expected {RES256CROP224.name}")
    return entry["model"](), RES256CROP224


def _downloaded(model: Model, folder: Path) -> Path:
    """The weights of a model of the zoos, downloaded into `folder` unless they are there."""
    if model.source == "timm":
        path = folder / "timm" / model.name / "model.safetensors"
    else:
        path = folder / "imagenet" / str(model.threat_model) / f"{model.name}.pt"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _download(model, path)
        except Exception as error:  # three libraries raise their own
            raise CleansetError(
                f"{path}: cannot be downloaded ({_first_line(error)}); put the weights of "
                f"{model.name} there, or name a file in params.yaml (weights and sha256)"
            ) from None
    return path


def _download(model: Model, path: Path) -> None:
    if model.source == "robustbench":
        from robustbench.utils import download_gdrive_new

        download_gdrive_new(_robustbench_entry(model)["gdrive_id"], path)
        return
    from huggingface_hub import hf_hub_download

    hub_id = timm.get_pretrained_cfg(model.name).hf_hub_id
    if not hub_id:
        raise ValueError("timm knows no address")
    hf_hub_download(f"timm/{model.name}" if hub_id == "timm/" else hub_id, path.name, local_dir=path.parent)


def _checked_sha256(path: Path, model: Model) -> str:
    if not path.is_file():
        raise CleansetError(f"{path}: missing; expected the weights of {model.name} (params.yaml)")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if model.sha256 not in (None, found):
        raise CleansetError(
            f"{path}: SHA-256 {found}, expected {model.sha256} as in params.yaml: fetch the weights again, "
            "or correct params.yaml if these are meant"
        )
    return found


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a .pt/.pth that holds tensors only, also under `state_dict`."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises whatever the bytes lead it to
        with path.open("rb") as file:
            is_html = file.read(64).lstrip().lower().startswith((b"<!doctype", b"<html"))
        found = "a web page, not weights: remove it" if is_html else f"not plain tensors ({_first_line(error)})"
        raise CleansetError(
            f"{path}: {found}; expected safetensors, or a .pt with tensors only: load it where you trust it, "
            "and save its state_dict with safetensors.torch.save_file"
        ) from None
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise CleansetError(f"{path}: no table of tensors; expected a state_dict")
    return content


def _load_weights(network: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Load tensors by key into the network, or into the model behind its normalisation.

    A prefix `module.` or `model.` that all keys share is dropped. RobustBench's checkpoints lack the
    constants of the normalisation, which the constructor has set.
    """
    inner = network[1] if isinstance(network, nn.Sequential) and isinstance(network[0], Normalise) else network
    for prefix in ("module.", "model."):
        if all(key.startswith(prefix) for key in tensors):
            tensors = {key.removeprefix(prefix): value for key, value in tensors.items()}
    inner = getattr(inner, "model", inner) if "normalize.mean" not in tensors else inner
    wanted = inner.state_dict()
    missing, surplus = sorted(set(wanted) - set(tensors)), sorted(set(tensors) - set(wanted))
    misshapen = sorted(k for k in set(wanted) & set(tensors) if wanted[k].shape != tensors[k].shape)
    if missing or surplus or misshapen:
        raise CleansetError(
            f"{path}: does not fit the model: missing {missing or 'none'}, surplus {surplus or 'none'}, "
            f"of another shape {misshapen or 'none'}; expected the weights of exactly this model"
        )
    inner.load_state_dict(tensors)
