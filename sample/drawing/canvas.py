"""Drawing with smooth edges and the same bytes everywhere.

An image is drawn several times larger than wanted and then reduced. All
coordinates and colours are rounded to integers before anything is rasterised,
so no processor's floating-point habits reach the pixels.
"""

import math
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter, ImageFont

Colour = tuple[int, int, int]
Point = tuple[float, float]
Pixel = tuple[int, int]
Box = tuple[int, int, int, int]


def to_int(value: float) -> int:
    """Round to the nearest integer; a tie, or what is within 1e-6 of one, goes up."""
    return math.floor(value + 0.5 + 1e-6)


def mix(first: Colour, second: Colour, percent: int) -> Colour:
    """The colour `percent` (0..100) of the way from the first to the second."""
    r, g, b = ((100 * p + percent * (q - p)) // 100 for p, q in zip(first, second, strict=True))
    return r, g, b


def oval(centre: Point, width: float, height: float, start: int = 0, end: int = 360) -> list[Point]:
    """Points of an ellipse with half-axes `width` and `height`, from `start` to `end` degrees."""
    steps = max(8, (end - start) // 8)
    angles = [math.radians(start + (end - start) * i / steps) for i in range(steps + 1)]
    return [(centre[0] + width * math.cos(a), centre[1] + height * math.sin(a)) for a in angles]


def rectangle(left: float, top: float, right: float, bottom: float) -> list[Point]:
    """The corners of a rectangle."""
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def smooth(corners: Sequence[Point], steps: int = 8) -> list[Point]:
    """A closed Catmull-Rom curve through the given points."""
    count = len(corners)
    curve: list[Point] = []
    for i in range(count):
        around = [corners[(i + j - 1) % count] for j in range(4)]
        curve.extend(_between(around, step / steps) for step in range(steps))
    return curve


def _between(around: Sequence[Point], t: float) -> Point:
    """The point at `t` (0..1) between the second and the third of four curve points."""
    weights = (
        -0.5 * t + t * t - 0.5 * t**3,
        1.0 - 2.5 * t * t + 1.5 * t**3,
        0.5 * t + 2.0 * t * t - 1.5 * t**3,
        -0.5 * t * t + 0.5 * t**3,
    )
    x = sum(w * p[0] for w, p in zip(weights, around, strict=True))
    y = sum(w * p[1] for w, p in zip(weights, around, strict=True))
    return x, y


def ramp(first: Colour, last: Colour) -> npt.NDArray[np.uint8]:
    """A table of 257 colours from the first to the last; shape (257, 3)."""
    share = np.arange(257, dtype=np.int64)[:, None]
    start = np.array(first, dtype=np.int64)
    stop = np.array(last, dtype=np.int64)
    return (start + (stop - start) * share // 256).astype(np.uint8)


def font(size: int) -> ImageFont.FreeTypeFont:
    """Pillow's own typeface, laid out without any library of the machine's."""
    face = ImageFont.load_default(size)
    assert isinstance(face, ImageFont.FreeTypeFont), "Pillow was built without FreeType"
    return face.font_variant(layout_engine=ImageFont.Layout.BASIC)


class Canvas:
    """An RGB image of `width` x `height` pixels, drawn `scale` times larger.

    Coordinates are those of the finished image, in pixels, and may be fractions.
    """

    def __init__(self, width: int, height: int, scale: int = 3) -> None:
        self.width = width
        self.height = height
        self.scale = scale
        self.image = Image.new("RGB", (width * scale, height * scale))

    def anywhere(self, rng: Random) -> Point:
        """A point of the image, in whole pixels."""
        return rng.randrange(self.width), rng.randrange(self.height)

    def pixel(self, point: Point) -> Pixel:
        """Where a point is in the enlarged image."""
        return to_int(point[0] * self.scale), to_int(point[1] * self.scale)

    def polygon(self, points: Sequence[Point], fill: Colour, opacity: int = 255) -> None:
        """Fill a polygon; opacity 0..255."""
        pixels = [self.pixel(p) for p in points]
        if opacity >= 255:
            ImageDraw.Draw(self.image).polygon(pixels, fill=fill)
            return
        box = self._clip(pixels)
        if box:
            self.image.paste(fill, box, _mask(pixels, box, opacity))

    def stroke(self, points: Sequence[Point], width: float, fill: Colour) -> None:
        """A line through the points, `width` pixels wide, with round joints and ends."""
        thick = max(1, to_int(width * self.scale))
        pixels = [self.pixel(p) for p in points]
        brush = ImageDraw.Draw(self.image)
        brush.line(pixels, fill=fill, width=thick, joint="curve")
        half = thick // 2
        if half:
            for x, y in (pixels[0], pixels[-1]):
                brush.ellipse((x - half, y - half, x + half, y + half), fill=fill)

    def shaded(self, points: Sequence[Point], light: Colour, dark: Colour, lamp: Point, reach: float) -> None:
        """Fill a polygon with `light` at the point `lamp`, `dark` at `reach` pixels or more."""
        pixels = [self.pixel(p) for p in points]
        box = self._clip(pixels)
        if not box:
            return
        centre = self.pixel(lamp)
        radius = max(1, to_int(reach * self.scale))
        x = np.arange(box[0], box[2], dtype=np.int64) - centre[0]
        y = np.arange(box[1], box[3], dtype=np.int64) - centre[1]
        share = np.minimum(((x * x)[None] + (y * y)[:, None]) * 256 // (radius * radius), 256)
        colours = Image.fromarray(ramp(light, dark)[share])
        self.image.paste(colours, box, _mask(pixels, box, 255))

    def gradient(self, top: Colour, bottom: Colour, start: float, end: float) -> None:
        """Fill the rows from `start` to `end` with a vertical gradient."""
        first = self.pixel((0, start))[1]
        last = self.pixel((0, end))[1]
        if last <= first:
            return
        share = np.arange(last - first, dtype=np.int64) * 256 // (last - first)
        rows = Image.fromarray(ramp(top, bottom)[share][:, None, :])
        self.image.paste(rows.resize((self.image.width, last - first), Image.Resampling.NEAREST), (0, first))

    def glow(self, points: Sequence[Point], fill: Colour, opacity: int, softness: float) -> None:
        """Fill a polygon with blurred edges: a shadow, a cloud, a light; opacity 0..255."""
        coarse = 4
        blur = max(1, to_int(softness * self.scale / coarse))
        cells = [(x // coarse, y // coarse) for x, y in map(self.pixel, points)]
        left, top = (min(cell[axis] for cell in cells) - 2 * blur - 1 for axis in (0, 1))
        right, bottom = (max(cell[axis] for cell in cells) + 2 * blur + 2 for axis in (0, 1))
        mask = _mask(cells, (left, top, right, bottom), opacity)
        for _ in range(2):
            mask = mask.filter(ImageFilter.BoxBlur(blur))
        grown = mask.resize((mask.width * coarse, mask.height * coarse), Image.Resampling.BILINEAR)
        self.image.paste(fill, (left * coarse, top * coarse), grown)

    def soften(self, radius: float) -> None:
        """Blur everything drawn so far, as a lens does with a far background."""
        self.image = self.image.filter(ImageFilter.BoxBlur(max(1, to_int(radius * self.scale))))

    def finish(self) -> Image.Image:
        """The image in its own size, with smooth edges."""
        return self.image.reduce(self.scale)

    def _clip(self, pixels: Sequence[Pixel]) -> Box | None:
        """The bounding box of the pixels inside the image; None if there is none."""
        columns = [p[0] for p in pixels]
        rows = [p[1] for p in pixels]
        left = max(0, min(columns))
        top = max(0, min(rows))
        right = min(self.image.width, max(columns) + 1)
        bottom = min(self.image.height, max(rows) + 1)
        return (left, top, right, bottom) if left < right and top < bottom else None


class Cover:
    """Which part of each pixel of a canvas an object covers; uint8 of shape (height, width), 255 for all of it."""

    def __init__(self, canvas: Canvas) -> None:
        self.size = canvas.width, canvas.height, canvas.scale
        self.share = np.zeros((canvas.height, canvas.width), np.uint8)

    def add(self, paint: Callable[[Canvas, Random], object], state: object) -> None:
        """Add what is painted with a generator in this state."""
        self.share = np.maximum(self.share, self._opacity(paint, state))

    def remove(self, paint: Callable[[Canvas, Random], object], state: object) -> None:
        """Take away what is painted in front of the object."""
        self.share = np.minimum(self.share, 255 - self._opacity(paint, state))

    def _opacity(self, paint: Callable[[Canvas, Random], object], state: object) -> npt.NDArray[np.uint8]:
        """Under opaque paint, black and white paper end in the same colour."""
        papers = []
        for paper in ("black", "white"):
            canvas = Canvas(*self.size)
            rng = Random()
            canvas.image.paste(paper, (0, 0, *canvas.image.size))
            rng.setstate(state)  # type: ignore[arg-type]
            paint(canvas, rng)
            papers.append(np.asarray(canvas.finish()).astype(np.int16))
        through: npt.NDArray[np.int16] = (papers[1] - papers[0]).max(axis=2)
        return (255 - through).astype(np.uint8)


def _mask(pixels: Sequence[Pixel], box: Box, opacity: int) -> Image.Image:
    mask = Image.new("L", (box[2] - box[0], box[3] - box[1]))
    moved = [(x - box[0], y - box[1]) for x, y in pixels]
    ImageDraw.Draw(mask).polygon(moved, fill=opacity)
    return mask


class Pen:
    """Draws one object in coordinates of its own: x and y from -1 to 1, y downwards.

    The pen moves the object to `(x, y)`, makes it `size` pixels from its middle to
    its edge, turns it by `angle` degrees and may mirror it. Light falls from above
    on the `light` side (-1 left, 1 right) whatever the angle. `extent` is the box that
    the object covers in the finished image.
    """

    def __init__(
        self,
        canvas: Canvas,
        place: Point,
        size: float,
        angle: int = 0,
        mirror: bool = False,
        light: int = -1,
    ) -> None:
        self.canvas = canvas
        self.place = place
        self.size = size
        self.mirror = mirror
        self.lamp = (place[0] + 0.4 * light * size, place[1] - 0.5 * size)
        self._cos = math.cos(math.radians(angle))
        self._sin = math.sin(math.radians(angle))
        self._seen: list[Point] = []

    def at(self, point: Point) -> Point:
        """Where a point of the object is in the image."""
        x = -point[0] if self.mirror else point[0]
        y = point[1]
        placed = (
            self.place[0] + self.size * (x * self._cos - y * self._sin),
            self.place[1] + self.size * (x * self._sin + y * self._cos),
        )
        self._seen.append(placed)
        return placed

    @property
    def extent(self) -> Box:
        """Left, top, right, bottom in pixels, with a little room; right and bottom excluded."""
        columns = [p[0] for p in self._seen]
        rows = [p[1] for p in self._seen]
        return (
            to_int(min(columns)) - 3,
            to_int(min(rows)) - 3,
            to_int(max(columns)) + 4,
            to_int(max(rows)) + 4,
        )

    def fill(self, points: Sequence[Point], colour: Colour, opacity: int = 255) -> None:
        """Fill a polygon evenly."""
        self.canvas.polygon([self.at(p) for p in points], colour, opacity)

    def shade(self, points: Sequence[Point], light: Colour, dark: Colour, reach: float = 1.7) -> None:
        """Fill a polygon as a body in the light."""
        placed = [self.at(p) for p in points]
        self.canvas.shaded(placed, light, dark, self.lamp, reach * self.size)

    def line(self, points: Sequence[Point], width: float, colour: Colour) -> None:
        """A line through the points; its width in the object's unit."""
        self.canvas.stroke([self.at(p) for p in points], width * self.size, colour)

    def text(self, centre: Point, height: float, words: str, colour: Colour) -> None:
        """Upright words around a point."""
        size = max(4, to_int(height * self.size * self.canvas.scale))
        brush = ImageDraw.Draw(self.canvas.image)
        brush.text(self.canvas.pixel(self.at(centre)), words, fill=colour, font=font(size), anchor="mm")
