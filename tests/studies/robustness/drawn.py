"""One image that every machine draws alike, from whole numbers only: edges, gradients, fine texture, flat areas."""

import numpy as np
from numpy.typing import NDArray

from cleanset.studies.robustness.perturbations.changes import frames_of
from cleanset.studies.robustness.perturbations.params import frame_count


def drawn(height: int = 224, width: int = 224) -> NDArray[np.uint8]:
    """An image, uint8 of shape (height, width, 3)."""
    row, column = np.mgrid[:height, :width]
    image = np.stack([row * 255 // height, column * 255 // width, (row + column) * 255 // (height + width)], axis=-1)
    disc = (2 * row - height) ** 2 + (2 * column - width) ** 2 < (min(height, width) * 2 // 3) ** 2
    image[disc] = (200, 60, 30)
    texture = (row * row * 7 + column * row * 3 + column * 11) % 61
    image[disc & (column < width // 2)] += texture[disc & (column < width // 2), None] - 30
    image[: height // 8, : width // 8] = 0
    image[-height // 8 :, -width // 8 :] = 255
    image[: height // 8, -width // 8 :] = 128
    image[(row - column) % 37 == 0] = (20, 220, 120)
    return image.astype(np.uint8)


def drawn_object(height: int = 224, width: int = 224) -> NDArray[np.bool_]:
    """The mask of the disc in `drawn`."""
    row, column = np.mgrid[:height, :width]
    inside: NDArray[np.bool_] = (2 * row - height) ** 2 + (2 * column - width) ** 2 < (min(height, width) * 2 // 3) ** 2
    return inside


def perturbed_frames(
    image: NDArray[np.uint8], name: str, seed: int = 0, *, level: int = 1, first_30: bool = False, size: int = 224
) -> list[NDArray[np.uint8]]:
    """All frames of one perturbation, each uint8 of shape (size, size, 3)."""
    frames = frames_of(image, name, seed, level=level, size=size)
    return [frames(number) for number in range(frame_count(name, first_30=first_30))]
