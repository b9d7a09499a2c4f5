"""Pixels: decoding, the preprocessings that models were trained for, cropping, PNG.

No EXIF orientation is applied anywhere: models see the pixels as they are stored, and boxes are
given in stored pixels; only viewers turn them. Pixel for pixel what timm's and RobustBench's
torchvision transforms give.
"""

import io
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError, features
from PIL import __version__ as _pillow

from cleanset.boxes import Box, Crop
from cleanset.files import sha256

Read = Callable[[str], bytes]
"""From an image id to the bytes of the picture."""

Source = Callable[[str], bytes | Image.Image]
"""From a name to the bytes of a JPEG, or to a part of it that is decoded already."""

LARGEST_AREA = 100_000_000
"""Pixels. ImageNet's largest validation picture has under 20 million; a bomb has far more."""

_ORIENTATION = 0x0112
_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is measured once on every picture; `mode` is Pillow's: RGB, L or CMYK."""

    width: int
    height: int
    mode: str
    pixels_sha256: str


def decode(data: bytes, formats: tuple[str, ...] = ("JPEG",)) -> Image.Image:
    """The whole JPEG as Pillow reads it. Raises ValueError, with the reason, if that fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data), formats=formats)
        if image.width * image.height > LARGEST_AREA:
            raise ValueError(f"{image.width} x {image.height} pixels, more than {LARGEST_AREA:,}")
        image.load()
    except UnidentifiedImageError:
        raise ValueError("empty" if not data else f"not a {' or '.join(formats)}") from None
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from None
    return image


def inspect(data: bytes) -> Facts:
    """Decode a JPEG and measure it. Raises ValueError as `decode` does."""
    image = decode(data)
    return Facts(image.width, image.height, image.mode, pixels_sha256(image))


def pixels_sha256(image: Image.Image) -> str:
    """SHA-256 of the RGB bytes, row by row, three bytes a pixel."""
    return sha256(image.convert("RGB").tobytes())


def cropped(data: bytes, box: Box) -> Image.Image:
    """The part of a JPEG inside `box`, as RGB, with the picture's EXIF orientation and no other metadata.

    Raises ValueError as `decode` does, and for a box that is not inside the picture.
    """
    image = decode(data)
    if box[2] > image.width or box[3] > image.height:
        raise ValueError(f"box {list(box)} outside of {image.width} x {image.height}")
    part = image.convert("RGB").crop(box)
    part.info = {}
    orientation = image.getexif().get(_ORIENTATION, 1)
    exif = part.getexif()
    exif.clear()
    if orientation in range(2, 9):  # anything else is nonsense, which viewers ignore
        exif[_ORIENTATION] = orientation
    return part


def part(read: Read, crops: Mapping[str, Crop], name: str) -> Image.Image:
    """The crop of that name, read with `read`. Raises ValueError as `decode` does."""
    crop = crops[name]
    return cropped(read(crop.image_id), crop.box)


def png(image: Image.Image) -> bytes:
    """PNG of an image: fixed settings; of its metadata only an EXIF orientation, so that viewers turn it."""
    out = io.BytesIO()
    exif = image.getexif()
    image.save(out, format="PNG", compress_level=6, exif=exif if len(exif) else None)
    return out.getvalue()


def encoder() -> str:
    """What writes PNGs here; other versions may write the same pixels in other bytes."""
    # with zlib-ng, "zlib" is only the version that it stands in for; Pillow before 11.1 did not know it
    if "zlib_ng" in features.features and features.check_feature("zlib_ng"):
        return f"Pillow {_pillow} with zlib-ng {features.version_feature('zlib_ng')}"
    return f"Pillow {_pillow} with zlib {features.version_codec('zlib')}"


def decoder() -> str:
    """What decodes JPEGs here."""
    if features.check_feature("libjpeg_turbo"):
        return f"Pillow {_pillow} with libjpeg-turbo {features.version_feature('libjpeg_turbo')}"
    return f"Pillow {_pillow} with libjpeg {features.version_codec('jpg')}"


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """A named preprocessing: short side to `resize`, then the central `size` x `size` pixels."""

    name: str
    resize: int
    size: int
    interpolation: Literal["bilinear", "bicubic"]

    def __call__(self, image: Image.Image) -> NDArray[np.uint8]:
        """The pixels that a model gets, before normalisation: uint8 of shape (3, size, size)."""
        image = image.convert("RGB")
        width, height = image.size
        # torchvision's Resize: the long side is truncated, not rounded
        if width <= height:
            target = (self.resize, int(self.resize * height / width))
        else:
            target = (int(self.resize * width / height), self.resize)
        image = image.resize(target, _FILTERS[self.interpolation])
        # torchvision's CenterCrop: half to even
        left = round((target[0] - self.size) / 2.0)
        top = round((target[1] - self.size) / 2.0)
        image = image.crop((left, top, left + self.size, top + self.size))
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


RES256CROP224 = Preprocessing("Res256Crop224", 256, 224, "bilinear")
"""RobustBench's preprocessing for ImageNet."""


def timm_preprocessing(size: int, crop_pct: float, interpolation: str, crop_mode: str) -> Preprocessing:
    """The preprocessing of timm's evaluation for a model's data configuration.

    Raises ValueError for a crop mode or interpolation other than those of the models used here.
    """
    if crop_mode != "center" or interpolation not in _FILTERS:
        raise ValueError(f"crop mode {crop_mode!r} with {interpolation!r}; expected center with bilinear or bicubic")
    resize = math.floor(size / crop_pct)
    name = f"timm-{interpolation}-{resize}-{size}"
    return Preprocessing(name, resize, size, "bicubic" if interpolation == "bicubic" else "bilinear")
