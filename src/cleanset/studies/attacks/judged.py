"""The verdict on a candidate: the float64 logits of the PNG that holds it, and how far it is from the image.

Whoever has the file gets the same verdict on any machine, whatever the search was computed in. One of the distances is
learned: LPIPS (Zhang and others 2018), as the library lpips 0.1.4 computes it. The library brings its linear layers, of
version 0.1; AlexNet's weights, which it would download, are read from a file.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.images import codec
from cleanset.scoring.checkpoints import load_checkpoint
from cleanset.scoring.differentiable import pixel_network
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import Precision, arithmetic, to_device
from cleanset.studies.attacks.base import LEVELS, Ball, Pixels, Result, Subject, globally_seeded, to_unit

Logits = NDArray[np.float64]
"""The logits of one image, of shape (classes,)."""


CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Distances:
    """The distances of a candidate from the image: pixels in 0..1, all 0 (and SSIM 1) for the image itself.

    `l0`: the places where any color differs. `ssim`: structural similarity as scikit-image computes it by default.
    `lpips`: None where it is not measured.
    """

    l0: int
    l2: float
    linf: float
    ssim: float
    lpips: float | None = None


class Judge:
    """The float64 logits of images by one model; each image goes through the network alone.

    So the logits of an image do not depend on the others, bit for bit. A random model draws on the CPU, from the
    beginning of a seed for each image: so they are the same on any machine and whenever they are asked for. What a
    custom random model draws is its own; the global generators of torch and numpy begin at the same seed.
    `lpips`: None for leaving LPIPS out. `precision`: another than float64 for a network that does not run in it.
    """

    def __init__(
        self,
        model: LoadedModel,
        device: torch.device,
        lpips: "Lpips | None" = None,
        precision: Precision = "float64",
    ) -> None:
        self._network, self.lpips = pixel_network(model, device, precision), lpips

    def logits(self, images: Sequence[Pixels], seeds: Sequence[int] | None = None) -> list[Logits]:
        """The logits of each image. Raises CleansetError if one of them is not finite.

        `seeds` are for a random model, one for each image; without them it goes on drawing.
        """
        found = []
        with arithmetic(self._network.precision), torch.inference_mode():
            for place, image in enumerate(images):
                found.append(self._answer(image, None if seeds is None else seeds[place]))
        if not all(np.isfinite(each).all() for each in found):
            raise CleansetError(
                "the model gives a logit that is NaN or infinite; expected finite ones: check its weights"
            )
        return found

    def _answer(self, image: Pixels, seed: int | None) -> Logits:
        with nullcontext() if seed is None else globally_seeded(seed, self._network.device):
            if seed is not None:
                # on the CPU: each GPU draws other numbers
                self._network.reseed(seed, CPU)
            return np.asarray(self._network(to_unit([image], self._network))[0].double().cpu().numpy())

    def verdict(
        self, subject: Subject, result: Result, ball: Ball | None, before: Logits, seed: int | None = None
    ) -> dict[str, Any]:
        """The verdict on a candidate, by the PNG that holds it, as columns of SHARD; logits are in float64.

        `before` are the logits of the image; `seed` is for a random model. Raises CleansetError if the candidate is not
        in the ball that the attack promised.
        """
        center = subject.pixels if result.center is None else result.center
        from_center = None if ball is None else ball.distance(center, result.candidate)
        if ball is not None and not ball.contains(center, result.candidate):
            raise CleansetError(
                f"{subject.name}: a candidate at {ball.norm} {from_center:.6g}; expected at most {ball.eps:.6g}: "
                "the attack is wrong, please report it"
            )
        # the file is judged, not the array: whoever has the file gets the same verdict
        png = png_of(result.candidate)
        (after,) = self.logits([pixels_of_png(png)], None if seed is None else [seed])
        return {
            "content": png,
            "png_sha256": sha256(png),
            "seed": result.seed,
            "queries": result.queries,
            "logits_before": before,
            "logits_after": after,
            "was_correct": int(before.argmax()) == subject.class_index,
            "is_error": int(after.argmax()) != subject.class_index,
            **asdict(distances(subject.pixels, result.candidate, self.lpips)),
            "from_center": from_center,
            "notices": list(result.notices),
        }


def png_of(pixels: Pixels) -> bytes:
    """The PNG of an image."""
    return codec.png(Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0))))


def pixels_of_png(png: bytes) -> Pixels:
    """The pixels in a PNG. Raises ValueError if it cannot be read."""
    image = codec.decode(png, ("PNG",)).convert("RGB")
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def distances(image: Pixels, candidate: Pixels, lpips: "Lpips | None" = None) -> Distances:
    """The distances of a candidate; sides of at least 7 pixels."""
    from skimage.metrics import structural_similarity

    similarity: Callable[..., float] = structural_similarity
    # differences of uint8 would wrap around
    difference = np.abs(candidate.astype(np.int64) - image)
    return Distances(
        int((difference > 0).any(axis=0).sum()),
        float(np.sqrt((difference**2).sum())) / LEVELS,
        float(difference.max()) / LEVELS,
        float(similarity(image, candidate, channel_axis=0, data_range=LEVELS)),
        None if lpips is None else lpips(image, candidate),
    )


MIN_SIDE = 31
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
        self.weights_sha256, self._device = sha256(weights.read_bytes()), device
        self._metric = metric.eval().to(device, torch.float64)

    def __call__(self, image: Pixels, other: Pixels) -> float:
        """The distance of two images, uint8 of shape (3, size, size). Raises CleansetError for one below MIN_SIDE."""
        if min(image.shape[1:]) < MIN_SIDE:
            raise CleansetError(
                f"lpips: an image of {image.shape[2]} x {image.shape[1]} pixels; expected at least {MIN_SIDE} "
                "a side, as AlexNet needs: set lpips: null in studies/attacks/params.yaml"
            )
        pair = to_device(torch.from_numpy(np.stack((image, other))), self._device).double() / LEVELS
        with arithmetic("float64"), torch.inference_mode():
            # normalize: the library expects pixels in -1..1, these are in 0..1
            return float(self._metric(pair[:1], pair[1:], normalize=True))
