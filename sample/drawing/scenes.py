"""One image without any flaw: a backdrop, one or two objects, a light."""

from dataclasses import dataclass
from random import Random

import numpy as np
from PIL import Image

from drawing.backdrops import BACKDROPS
from drawing.canvas import Box, Canvas, Colour, Cover, Pen, Point, mix, oval, rectangle
from drawing.classes import SAMPLE_CLASSES, Difficulty, SampleClass
from drawing.objects import DRAWERS
from drawing.tables import COLOURS

PHOTO_SIZES = ((256, 192), (192, 256), (240, 200), (208, 208))
"""Width and height, in pixels, of images to train on and of the tutorial's photographs."""

TRAINING_DIFFICULTIES: tuple[Difficulty, ...] = ("easy", "medium", "medium", "hard")
"""For training images; one is drawn."""

SIZES: dict[Difficulty, tuple[int, int]] = {
    "easy": (30, 39),
    "medium": (20, 29),
    "hard": (11, 17),
    "hopeless": (7, 9),
}
"""From an object's middle to its edge, in percent of the image's shorter side."""


@dataclass(frozen=True)
class Scene:
    """The planned contents of an image; the lowest `clear` percent of its height stay free of objects."""

    width: int
    height: int
    shown: tuple[str, ...]
    difficulty: Difficulty = "easy"
    clear: int = 0


def draw_scene(scene: Scene, rng: Random, scale: int = 3) -> tuple[Image.Image, Box]:
    """The image, and the box around its objects (right and bottom excluded; empty if none)."""
    image, box, _ = _drawn(scene, rng, scale, covered=False)
    return image, box


def draw_masked(scene: Scene, rng: Random, scale: int = 3) -> tuple[Image.Image, Box, Image.Image]:
    """As `draw_scene`, and the mask of the objects: white where they cover half of a pixel or more, else black."""
    image, box, cover = _drawn(scene, rng, scale, covered=True)
    assert cover is not None
    return image, box, Image.fromarray(np.where(cover.share >= 128, 255, 0).astype(np.uint8))


def _drawn(scene: Scene, rng: Random, scale: int, *, covered: bool) -> tuple[Image.Image, Box, Cover | None]:
    canvas = Canvas(scene.width, scene.height, scale)
    cover = Cover(canvas) if covered else None
    strange = scene.difficulty == "hard" and rng.randrange(2) == 0
    usual = SAMPLE_CLASSES[scene.shown[0]].places if scene.shown else list(BACKDROPS)
    BACKDROPS[rng.choice(list(BACKDROPS) if strange else usual)](canvas, rng)
    light = rng.choice([-1, 1])
    boxes = [
        _draw_object(canvas, scene, wnid, place, light=light, rng=rng, cover=cover)
        for wnid, place in zip(scene.shown, _places(scene, rng), strict=True)
    ]
    if scene.difficulty in ("hard", "hopeless"):
        if cover is not None:
            cover.remove(_clutter, rng.getstate())
        _clutter(canvas, rng)
    return _in_light(canvas.finish(), scene.difficulty, rng), _around(boxes, scene), cover


def _places(scene: Scene, rng: Random) -> list[tuple[Point, float]]:
    """The place of each object, and its size from middle to edge, in pixels."""
    short = min(scene.width, scene.height)
    usable = scene.height * (100 - scene.clear) / 100
    low, high = SIZES[scene.difficulty]
    size = short * rng.randrange(low, high + 1) / 100
    if len(scene.shown) == 2:
        return _two_places(scene, min(size * 0.8, short * 0.23, usable * 0.45), rng)
    size = min(size, usable / 2 - 4)
    loose = 0.5 * max(0.0, short * 0.43 - size)
    x = scene.width / 2 + loose * rng.randrange(-100, 101) / 100
    y = usable / 2 + loose * rng.randrange(-100, 101) / 100
    if scene.shown == ("n02814860",):
        y = usable * rng.randrange(86, 92) / 100 - size
    return [((x, min(max(y, size + 3), usable - size - 3)), size)] * len(scene.shown)


def _two_places(scene: Scene, size: float, rng: Random) -> list[tuple[Point, float]]:
    """Two objects next to each other, around the image's middle."""
    usable = scene.height * (100 - scene.clear) / 100
    wide = scene.width >= scene.height
    apart = size * rng.randrange(105, 118) / 100
    places: list[tuple[Point, float]] = []
    for side in rng.choice([(-1, 1), (1, -1)]):
        drift = rng.randrange(-6, 7) * size / 40
        along = side * apart
        across = drift
        x = scene.width / 2 + (along if wide or scene.clear else across)
        y = usable / 2 + (across if wide or scene.clear else along)
        places.append(((x, min(max(y, size + 3), usable - size - 3)), size))
    return places


def _draw_object(
    canvas: Canvas, scene: Scene, wnid: str, place: tuple[Point, float], *, light: int, rng: Random, cover: Cover | None
) -> Box:
    point, size = place
    turn = SAMPLE_CLASSES[wnid].turn
    angle = rng.randrange(-turn, turn + 1)
    _shadow(canvas, SAMPLE_CLASSES[wnid], point, size, light)
    mirror = rng.randrange(2) == 0 and wnid != "n02708093"

    def paint(on: Canvas, drawn: Random) -> Box:
        pen = Pen(on, point, size, angle, mirror=mirror, light=light)
        if wnid == "n06874185" and not scene.clear:
            _post(on, point, size)
        DRAWERS[wnid](pen, drawn)
        return pen.extent

    if cover is not None:
        cover.add(paint, rng.getstate())
    extent = paint(canvas, rng)
    if scene.difficulty == "hopeless":
        canvas.soften(9)
    return extent


def _post(canvas: Canvas, point: Point, size: float) -> None:
    """The pole of a traffic light."""
    left = point[0] - 0.06 * size
    right = point[0] + 0.06 * size
    corners = rectangle(left, point[1], right, canvas.height)
    canvas.polygon(corners, (96, 98, 104))


def _shadow(canvas: Canvas, shown: SampleClass, point: Point, size: float, light: int) -> None:
    """A soft shadow: under a standing object, around a lying one."""
    if shown.foot is not None:
        centre = (point[0] - 0.12 * light * size, point[1] + shown.foot * size)
        canvas.glow(oval(centre, 0.75 * size, 0.16 * size), (20, 20, 30), 120, 0.06 * size)
    elif shown.lies:
        centre = (point[0] - 0.08 * light * size, point[1] + 0.1 * size)
        canvas.glow(oval(centre, 0.66 * size, 0.66 * size), (20, 20, 30), 110, 0.1 * size)


def _clutter(canvas: Canvas, rng: Random) -> None:
    """Blurred things near the lens."""
    tone: Colour = rng.choice(COLOURS["clutter"])
    for _ in range(rng.randrange(2, 6)):
        centre = canvas.anywhere(rng)
        reach = min(canvas.width, canvas.height) * rng.randrange(5, 13) / 100
        shade = mix(tone, (20, 20, 24), rng.randrange(50))
        canvas.glow(oval(centre, reach, reach * 0.8), shade, 235, 2)


def _in_light(image: Image.Image, difficulty: Difficulty, rng: Random) -> Image.Image:
    """The image under another light: darker, paler, warmer or cooler."""
    wide = 34 if difficulty in ("hard", "hopeless") else 10
    gains = [100 + rng.randrange(-wide, wide // 3)] * 3
    warm = rng.randrange(-wide // 3, wide // 3 + 1)
    gains = [gains[0] + warm, gains[1], gains[2] - warm]
    pale = rng.randrange(wide)
    table = [min(255, (value * (100 - pale) // 100 + pale) * gain // 100) for gain in gains for value in range(256)]
    return image.point(table)


def _around(boxes: list[Box], scene: Scene) -> Box:
    """The smallest box around all boxes, inside the image."""
    if not boxes:
        return (0, 0, 0, 0)
    return (
        max(0, min(b[0] for b in boxes)),
        max(0, min(b[1] for b in boxes)),
        min(scene.width, max(b[2] for b in boxes)),
        min(scene.height, max(b[3] for b in boxes)),
    )
