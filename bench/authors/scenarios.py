"""The scenarios as XIMAGENET-12's published code makes them, on the photographs with an ellipse as the object.

The scripts run as they are but for folders and random numbers: both get the draws of `cleanset`. They write JPEG files,
whose pixels are taken before they are compressed.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import cv2
import numpy as np
from PIL import Image

from authors.rows import Row, compared
from cleanset.images.preprocessing import base_image
from cleanset.plumbing.files import sha256
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.robustness.images import StudyFile
from cleanset.studies.robustness.scenarios.changes import SceneImage, SceneMask
from cleanset.studies.robustness.scenarios.params import Scenarios
from cleanset.studies.robustness.scenarios.photographs import StoredFile
from cleanset.studies.robustness.scenarios.scenes import HUES, KIND

PROGRAM = "XIMAGENET-12/explainable-ai-imagenet-12"
COLORS = ("image_r", "image_g", "image_b")
NAMES = (
    "blur_background", "blur_object", *COLORS, "image_rainbow", "image_brightness", "segmented_image",
    "transparent_image", "random_background",
)  # fmt: skip


def rows(programs: Path, photographs: list[Path]) -> Iterator[Row]:
    """A row for each scenario that the published code makes; image_grey it does not have."""
    with tempfile.TemporaryDirectory() as folder:
        images = [_Pair(Path(folder), path, photographs[number - 1]) for number, path in enumerate(photographs)]
        for name in NAMES:
            theirs = np.stack([base_image(Image.fromarray(each.theirs(programs / PROGRAM, name))) for each in images])
            ours = np.stack([each.ours(name) for each in images])
            on = f"{len(images)} photographs, an ellipse as object"
            digest = f"SHA-256 of theirs {sha256(theirs.tobytes())[:16]}…"
            yield compared(f"{name}, as_coded", "XIMAGENET-12's code", on, ours, theirs, digest)


def ellipse(height: int, width: int) -> np.ndarray:
    """The mask of the object: true within an ellipse of 70 % of height and width."""
    down, right = np.ogrid[1 - height : height : 2, 1 - width : width : 2]
    return 2 * (down.astype(np.int64) ** 2 * width**2 + right.astype(np.int64) ** 2 * height**2) < (width * height) ** 2


class _Pair:
    """A photograph with its mask and background, for both programs."""

    def __init__(self, folder: Path, path: Path, background: Path) -> None:
        self.folder = folder / path.stem
        self.name = path.stem
        self.pixels, behind = (np.asarray(Image.open(each).convert("RGB")) for each in (path, background))
        self.mask = ellipse(*self.pixels.shape[:2]).astype(np.uint8) * 255
        for place, pixels in (("image/c", self.pixels), ("masks/c", self.mask), ("behind", behind)):
            (self.folder / place).mkdir(parents=True)
            suffix = "png" if place == "masks/c" else "JPEG"
            # PNG in either case: so both programs read the same pixels
            Image.fromarray(pixels).save(self.folder / place / f"{self.name}.{suffix}", "PNG")
        (self.folder / "standard_masks").symlink_to("masks")

    def stored(self, place: str) -> StoredFile:
        (path,) = (self.folder / place).iterdir()
        return StoredFile(path, sha256(path.read_bytes()))

    def ours(self, name: str) -> np.ndarray:
        file = self.stored("image/c")
        masks = {file.path: SceneMask(self.stored("masks/c"), "png", "", None)}
        scenes = SceneImage(
            masks, (self.stored("behind"),), wanted=Scenarios.model_validate({"definition": "as_coded"})
        )
        return scenes(StudyFile(*file, self.name), name, 0, image_seed(0, self.name))

    def drawn(self, name: str, count: int) -> int:
        return int(np.random.RandomState(change_seed(image_seed(0, self.name), KIND, name, 0)).randint(count))

    def randint(self, least: int, most: int) -> int:
        """The draws of Color_image.py: which half of the reds, a hue, and the rainbow's shift."""
        hues = {name: HUES[name][self.drawn(name, len(HUES[name]))] for name in COLORS}
        if (least, most) == (0, 1):
            return int(hues["image_r"] >= 150)
        if (least, most) == (0, 90):
            return self.drawn("image_rainbow", 91)
        (found,) = (hue for hue in hues.values() if least <= hue <= most)
        return found

    def theirs(self, program: Path, name: str) -> np.ndarray:
        """The image as the script writes it, before it is compressed."""
        if name.startswith("blur"):
            found = self._run(program / "utils.py", ("blur", "image/c", "masks/c", name.removeprefix("blur_")))
        elif name == "transparent_image":
            found = self._run(program / "utils.py", ("convert_to_transparent_v2", "image/c", "image/c"))
            colors = found[..., :3]
            alpha = found[..., 3:]
            found = np.where(alpha == 0, np.uint8(0), colors)
        elif name in ("segmented_image", "random_background"):
            found = self._run(program / "segementwithRGB.py")
        else:
            found = self._run(program / "Color_image.py", (name,))
        if name == "random_background":
            cut = self.folder / "cut"
            cut.mkdir()
            Image.fromarray(found[..., ::-1]).save(cut / f"{self.name}.JPEG", "PNG")
            found = self._run(program / "generated_background.py")
        return np.ascontiguousarray(found[..., ::-1])

    def _run(self, script: Path, call: tuple[str, ...] = ()) -> np.ndarray:
        """Run a script with this photograph's folders; the image that it writes, blue first."""
        written: dict[str, np.ndarray] = {}
        wanted = call[0] if script.stem == "Color_image" else ""
        text = script.read_text(encoding="utf-8").replace("\\\\", "/")
        for line in text.splitlines():
            for key, place in FOLDERS.items():
                if line.startswith((f"{key} = ", f"    {key}=")):
                    text = text.replace(line, f"{line.split('=')[0]}= {str(self.folder / place)!r}")
        text = text.replace("flag_bg_bright = 0", f"flag_bg_bright = {int(wanted == 'image_brightness')}")
        seen = SimpleNamespace(**{name: getattr(cv2, name) for name in dir(cv2)})
        seen.imwrite = lambda path, image: written.update({str(path): np.array(image)})
        seen.imshow = seen.waitKey = lambda *_: 0
        drawn = SimpleNamespace(randint=self.randint, shuffle=lambda _: None)
        modules = {"cv2": seen, "random": drawn}
        names: dict[str, Any] = {"__name__": "__main__"}
        with mock.patch.dict(sys.modules, modules), redirect_stdout(StringIO()):
            exec(compile(text, script.name, "exec"), names)
            if script.stem == "utils":
                paths = [str(next((self.folder / place).iterdir())) for place in call[1:3]]
                names[call[0]](*paths, *call[3:])
        key = "_bright.png" if wanted == "image_brightness" else f"/{wanted}/"
        (found,) = (image for path, image in written.items() if key in path or not wanted)
        return found


FOLDERS = {
    "path1": "image",
    "original_folder": "image/c",
    "mask_folder": "masks/c",
    "foreground_folder": "cut",
    "background_folder": "behind",
    "output_folder": "written",
}
"""The variables of the scripts that name folders."""
