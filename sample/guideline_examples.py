"""Draws the examples of the review guidelines: for each reason a clean image, and the same with that flaw.

`python sample/guideline_examples.py` writes src/cleanset/review/page/static/examples/<reason>_{clean,flawed}.webp.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

from PIL import Image, ImageDraw, ImageFilter, ImageOps

from drawing.flaws import PLANTERS, STAMP_SHARE
from drawing.scenes import Scene, draw_masked, draw_scene

FOLDER = Path(__file__).parents[1] / "src/cleanset/review/page/static/examples"
WIDTH = 320
HEIGHT = 240
SHOWN_PIXELS = 300

GOLDFISH = "n01443537"
LADYBUG = "n02165456"
BALLOON = "n02782093"
LIGHTHOUSE = "n02814860"
BALL = "n04254680"
UMBRELLA = "n04507155"
STRAWBERRY = "n07745940"
BANANA = "n07753592"

PLANTED = {
    "watermark": ("stamp", LIGHTHOUSE), "text": ("caption", BALLOON), "border": ("frame", UMBRELLA),
    "collage": ("pair", STRAWBERRY), "filter": ("tint", BALL), "noise": ("grain", LADYBUG), "blur": ("haze", BANANA),
}  # fmt: skip
"""Reasons with a planted flaw of the sample: its name, and the class drawn."""

Drawer = Callable[[], tuple[Image.Image, Image.Image]]


def scene(wnid: str, seed: str, difficulty: str = "easy", clear: int = 0, shown: tuple[str, ...] = ()) -> Image.Image:
    """A clean image; `shown`: the classes, if there are others than `wnid`."""
    planned = Scene(WIDTH, HEIGHT, shown or (wnid,), difficulty, clear)  # type: ignore[arg-type]
    return draw_scene(planned, Random(seed))[0]


def planted(reason: str) -> tuple[Image.Image, Image.Image]:
    """An image, and the same with the sample's flaw for a reason."""
    name, wnid = PLANTED[reason]
    clean = scene(wnid, reason, clear=STAMP_SHARE + 2 if name == "stamp" else 0)
    flawed, _ = PLANTERS[name][1](clean.copy(), Random(reason), lambda: scene(wnid, f"{reason} again"))
    return clean, flawed


def drawing() -> tuple[Image.Image, Image.Image]:
    """An image, and a pencil drawing of it on paper."""
    clean = scene(UMBRELLA, "drawing")
    grey = ImageOps.grayscale(clean).filter(ImageFilter.GaussianBlur(1))
    lines = ImageOps.autocontrast(ImageOps.invert(grey.filter(ImageFilter.CONTOUR)), cutoff=2)
    return clean, ImageOps.colorize(ImageOps.invert(lines), (40, 40, 60), (252, 250, 240))


def too_small() -> tuple[Image.Image, Image.Image]:
    """A balloon, and one far away."""
    image, _, mask = draw_masked(Scene(WIDTH, HEIGHT, (BALLOON,)), Random("small"))
    far = draw_scene(Scene(WIDTH, HEIGHT, ()), Random("far"))[0]
    size = WIDTH // 9, HEIGHT // 9
    far.paste(image.resize(size), (WIDTH // 3, HEIGHT // 6), mask.resize(size))
    return image, far


def artificial_background() -> tuple[Image.Image, Image.Image]:
    """A soccer ball in a scene, and cut out on white."""
    image, _, mask = draw_masked(Scene(WIDTH, HEIGHT, (BALL,)), Random("background"))
    return image, Image.composite(image, Image.new("RGB", image.size, (250, 250, 250)), mask)


def modification() -> tuple[Image.Image, Image.Image]:
    """An image, and the same with a circle around the object."""
    planned = Scene(WIDTH, HEIGHT, (LADYBUG,), "medium")
    clean, (left, top, right, bottom) = draw_scene(planned, Random("modification"))
    flawed = clean.copy()
    around = (left - 8, top - 8, right + 8, bottom + 8)
    ImageDraw.Draw(flawed).ellipse(around, outline=(230, 20, 20), width=5)
    return clean, flawed


def wrong_class() -> tuple[Image.Image, Image.Image]:
    """A strawberry, and a banana that is labeled as one."""
    return scene(STRAWBERRY, "wrong"), scene(BANANA, "wrong")


def several_objects() -> tuple[Image.Image, Image.Image]:
    """A balloon, and one next to a lighthouse."""
    return scene(BALLOON, "several"), scene(BALLOON, "several", shown=(BALLOON, LIGHTHOUSE))


def duplicate() -> tuple[Image.Image, Image.Image]:
    """An image, and its mirrored copy."""
    clean = scene(GOLDFISH, "duplicate")
    return clean, ImageOps.mirror(clean)


def other() -> tuple[Image.Image, Image.Image]:
    """An image, and the same stored upside down."""
    clean = scene(LIGHTHOUSE, "other")
    return clean, clean.transpose(Image.Transpose.ROTATE_180)


DRAWERS: tuple[Drawer, ...] = (
    drawing, too_small, artificial_background, modification, wrong_class, several_objects, duplicate, other,
)  # fmt: skip
DRAWN = {each.__name__: each for each in DRAWERS}
"""By reason that the sample does not plant: what draws its examples."""


def main() -> None:
    """Write every example."""
    FOLDER.mkdir(exist_ok=True)
    for reason in (*PLANTED, *DRAWN):
        pair = DRAWN[reason]() if reason in DRAWN else planted(reason)
        for kind, image in zip(("clean", "flawed"), pair, strict=True):
            image.thumbnail((SHOWN_PIXELS, SHOWN_PIXELS))
            image.save(FOLDER / f"{reason}_{kind}.webp", quality=80, method=6)


if __name__ == "__main__":
    main()
