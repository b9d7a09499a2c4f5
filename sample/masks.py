"""Draws the masks of the sample's objects, and backgrounds without any, for its robustness study.

They are in git, in studies/robustness/masks/drawn and studies/robustness/backgrounds. `python masks.py` draws them.
"""

import io
from concurrent.futures import ProcessPoolExecutor
from random import Random

from archives import write_whole
from cleanset.studies.robustness.scenarios.masks import mask_png
from draw import ROOT, Drawn, draw, image_id, progress
from drawing.backdrops import BACKDROPS
from drawing.canvas import Canvas
from plan import SEED, Plan, plans

STUDY = ROOT / "studies" / "robustness"
BACKGROUND_SIZE = (400, 300)


def masked(plan: Plan) -> Drawn:
    """The image with the mask of its object, if it has one."""
    return draw(plan, masked=True)


def background(name: str) -> bytes:
    """One backdrop without an object, as JPEG."""
    canvas = Canvas(*BACKGROUND_SIZE)
    BACKDROPS[name](canvas, Random(f"{SEED} background {name}"))
    buffer = io.BytesIO()
    canvas.finish().save(buffer, "JPEG", quality=85, subsampling=2, optimize=False)
    return buffer.getvalue()


def main() -> None:
    """Write a mask of each image with one object, and a background of each kind."""
    planned = plans()
    with ProcessPoolExecutor() as pool:
        results = progress(pool.map(masked, planned, chunksize=8), len(planned))
        for plan, result in zip(planned, results, strict=True):
            if result.mask is not None:
                write_whole(STUDY / "masks" / "drawn" / f"{image_id(plan.number)}.png", mask_png(result.mask))
    for name in sorted(BACKDROPS):
        write_whole(STUDY / "backgrounds" / f"{name}.jpg", background(name))


if __name__ == "__main__":
    main()
