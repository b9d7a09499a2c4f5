"""The perturbations of hendrycks/robustness, make_imagenet_p.py with torchvision 0.2.1, beside those of cleanset.

The published script has one perturbation in use and the others commented out: each is run as it stands between its
marks, with torchvision 0.2.1 and the draws of cleanset. FP and T5D are those of ImageNet-P's test.py.
"""

import collections.abc
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir
from types import ModuleType, SimpleNamespace
from typing import Any

import cv2
import numpy as np
import PIL
import skimage.color
import skimage.filters
import torch
from numpy.typing import NDArray
from PIL import Image

from authors.corruptions import WandImage, libraries_of_then, total
from authors.odd import odd_images
from authors.rows import Row, compared
from cleanset.images.codec import decode
from cleanset.images.preprocessing import wide_image
from cleanset.statistics.seeds import change_seed
from cleanset.studies.robustness.perturbations.changes import KIND, frames_of
from cleanset.studies.robustness.perturbations.measures import flips, pairs, top5_distances
from cleanset.studies.robustness.perturbations.params import ALL_PERTURBATIONS, NOISE_PERTURBATIONS, frame_count
from cleanset.studies.robustness.perturbations.videos import encoded
from cleanset.studies.robustness.published_images import video

IMAGENET_P = Path("hendrycks-robustness/ImageNet-P")
SCRIPT = "make_imagenet_p.py"
ENCODED = ("gaussian_noise", "motion_blur", "tilt")
FEWER = 4
"""Photographs whose frames are encoded as video, two seconds each."""


def rows(programs: Path, photographs: list[Path]) -> Iterator[Row]:
    """Two rows for each perturbation, of photographs and odd images, three for the codec, and two for FP and T5D."""
    images = [wide_image(decode(path.read_bytes())) for path in photographs]
    groups = {
        f"{len(images)} photographs, all frames": images,
        "8 odd images, all frames": [wide_image(image) for image in odd_images().values()],
    }
    for on, group in groups.items():
        for name in ALL_PERTURBATIONS:
            found = []
            for seed, image in enumerate(group):
                theirs = np.stack(authors_frames(programs, image, name, seed))
                found.append(compared(name, f"{SCRIPT}:{name}", on, our_frames(image, name, seed), theirs))
            yield total(found)
    for name in ENCODED:
        found = []
        for seed, image in enumerate(images[:FEWER]):
            ours = np.stack(encoded(list(our_frames(image, name, seed)), name))
            theirs = np.stack(authors_frames(programs, image, name, seed, as_video=True))
            found.append(compared(f"{name}, H.264", SCRIPT, f"{FEWER} photographs", ours, theirs))
        yield total(found)
    yield from measures(programs)


def our_frames(image: NDArray[np.uint8], name: str, seed: int) -> NDArray[np.uint8]:
    """All frames of a perturbation by cleanset."""
    make = frames_of(image, name, seed)
    return np.stack([make(frame) for frame in range(frame_count(name))])


def measures(programs: Path) -> Iterator[Row]:
    """FP and T5D of drawn logits: 40 videos of 31 frames for noise and for others at each difficulty."""
    text = (programs / IMAGENET_P / "test.py").read_text()
    text = text[text.index("identity = ") : text.index("# /////////////// Get Results")]
    generator = np.random.default_rng(0)
    logits = generator.random((40, 1, 1000)) + 0.1 * generator.random((40, 31, 1000))
    ordered = (-logits).argsort(axis=-1)
    ranks = ordered.argsort(axis=-1) + 1
    found = []
    expected = []
    for name, difficulty in (("gaussian_noise", 1), ("snow", 1), ("snow", 2), ("snow", 3)):
        defined: dict[str, Any] = {"np": np, "args": SimpleNamespace(perturbation=name, difficulty=difficulty)}
        exec(compile(text, "test.py", "exec"), defined)
        chosen = pairs(name, 31, difficulty=difficulty)
        both = flips(ordered[..., 0], chosen, axis=1).sum(), top5_distances(ordered[..., :5], chosen).sum()
        found.append(np.array(both) / (40 * len(chosen[0])))
        # rounded: each mean has other roundings in its last digits
        expected.append((defined["flip_prob"](ordered[..., 0]), defined["ranking_dist"](ranks)))
    ours = np.round(found, 12)
    theirs = np.round(expected, 12)
    for place, measure in enumerate(("FP", "T5D")):
        yield compared(measure, "test.py", "40 videos of drawn logits", ours[:, place], theirs[:, place])


def authors_frames(
    programs: Path, image: NDArray[np.uint8], name: str, seed: int, *, as_video: bool = False
) -> list[NDArray[np.uint8]]:
    """The authors' frames of an image whose short side has 256 pixels, before or after they are stored as video."""
    text = (programs / IMAGENET_P / "create_p" / SCRIPT).read_text()
    title = name.replace("_", " ").title()
    found = re.search(rf"//// {title} Code ////+\n(.*?)\n[ #]*/+ End {title} Code", text, re.DOTALL)
    assert found is not None, title
    code = textwrap.dedent(found[1])
    if not name.startswith("shot"):
        code = re.sub(r"^# ?", "", code, flags=re.MULTILINE)
    frames: list[NDArray[np.uint8]] = []
    with libraries_of_then(), old_torchvision(programs) as (transforms, functional):
        names: dict[str, Any] = {
            "np": Numpy(name, seed), "torch": Torch(name, seed), "cv2": cv2, "PILImage": Image, "BytesIO": BytesIO,
            "trn": transforms, "trn_F": functional, "img": Image.fromarray(image), "folder": "", "img_loc": "one.JPEG",
            "skcolor": skimage.color, "gaussian": skimage.filters.gaussian, "MotionImage": Motion,
            "gettempdir": gettempdir, "rmtree": rmtree,
        }  # fmt: skip
        script = text[text.index("def clipped_zoom") : text.index("for index, folder")]
        names["scizoom"] = __import__("scipy.ndimage").ndimage.zoom
        names["os"] = SimpleNamespace(path=os.path, times=os.times, makedirs=_make_temporary)

        def system(command: str) -> None:
            frames.extend(_encoded(command) if as_video else _stored(Path(names["tmp"])))

        names["os"].system = system
        exec(compile(script, SCRIPT, "exec"), names)
        exec(compile(code, SCRIPT, "exec"), names)
    return frames


def _make_temporary(path: str) -> None:
    if path.startswith(gettempdir()):
        Path(path).mkdir(parents=True)


def _stored(folder: Path) -> list[NDArray[np.uint8]]:
    count = len(list(folder.glob("img*.png")))
    return [np.asarray(Image.open(folder / f"img{number}.png")) for number in range(count)]


def _encoded(command: str) -> list[NDArray[np.uint8]]:
    """The frames of the video that the authors' command makes."""
    words = shlex.split(command)
    pattern = Path(words[words.index("-i") + 1])
    path = pattern.with_name("frames.mp4")
    subprocess.run(["ffmpeg", *words[1:-1], str(path)], capture_output=True, check=True)
    return video(path, len(list(path.parent.glob("img*.png"))))


class Motion(WandImage):
    """As the published script extends wand's Image."""

    def motion_blur(self, radius: float, sigma: float, angle: float) -> None:
        self.blur(radius, sigma, angle)


class Draws:
    """The draws of cleanset: those of noise from a seed for each frame, all others from one."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.seed = seed
        self.frame = 0

    def next(self) -> np.random.RandomState:
        self.frame += self.name in NOISE_PERTURBATIONS
        return np.random.RandomState(change_seed(self.seed, KIND, self.name, self.frame))

    def normal(self, **options: Any) -> NDArray[np.float64]:
        drawn: NDArray[np.float64] = self.next().normal(**options)
        return drawn

    def poisson(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        return self.next().poisson(values)


class Numpy:
    """numpy with these draws."""

    def __init__(self, name: str, seed: int) -> None:
        self.random = Draws(name, seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class Torch:
    """torch with these draws."""

    def __init__(self, name: str, seed: int) -> None:
        self.draws = Draws(name, seed)

    def randn_like(self, values: torch.Tensor) -> torch.Tensor:
        channels, height, width = values.shape
        drawn = self.draws.next().standard_normal((height, width, channels))
        return torch.from_numpy(drawn.transpose(2, 0, 1).astype(np.float32))

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


@contextmanager
def old_torchvision(programs: Path) -> Iterator[tuple[ModuleType, ModuleType]]:
    """The transforms of torchvision 0.2.1, and their functions; today's are put back at the end."""
    today = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "torchvision"}
    for name in today:
        del sys.modules[name]
    package = ModuleType("torchvision")
    package.__path__ = [str(programs / "torchvision-0.2.1" / "torchvision")]
    sys.modules["torchvision"] = package
    PIL.PILLOW_VERSION = PIL.__version__  # type: ignore[attr-defined]
    for name in ("Iterable", "Sequence"):
        setattr(collections, name, getattr(collections.abc, name))
    try:
        from torchvision import transforms
        from torchvision.transforms import functional

        yield transforms, functional
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.modules.update(today)
