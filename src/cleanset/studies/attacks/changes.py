"""Attacks that apply given changes without a gradient: none, spatial, common corruptions, known mistakes.

The unchanged image goes through the same loop as all attacks.

Spatial: rotations and translations of an image that is scaled down onto black, of the warm-up of Unrestricted
Adversarial Examples. The scaled image is made once, in 8 bits; a rotation and a translation after it are one bilinear
interpolation: Pillow's on the grid, as in the warm-up's code, and at random one about the center, rounded to 8 bits.
Pixels refer to an image of 224 x 224 and grow with the image. Common corruptions: the worst of them at severity 1, by
the largest logit of another class.

Guess and check asks the network nothing. It takes the most confident mistake that the model is known to make on any
image of the class: the answers to the images and their changes are stored already.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice, product
from math import cos, radians, sin
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from PIL import Image
from pydantic import Field

from cleanset.images.preprocessing import BASE_SIZE, PixelPlanes
from cleanset.planning.work import Passes
from cleanset.plumbing.machine import available_cores
from cleanset.statistics.seeds import image_seed
from cleanset.studies.attacks.base import (
    AttackPasses,
    Ball,
    Known,
    OneByOne,
    Result,
    Scale,
    Subject,
    margins,
    seed_of,
    to_pixels,
    to_unit,
)
from cleanset.studies.robustness.corruptions.params import IMAGENET_C
from cleanset.studies.robustness.images import ChangeName

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from torch import Tensor

    from cleanset.scoring.differentiable import PixelNetwork

Offsets = Annotated[list[Annotated[float, Field(ge=-360, le=360)]], Field(min_length=1)]


def scaled_on_black(pixels: PixelPlanes, scale: float) -> PixelPlanes:
    """The image with its sides times `scale` (Pillow's bilinear), centered on black, in the same shape."""
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
    right = places[None, None, :] - dx
    down = places[None, :, None] - dy
    cosine = torch.cos(torch.deg2rad(angle))
    sine = torch.sin(torch.deg2rad(angle))
    # without align_corners, -1 and 1 are the outer edges of the image: a pixel is 2 / size wide
    grid = torch.stack((cosine * right - sine * down, sine * right + cosine * down), dim=-1) * (2 / size)
    repeated = image[None].expand(len(changes), -1, -1, -1)
    return torch.nn.functional.grid_sample(repeated, grid, "bilinear", "zeros", align_corners=False)


def moved_by_pillow(image: Image.Image, dx: float, dy: float, angle: float) -> PixelPlanes:
    """The image rotated clockwise, in degrees, and then translated, in its pixels; black from outside.

    As torchvision 0.2.1 does it: half a pixel next to the center, bilinear, cut to whole values.
    """
    turn = radians(angle)
    middle = image.width * 0.5 + 0.5
    # the factor is 1 but for rounding, which decides where a value is nearly whole
    factor = 1 / (cos(turn) * cos(turn) + sin(turn) * sin(turn))
    cosine = factor * cos(turn)
    sine = factor * sin(turn)
    right = -middle - dx
    down = -middle - dy
    matrix = (
        cosine, sine, cosine * right + sine * down + middle,
        -sine, cosine, -sine * right + cosine * down + middle,
    )  # fmt: skip
    moved = image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
    return np.asarray(moved).transpose(2, 0, 1)


class SpatialGridAttack(OneByOne):
    """All combinations of translations (along both axes) and angles; the one with the largest margin is kept.

    `definition`: as_coded takes the first of a combination for the angle, as the warm-up's code does: the published
    numbers are of 5 angles up to 18 degrees, 5 translations to the right up to 18 pixels and 31 downwards up to 30.
    """

    effect = "the worst of 775 rotations and translations, as written or as coded"
    family = "rotations"
    uses = "classes"
    in_defaults = True
    small: ClassVar = {"scale": 0.9, "translations": [-20, 0], "angles": [0, 10]}
    libraries = ("pillow",)
    kind: Literal["spatial_grid"] = "spatial_grid"
    definition: Literal["as_written", "as_coded"] = "as_written"
    scale: Scale = 158 / 224
    translations: Offsets = Field(default_factory=lambda: [-18.0, -9.0, 0.0, 9.0, 18.0])
    angles: Offsets = Field(default_factory=lambda: [float(angle) for angle in range(-30, 31, 2)])

    def changes(self) -> list[tuple[float, float, float]]:
        """A translation to the right and one downwards, in pixels of 224, and an angle, of each combination."""
        found = list(product(self.translations, self.translations, self.angles))
        return [(dx, dy, angle) for angle, dx, dy in found] if self.definition == "as_coded" else found

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """A pass for each change."""
        count = len(self.translations) ** 2 * len(self.angles)
        return AttackPasses(own=Passes(forward=count))

    def result(self, network: "PixelNetwork", subject: Subject, known: Known) -> Result:
        """The worst change of an image."""
        import torch

        start = scaled_on_black(subject.pixels, self.scale)
        image = Image.fromarray(np.ascontiguousarray(start.transpose(1, 2, 0)))
        queries = network.queries
        best = -np.inf
        found = start
        factor = image.width / BASE_SIZE
        # Pillow lets other threads run meanwhile
        with ThreadPoolExecutor(available_cores()) as pool, torch.inference_mode():
            changed = pool.map(
                lambda change: moved_by_pillow(image, change[0] * factor, change[1] * factor, change[2]), self.changes()
            )
            while part := list(islice(changed, network.batch_size)):
                logits = network(to_unit(part, network))
                found_margins = margins(logits, torch.full((len(part),), subject.class_index, device=network.device))
                place = int(found_margins.argmax())
                if float(found_margins[place]) > best:
                    best = float(found_margins[place])
                    found = part[place]
        return Result(found, network.queries - queries)


class RandomSpatialAttack(OneByOne):
    """One rotation and translation of each image, drawn uniformly within limits; makes no queries. Pixels refer to an
    image of 224 x 224.
    """

    effect = "one rotation and translation at random"
    family = "rotations"
    uses = "classes"
    in_defaults = True
    small: ClassVar = {}
    kind: Literal["random_spatial"] = "random_spatial"
    scale: Scale = 204 / 224
    max_translation: Annotated[float, Field(ge=0, le=224)] = 18
    max_angle: Annotated[float, Field(ge=0, le=180)] = 30

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """No pass: the change is drawn."""
        return AttackPasses()

    def result(self, network: "PixelNetwork", subject: Subject, known: Known) -> Result:
        """The changed image."""
        seed = seed_of(known.seed, "attack", known.name or self.kind, subject.image_id)
        return Result(self.changed(subject, known.seed, known.name), 0, seed=seed)

    def change(self, subject: Subject, seed: int, name: str = "") -> tuple[float, float, float]:
        """The change that is drawn for an image, by the study's seed and the attack's name; by default its kind.

        A translation to the right and downwards, in pixels of 224, and a rotation counterclockwise, in degrees.
        """
        generator = np.random.default_rng(seed_of(seed, "attack", name or self.kind, subject.image_id))
        dx, dy = generator.uniform(-self.max_translation, self.max_translation, size=2)
        return float(dx), float(dy), float(generator.uniform(-self.max_angle, self.max_angle))

    def changed(self, subject: Subject, seed: int, name: str = "") -> PixelPlanes:
        """The changed image in 8 bits, computed in float64 on the CPU: the same on any machine."""
        import torch

        start = scaled_on_black(subject.pixels, self.scale)
        factor = subject.pixels.shape[-1] / BASE_SIZE
        dx, dy, angle = self.change(subject, seed, name)
        change = torch.tensor([[dx * factor, dy * factor, angle]], dtype=torch.float64)
        return to_pixels(rotated_and_moved(torch.from_numpy(start).double(), change)[0].numpy())


def center_of(subject: Subject, after: RandomSpatialAttack | None, known: Known) -> PixelPlanes:
    """The center of the ball that is searched: the image, or the result of a change that comes before."""
    return subject.pixels if after is None else after.changed(subject, known.seed)


NOT_PUBLISHED = ("snow", "frost")
"""The published kit leaves these out."""
IN_PUBLISHED_KIT = tuple(name for name in IMAGENET_C if name not in NOT_PUBLISHED)


class CommonCorruptionsAttack(OneByOne):
    """One corruption of the model's input, chosen by the network.

    `corruptions`: the 17 of the published kit, without snow and frost; or all 19.
    """

    effect = "the worst corruption at severity 1"
    family = "corruptions"
    uses = "classes"
    in_defaults = True
    small: ClassVar = {}
    libraries = ("imagecorruptions-imaug",)
    kind: Literal["common_corruptions"] = "common_corruptions"
    corruptions: Literal[17, 19] = 17
    severity: Annotated[int, Field(ge=1, le=5)] = 1

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """A pass for each corruption."""
        return AttackPasses(own=Passes(forward=self.corruptions))

    def result(self, network: "PixelNetwork", subject: Subject, known: Known) -> Result:
        """The worst corruption of an image; the first of equally bad ones."""
        import torch

        from cleanset.studies.robustness.corruptions.changes import corrupted_images

        image = np.ascontiguousarray(subject.pixels.transpose(1, 2, 0))
        seed = image_seed(known.seed, subject.image_id)
        names = IN_PUBLISHED_KIT if self.corruptions == 17 else IMAGENET_C
        changed = [corrupted_images(image, name, [self.severity], seed) for name in names]
        corrupted = [np.ascontiguousarray(each.transpose(2, 0, 1)) for (each,) in changed]
        with torch.inference_mode():
            logits = network(to_unit(corrupted, network))
            logits[:, subject.class_index] = -torch.inf
            worst = int(logits.max(dim=1).values.argmax())
        return Result(corrupted[worst], len(corrupted))


GUESSED = ("corruptions", "scenarios")
"""The families of changes whose stored predictions are read."""


class GuessAttack(OneByOne):
    """The known mistake of each image's class, from the stored predictions; no parameters, and always there."""

    effect = "the most confident mistake among the stored predictions of corruptions and scenarios; always included"
    family = "other image"
    uses = "classes"
    # next to all others, without being named
    in_defaults = False
    small: ClassVar = {}
    libraries = ("imagecorruptions-imaug",)
    reads_predictions = True
    kind: Literal["guess"] = "guess"

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """No pass: predictions are read."""
        return AttackPasses()

    def result(self, network: "PixelNetwork", subject: Subject, known: Known) -> Result:
        """The candidate, for which nothing is asked."""
        return Result(known.guess(subject), 0)


def most_confident_mistakes(images: pd.DataFrame, predictions: pd.DataFrame) -> dict[int, ChangeName]:
    """The changed image that is misclassified with the highest log-odds, by class; ties by name.

    `images` have file and class_index, `predictions` the columns of NAMED_ANSWERS for these files and others. Classes
    without a mistake are left out.
    """
    joined = predictions.merge(images[["file", "class_index"]], on="file")
    mistakes = joined[joined["top5_class"].str[0] != joined["class_index"]]
    ordered = mistakes.sort_values(["log_odds", *ChangeName._fields], ascending=[False, True, True, True])
    first = ordered.drop_duplicates("class_index")
    return dict(zip(first["class_index"].tolist(), ChangeName.of_rows(first), strict=True))


class NoAttack(OneByOne):
    """The null attack, which changes nothing."""

    effect = "nothing: must give the stored scores, bit for bit"
    family = "unchanged"
    uses = "classes"
    in_defaults = True
    small: ClassVar = {}
    kind: Literal["none"] = "none"

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """No pass."""
        return AttackPasses()

    @property
    def ball(self) -> Ball:
        """The image alone."""
        return Ball("Linf", 0.0)

    def result(self, network: "PixelNetwork", subject: Subject, known: Known) -> Result:
        """The image."""
        return Result(subject.pixels, 0)
