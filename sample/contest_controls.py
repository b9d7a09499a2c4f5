"""The images that the sample's judges are shown with the submitted ones: controls and examples.

Run in the checkout's root: PYTHONPATH=sample:src python -m contest_controls. The images are committed, since
judges/controls.yaml and judges/examples.yaml name them by SHA-256.
"""

import math
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from cleanset.images.codec import png
from cleanset.images.outlines import Outline, Point, as_text
from cleanset.plumbing.files import sha256
from contest_images import SIDE
from drawing.scenes import Scene, draw_masked

JUDGES = Path("sample", "contest", "judges")
GOLDFISH = "n01443537"
LADYBUG = "n02165456"
STARFISH = "n02317335"
LIGHTHOUSE = "n02814860"
STRAWBERRY = "n07745940"
BANANA = "n07753592"
CREATURES = (GOLDFISH, LADYBUG, STARFISH)
FRUIT = (STRAWBERRY, BANANA)
CONTROLS = [(GOLDFISH,), (STRAWBERRY,), (BANANA, LADYBUG), (LIGHTHOUSE,)]
SURE = "the object is large and plain to see"
EXAMPLES = [
    ((STARFISH,), 0, f"{SURE}. The outline follows its edge closely, also between the arms."),
    ((STRAWBERRY,), 73, "What can be seen leaves no doubt, but the border cuts a part off: it is not complete."),
    ((STRAWBERRY, GOLDFISH), 0, "One of each, so that no outline is asked for; size does not matter here."),
    ((), 0, "Neither: a background alone is not an object."),
]
"""Objects, pixels by which they are moved out of the image, reason why the answers are correct."""
ANGLES = 36


def control(shown: tuple[str, ...]) -> Image.Image:
    """A clear image of these objects."""
    image, _, _ = draw_masked(Scene(SIDE, SIDE, shown), Random(f"control {' '.join(shown)}"))
    return image


def example(shown: tuple[str, ...], outside: int) -> tuple[Image.Image, Image.Image]:
    """An image of these objects, moved to the left and partly out of it by `outside` pixels, and their mask."""
    scene = Scene(SIDE + outside, SIDE, shown)
    image, _, mask = draw_masked(scene, Random(f"example {' '.join(shown)}"))
    box = (outside, 0, SIDE + outside, SIDE)
    return image.crop(box), mask.crop(box)


def outline(mask: Image.Image) -> Outline:
    """The edge of a mask, as seen from its middle: exact for shapes that hide no part of their edge from there."""
    inside = np.asarray(mask.convert("L")) > 127
    rows, columns = np.nonzero(inside)
    x = float(columns.mean())
    y = float(rows.mean())
    corners: list[Point] = []
    for number in range(ANGLES):
        dx, dy = (f(2 * math.pi * number / ANGLES) for f in (math.cos, math.sin))
        far = max(r for r in range(SIDE) if _at(inside, x + r * dx, y + r * dy))
        corner = round(x + far * dx), round(y + far * dy)
        if corner not in corners:
            corners.append(corner)
    return tuple(corners)


def _at(inside: np.ndarray, x: float, y: float) -> bool:
    row = round(y)
    column = round(x)
    return 0 <= row < SIDE and 0 <= column < SIDE and bool(inside[row, column])


def main() -> None:
    """Write the images and the two files that name them."""
    controls = ["controls:\n"]
    examples = ["examples:\n"]
    for number, shown in enumerate(CONTROLS, start=1):
        digest = _written(f"control_{number}.png", control(shown))
        groups = [bool(set(shown) & set(group)) for group in (CREATURES, FRUIT)]
        controls.append(f'  "{digest}": {{contains: {{creature: {_yaml(groups[0])}, fruit: {_yaml(groups[1])}}}}}\n')
    for number, (shown, outside, because) in enumerate(EXAMPLES, start=1):
        image, mask = example(shown, outside)
        digest = _written(f"example_{number}.png", image)
        examples.append(f'  "{digest}":\n')
        groups = [bool(set(shown) & set(group)) for group in (CREATURES, FRUIT)]
        words = ["definitely_yes" if there else "definitely_no" for there in groups]
        examples.append(f"    contains: {{creature: {words[0]}, fruit: {words[1]}}}\n")
        if sum(groups) == 1:
            examples.append(f"    outline: {as_text(outline(mask))}\n    complete: {_yaml(not outside)}\n")
            examples.append("    not_occluded: true\n    real: true\n")
        examples.append(f'    because: "{because[0].upper()}{because[1:]}"\n')
    (JUDGES / "controls.yaml").write_text("".join(controls))
    (JUDGES / "examples.yaml").write_text("".join(examples))


def _written(name: str, image: Image.Image) -> str:
    path = JUDGES / "images" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(image))
    return sha256(path.read_bytes())


def _yaml(value: bool) -> str:
    return str(value).lower()


if __name__ == "__main__":
    main()
