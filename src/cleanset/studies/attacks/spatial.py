"""Rotations and translations of an image that is scaled down onto black: the spatial attacks of source 004's warm-up.

The scaled image is made once, in 8 bits; a rotation about the center and a translation after it are one bilinear
interpolation, rounded to 8 bits. Pixels are those of an image of 224 x 224 and grow with the image.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from PIL import Image
from pydantic import Field

from cleanset.images.preprocessing import BASE_SIZE
from cleanset.studies.attacks.base import (
    LEVELS,
    Ball,
    Known,
    Parameters,
    Pixels,
    Result,
    Scale,
    Subject,
    Uses,
    margins,
    seed_for,
    to_pixels,
)

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from torch import Tensor

    from cleanset.scoring.differentiable import PixelNetwork

Offsets = Annotated[list[Annotated[float, Field(ge=-360, le=360)]], Field(min_length=1)]


class SpatialGridAttack(Parameters):
    """All combinations of translations (along both axes) and angles."""

    uses: ClassVar[Uses] = "classes"
    kind: Literal["spatial_grid"] = "spatial_grid"
    scale: Scale = 0.7
    translations: Offsets = Field(default_factory=lambda: [-18.0, -9.0, 0.0, 9.0, 18.0])
    angles: Offsets = Field(default_factory=lambda: [float(angle) for angle in range(-30, 31, 2)])

    def search(self, known: Known) -> "SpatialGrid":
        """The search."""
        return SpatialGrid(self.scale, tuple(self.translations), tuple(self.angles))


class RandomSpatialAttack(Parameters):
    """One rotation and translation; pixels are those of an image of 224 x 224."""

    uses: ClassVar[Uses] = "classes"
    kind: Literal["random_spatial"] = "random_spatial"
    scale: Scale = 204 / 224
    max_translation: Annotated[float, Field(ge=0, le=224)] = 18
    max_angle: Annotated[float, Field(ge=0, le=180)] = 30

    def search(self, known: Known) -> "RandomSpatial":
        """The search."""
        return RandomSpatial(self.scale, self.max_translation, self.max_angle, known.seed)


class Change(NamedTuple):
    """A translation to the right and downwards, in pixels of 224, and a rotation counterclockwise, in degrees."""

    dx: float
    dy: float
    angle: float


def scaled_on_black(pixels: Pixels, scale: float) -> Pixels:
    """The image with its sides times `scale` (Pillow's bilinear), centered on black; of the same shape."""
    size = pixels.shape[-1]
    side = max(1, round(size * scale))
    small = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0))).resize(
        (side, side), Image.Resampling.BILINEAR
    )
    found = np.zeros_like(pixels)
    begin = (size - side) // 2
    found[:, begin : begin + side, begin : begin + side] = np.asarray(small).transpose(2, 0, 1)
    return found


def rotated_and_moved(image: "Tensor", changes: "Tensor") -> "Tensor":
    """The image, of shape (3, size, size), rotated about its center and then translated; black from outside.

    `changes` has a row dx, dy, angle for each result, in pixels of this image and in degrees.
    """
    import torch

    size = image.shape[-1]
    places = torch.arange(size, dtype=image.dtype, device=image.device) - (size - 1) / 2
    dx, dy, angle = changes.to(image.dtype).T[:, :, None, None]
    right, down = places[None, None, :] - dx, places[None, :, None] - dy
    cosine, sine = torch.cos(torch.deg2rad(angle)), torch.sin(torch.deg2rad(angle))
    # without align_corners, -1 and 1 are the outer edges of the image: a pixel is 2 / size wide
    grid = torch.stack((cosine * right - sine * down, sine * right + cosine * down), dim=-1) * (2 / size)
    repeated = image[None].expand(len(changes), -1, -1, -1)
    return torch.nn.functional.grid_sample(repeated, grid, "bilinear", "zeros", align_corners=False)


@dataclass(frozen=True, slots=True)
class SpatialGrid:
    """Every combination of translations and angles; the one with the largest margin of another class is kept."""

    scale: float
    translations: tuple[float, ...]
    angles: tuple[float, ...]
    name: str = "spatial_grid"
    group_size: int = 1
    ball: Ball | None = None

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """The worst change of each image."""
        return [self._worst(network, subject) for subject in group]

    def _worst(self, network: "PixelNetwork", subject: Subject) -> Result:
        import torch

        start = scaled_on_black(subject.pixels, self.scale)
        image = torch.from_numpy(start).to(network.device, network.dtype)
        factor = subject.pixels.shape[-1] / BASE_SIZE
        changes = _grid(self.translations, self.angles, factor).to(network.device)
        queries, best, found = network.queries, -np.inf, image
        with torch.inference_mode():
            for part in torch.split(changes, network.batch_size):
                levels = torch.round(rotated_and_moved(image, part))
                logits = network(levels / LEVELS)
                found_margins = margins(logits, torch.full((len(part),), subject.class_index, device=network.device))
                place = int(found_margins.argmax())
                if float(found_margins[place]) > best:
                    best, found = float(found_margins[place]), levels[place].clone()
        return Result(to_pixels(found.to("cpu", torch.float64).numpy()), network.queries - queries)


@lru_cache(maxsize=2)
def _grid(translations: tuple[float, ...], angles: tuple[float, ...], factor: float) -> "Tensor":
    import torch

    rows = [(dx * factor, dy * factor, angle) for dx, dy, angle in product(translations, translations, angles)]
    return torch.tensor(rows, dtype=torch.float64)


@dataclass(frozen=True, slots=True)
class RandomSpatial:
    """One change of each image, drawn uniformly within limits; asks the network nothing."""

    scale: float
    max_translation: float
    max_angle: float
    seed: int
    name: str = "random_spatial"
    group_size: int = 1
    ball: Ball | None = None

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """A changed image for each."""
        return [
            Result(self.changed(subject), 0, seed=seed_for(self.seed, "random_spatial", subject)) for subject in group
        ]

    def change(self, subject: Subject) -> Change:
        """The change that is drawn for an image."""
        generator = np.random.default_rng(seed_for(self.seed, "random_spatial", subject))
        dx, dy = generator.uniform(-self.max_translation, self.max_translation, size=2)
        return Change(float(dx), float(dy), float(generator.uniform(-self.max_angle, self.max_angle)))

    def changed(self, subject: Subject) -> Pixels:
        """The changed image in 8 bits, computed in float64 on the CPU: the same on any machine."""
        import torch

        start = scaled_on_black(subject.pixels, self.scale)
        factor = subject.pixels.shape[-1] / BASE_SIZE
        dx, dy, angle = self.change(subject)
        change = torch.tensor([[dx * factor, dy * factor, angle]], dtype=torch.float64)
        return to_pixels(rotated_and_moved(torch.from_numpy(start).double(), change)[0].numpy())
