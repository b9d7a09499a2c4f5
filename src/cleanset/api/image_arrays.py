"""Images as users of Python have them, NumPy, PIL or torch, one or a batch, to pixels and back to the same kind."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import InputError
from cleanset.images.preprocessing import Pixels

EXPECTED = (
    "expected an image or a batch of images: a PIL image or a list of them, a NumPy array of uint8 and shape "
    "(height, width, 3) or (n, height, width, 3), or a torch tensor of shape (3, height, width) or "
    "(n, 3, height, width), uint8 or floating point from 0 to 1"
)


def changed_like(images: Any, change: Callable[[Pixels, int], Pixels]) -> Any:
    """The images, each changed by a function of its pixels and of its number in the batch, as the same kind of object.

    `change` gets and returns uint8 of shape (height, width, 3), red first. Raises InputError for anything else than
    images, and for changed images of a batch in an array that are of different sizes.
    """
    if isinstance(images, Image.Image):
        return Image.fromarray(change(_of_pil(images), 0))
    if isinstance(images, list | tuple):
        return [changed_like(each, partial(_numbered, change, number)) for number, each in enumerate(images)]
    if isinstance(images, np.ndarray):
        return _of_array(images, change)
    if hasattr(images, "detach") and hasattr(images, "is_floating_point"):
        return _of_tensor(images, change)
    raise InputError(f"a value of type {type(images).__name__}; {EXPECTED}")


def _numbered(change: Callable[[Pixels, int], Pixels], number: int, pixels: Pixels, _: int) -> Pixels:
    return change(pixels, number)


def _of_pil(image: Image.Image) -> Pixels:
    return np.asarray(image.convert("RGB"))


def _of_array(images: NDArray[Any], change: Callable[[Pixels, int], Pixels]) -> Pixels:
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or images.shape[-1] != 3 or not images.size:
        raise InputError(f"an array of {images.dtype} and shape {images.shape}; {EXPECTED}")
    if images.ndim == 3:
        return change(np.ascontiguousarray(images), 0)
    return _stacked([change(np.ascontiguousarray(each), number) for number, each in enumerate(images)])


def _stacked(found: Sequence[Pixels]) -> Pixels:
    sizes = {each.shape for each in found}
    if len(sizes) > 1:
        raise InputError(f"changed images of shapes {', '.join(map(str, sorted(sizes)))}; expected one: pass a list")
    return np.stack(found)


def _of_tensor(images: Any, change: Callable[[Pixels, int], Pixels]) -> Any:
    import torch

    is_real = images.is_floating_point()
    shape = tuple(images.shape)
    if not (is_real or images.dtype == torch.uint8) or len(shape) not in (3, 4) or shape[-3] != 3 or 0 in shape:
        raise InputError(f"a tensor of {images.dtype} and shape {shape}; {EXPECTED}")
    pixels = images.detach()
    if is_real:
        low, high = float(pixels.min()), float(pixels.max())
        # not `<`, which is false for NaN
        if not (low >= 0 and high <= 1):
            raise InputError(
                f"a tensor of {images.dtype} with values {low:g} to {high:g}; expected pixels from 0 to 1: change the "
                "image before it is normalised"
            )
        pixels = (pixels.double() * 255).round().to(torch.uint8)
    rows = np.ascontiguousarray(pixels.cpu().movedim(-3, -1).numpy())
    changed = torch.from_numpy(np.array(_of_array(rows, change))).movedim(-1, -3).contiguous()
    if is_real:
        changed = changed.to(images.dtype) / 255
    changed = changed.to(images.device)
    # torchvision's Image stays one
    if type(images) is not torch.Tensor and "torchvision.tv_tensors" in sys.modules:
        return sys.modules["torchvision.tv_tensors"].wrap(changed, like=images)
    return changed
