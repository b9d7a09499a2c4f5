"""Flaws that the hints are not made for, planted in photographs: for the rates of bench/hints.py."""

import io
from collections.abc import Callable, Mapping

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageOps

from cleanset.images.codec import decode
from cleanset.statistics.basics import Floats

Change = Callable[[Image.Image], Image.Image]
Plane = Floats


def saved(image: Image.Image, quality: int = 90) -> Image.Image:
    """The image as read back from a JPEG file."""
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return decode(out.getvalue())


def from_levels(levels: Plane) -> Image.Image:
    """An image of levels, 0 to 255."""
    return Image.fromarray(np.clip(levels.round(), 0, 255).astype(np.uint8))


def frame(image: Image.Image) -> Image.Image:
    """A black line of one pixel around the image."""
    return ImageOps.expand(ImageOps.crop(image, 1), 1, "black")


def rounded_corners(image: Image.Image) -> Image.Image:
    """White corners, round by an eighth of the shorter side."""
    mask = Image.new("L", image.size)
    box = (0, 0, image.width - 1, image.height - 1)
    ImageDraw.Draw(mask).rounded_rectangle(box, min(image.size) // 8, 255)
    return Image.composite(image, Image.new("RGB", image.size, "white"), mask)


def title_bar(image: Image.Image) -> Image.Image:
    """The grey bar of a window, with its three buttons."""
    image = image.copy()
    draw = ImageDraw.Draw(image)
    height = image.height // 14
    draw.rectangle((0, 0, image.width, height), "#dedede")
    for place, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        draw.circle(((place + 1) * height, height // 2), height // 4, colour)
    return image


def inset(image: Image.Image) -> Image.Image:
    """A mirrored copy of a quarter of each side in the corner, with a white line around it."""
    image = image.copy()
    small = ImageOps.expand(ImageOps.mirror(image).resize((image.width // 4, image.height // 4)), 2, "white")
    image.paste(small, (image.width - small.width - 10, image.height - small.height - 10))
    return image


def radii(image: Image.Image) -> Plane:
    """The distance of each pixel from the middle, 1 in the corners."""
    down, across = np.ogrid[-1 : 1 : image.height * 1j, -1 : 1 : image.width * 1j]
    return np.asarray(np.sqrt((across**2 + down**2) / 2))


def vignette(image: Image.Image) -> Image.Image:
    """Corners with a fifth of their brightness."""
    return from_levels(np.asarray(image) * (1 - 0.8 * radii(image)[..., None] ** 2))


def cross_processing(image: Image.Image) -> Image.Image:
    """More contrast in red and green, less in blue."""
    levels = np.asarray(image) / 255
    contrast = 3 * levels**2 - 2 * levels**3
    levels[..., :2] = contrast[..., :2]
    levels[..., 2] = 0.2 + 0.6 * levels[..., 2]
    return from_levels(255 * levels)


def mirrored_halves(image: Image.Image) -> Image.Image:
    """The left half, and it mirrored."""
    image = image.copy()
    half = image.crop((0, 0, image.width // 2, image.height))
    image.paste(ImageOps.mirror(half), (image.width - half.width, 0))
    return image


def moire(image: Image.Image) -> Image.Image:
    """The beat of two fine grids, a quarter of the brightness."""
    down, across = np.mgrid[: image.height, : image.width]
    beat = np.sin(2.6 * across + 0.2 * down) * np.sin(2.5 * across - 0.15 * down)
    return from_levels(np.asarray(image) * (1 + 0.25 * beat[..., None]))


def on_backdrop(image: Image.Image, light: Plane) -> Image.Image:
    """The middle of the image, an ellipse, on a blue backdrop of this light, 0 to 1."""
    mask = Image.new("L", image.size)
    width, height = image.size
    ImageDraw.Draw(mask).ellipse((width // 5, height // 5, width * 4 // 5, height * 4 // 5), 255)
    return Image.composite(image, from_levels(light[..., None] * (120, 140, 160) + 80), mask)


def linear_gradient(image: Image.Image) -> Image.Image:
    """The middle of the image on a backdrop that is lighter from top to bottom."""
    light = np.linspace(0, 1, image.height)[:, None].repeat(image.width, axis=1)
    return on_backdrop(image, light)


def radial_backdrop(image: Image.Image) -> Image.Image:
    """The middle of the image on a backdrop that is lighter in the middle."""
    return on_backdrop(image, 1 - radii(image))


def drawing(image: Image.Image) -> Image.Image:
    """Few smooth colours with dark outlines."""
    smooth = image.filter(ImageFilter.MedianFilter(7))
    outlines = smooth.convert("L").filter(ImageFilter.FIND_EDGES).point(lambda level: 255 if level < 40 else 0)
    drawn = Image.composite(ImageOps.posterize(smooth, 3), Image.new("RGB", image.size, "black"), outlines)
    # the outermost pixels are not filtered
    return ImageOps.crop(drawn, 1)


def motion_blur(image: Image.Image) -> Image.Image:
    """The mean over 21 pixels from left to right."""
    padded = np.pad(np.asarray(image, np.float64), ((0, 0), (10, 10), (0, 0)), "edge")
    return from_levels(np.lib.stride_tricks.sliding_window_view(padded, 21, axis=1).mean(axis=-1))


def photographed_screen(image: Image.Image) -> Image.Image:
    """Stripes of a screen's colours, with less contrast, turned by 2 degrees, without its edges."""
    levels = np.asarray(image, np.float64)
    stripes = np.full_like(levels, 0.8)
    for colour in range(3):
        stripes[:, colour::3, colour] = 1.1
    turned = from_levels(40 + 0.8 * levels * stripes).rotate(2, Image.Resampling.BICUBIC)
    return ImageOps.crop(turned, min(image.size) // 20)


FLAWS: Mapping[str, Change] = {
    "frame of one pixel": frame,
    "rounded corners": rounded_corners,
    "title bar of a window": title_bar,
    "inset": inset,
    "vignette": vignette,
    "cross-processing": cross_processing,
    "negative": ImageOps.invert,
    "mirrored halves": mirrored_halves,
    "moire": moire,
    "linear gradient as backdrop": linear_gradient,
    "radial gradient as backdrop": radial_backdrop,
    "JPEG of quality 5": lambda image: saved(image, 5),
    "drawing": drawing,
    "motion blur": motion_blur,
    "photographed screen": photographed_screen,
}
"""The planted flaws by their names in the docs."""
