"""LPIPS, the learned distance of two images (Zhang and others 2018): AlexNet, as the library lpips 0.1.4 computes it.

The library brings its linear layers, of version 0.1; AlexNet's weights, which it would download, are read from a file.
"""

import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn

from cleanset.errors import CleansetError
from cleanset.images.preprocessing import PixelPlanes
from cleanset.plumbing.files import sha256
from cleanset.scoring.checkpoints import load_checkpoint
from cleanset.scoring.devices import to_device
from cleanset.scoring.scorer import arithmetic
from cleanset.studies.attacks.base import LEVELS
from cleanset.studies.attacks.study import AttackParams

MIN_LPIPS_SIDE = 31
"""Pixels; AlexNet has nothing left of a smaller image."""


class Lpips:
    """LPIPS with AlexNet, in float64 on one device; 0 for equal images.

    `weights`: torchvision's of AlexNet (alexnet-owt-7be5be79.pth), or the same as safetensors. Raises CleansetError
    without such a file.
    """

    def __init__(self, weights: Path, device: torch.device) -> None:
        if not weights.is_file():
            raise CleansetError(
                f"lpips: {weights} not found; expected AlexNet's weights as torchvision publishes them "
                "(alexnet-owt-7be5be79.pth): put them there, or set lpips: null in studies/attacks/params.yaml"
            )
        import lpips
        from torchvision.models import alexnet

        network = alexnet(weights=None)
        load_checkpoint(network, weights, None)
        # torchvision warns about how the library calls it
        with warnings.catch_warnings(action="ignore"):
            # pnet_rand: random weights in place of a download; they are replaced below
            metric: nn.Module = lpips.LPIPS(net="alex", version="0.1", pnet_rand=True, verbose=False)
        slices = metric.net.named_parameters()  # type: ignore[union-attr]
        loaded = network.features.state_dict()
        with torch.no_grad():
            for name, parameter in slices:
                # lpips calls features.0.weight slice1.0.weight
                parameter.copy_(loaded[name.partition(".")[2]])
        self.weights_sha256 = sha256(weights.read_bytes())
        self._device = device
        self._metric = metric.eval().to(device, torch.float64)

    def __call__(self, image: PixelPlanes, other: PixelPlanes) -> float:
        """The distance of two images, uint8 of shape (3, size, size). Raises CleansetError for a smaller one."""
        if min(image.shape[1:]) < MIN_LPIPS_SIDE:
            raise CleansetError(
                f"lpips: an image of {image.shape[2]} x {image.shape[1]} pixels; expected at least {MIN_LPIPS_SIDE} "
                "a side, as AlexNet needs: set lpips: null in studies/attacks/params.yaml"
            )
        pair = to_device(torch.from_numpy(np.stack((image, other))), self._device).double() / LEVELS
        with arithmetic("float64"), torch.inference_mode():
            # normalize: the library expects pixels in -1..1, these are in 0..1
            return float(self._metric(pair[:1], pair[1:], normalize=True))


def lpips_of(folder: Path, settings: AttackParams, device: torch.device) -> Lpips | None:
    """LPIPS with the weights that the params name, relative to a folder; None without weights."""
    return None if settings.lpips is None else Lpips(folder / settings.lpips, device)
