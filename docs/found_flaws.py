"""Draw docs/found_flaws-light.webp and -dark.webp: flaws planted in photographs, and what `cleanset hints` finds.

Run `python docs/found_flaws.py` in the root, with the extras `review`, `text` and `robustness`. The photographs are
those of scikit-image that are in the public domain.
"""

import csv
import io
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import skimage.data
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

from cleanset.plumbing.interpreter import python_command

DOCS = Path(__file__).parent
TILE = 112
GAP = 10
CAPTION = 26
INKS = {"light": ("#ffffff", "#1f2328", "#b3261e"), "dark": ("#0d1117", "#e6edf3", "#ff8a80")}
"""Background, text and mark of a found flaw, by color scheme."""

Change = Callable[[Image.Image], Image.Image]


def with_text(image: Image.Image) -> Image.Image:
    """The image with words across its lower part, as a stock agency's mark."""
    image = image.copy()
    font = ImageFont.load_default(image.width // 14)
    ImageDraw.Draw(image).text(
        (image.width // 2, image.height * 5 // 6),
        "www.example.com",
        "white",
        font,
        "mm",
        stroke_width=2,
        stroke_fill="black",
    )
    return image


def without_margins(image: Image.Image) -> Image.Image:
    """The image mirrored, without 5 % of each side."""
    width, height = image.size
    box = (width // 20, height // 20, width - width // 20, height - height // 20)
    return ImageOps.mirror(image).crop(box)


FLAWS: dict[str, tuple[str, Change]] = {
    "clean": ("coffee", lambda image: image),
    "watermark": ("rocket", with_text),
    "frame": ("astronaut", lambda image: ImageOps.expand(image, image.width // 12, "#d8cfc0")),
    "filter": ("chelsea", lambda image: ImageOps.colorize(ImageOps.grayscale(image), "#2b1a08", "#ffe9c2")),
    "blur": ("coffee", lambda image: image.filter(ImageFilter.GaussianBlur(6))),
    "dark": ("rocket", lambda image: ImageEnhance.Brightness(image).enhance(0.15)),
    "original": ("chelsea", lambda image: image),
    "copy": ("chelsea", without_margins),
}
"""By the name of a file: its photograph, and what is done to it."""


def hints(folder: Path) -> dict[str, list[str]]:
    """The kinds of hints at each image, the most severe first."""
    command = python_command("-m", "cleanset", "hints", str(folder), "--format", "csv")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = {}
    for row in csv.DictReader(io.StringIO(done.stdout)):
        found.setdefault(Path(row["image"]).stem, []).append(row["hint"].replace("_", " "))
    return found


def sheet(images: dict[str, Image.Image], found: dict[str, list[str]], scheme: str) -> Image.Image:
    """All images in a row, each with its hints below it."""
    background, ink, mark = INKS[scheme]
    drawn = Image.new("RGB", (len(images) * (TILE + GAP) + GAP, TILE + CAPTION + GAP), background)
    draw = ImageDraw.Draw(drawn)
    font = ImageFont.load_default(15)
    for place, (name, image) in enumerate(images.items()):
        left = GAP + place * (TILE + GAP)
        drawn.paste(ImageOps.fit(image, (TILE, TILE)), (left, GAP))
        kinds = dict.fromkeys(found.get(name, ()))
        if kinds:
            draw.rectangle((left, GAP, left + TILE - 1, GAP + TILE - 1), outline=mark, width=3)
        draw.text((left, GAP + TILE + 5), ", ".join(kinds) or "no hint", mark if kinds else ink, font)
    return drawn


def main() -> None:
    """Plant the flaws, look for them, and write both images."""
    images = {name: change(Image.fromarray(getattr(skimage.data, photo)())) for name, (photo, change) in FLAWS.items()}
    found: dict[str, list[str]] = {}
    # the last two are one photograph twice; each other image is looked at alone, since some are of one photograph
    for names in (*([name] for name in list(images)[:-2]), list(images)[-2:]):
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                images[name].save(Path(folder) / f"{name}.png")
            found |= hints(Path(folder))
    for scheme in INKS:
        sheet(images, found, scheme).save(DOCS / f"found_flaws-{scheme}.webp", quality=84, method=6)
    print(*(f"{name}: {', '.join(found.get(name, ['no hint']))}" for name in images), sep="\n")


if __name__ == "__main__":
    main()
