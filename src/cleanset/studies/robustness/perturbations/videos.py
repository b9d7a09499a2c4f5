"""Frames stored as H.264 video and read back, like ImageNet-P's; needs ffmpeg with libx264.

The options come from the published script, make_imagenet_p.py. Versions of libx264 differ in the bytes they write.
"""

import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from cleanset.errors import CleansetError
from cleanset.evaluation.sets import ImageFile
from cleanset.images.preprocessing import Pixels
from cleanset.studies.robustness.perturbations.changes import PerturbedImage
from cleanset.studies.robustness.perturbations.params import NOISE_PERTURBATIONS, frame_count
from cleanset.studies.robustness.published_images import video


def encoder_version() -> str:
    """The version of ffmpeg, to be recorded; pixels are decided by its libx264, too.

    Raises CleansetError without ffmpeg with libx264.
    """
    path = shutil.which("ffmpeg")
    run = None if path is None else subprocess.run([path, "-encoders"], capture_output=True, text=True, check=False)
    if run is None or "libx264" not in run.stdout:
        found = "no ffmpeg" if run is None else f"{path} without libx264"
        raise CleansetError(
            f"perturbations.codec: h264, and {found} was found; expected ffmpeg with libx264 in PATH: "
            "install it, or set codec: null"
        )
    return run.stderr.splitlines()[0]


@dataclass(frozen=True, slots=True)
class EncodedFrames:
    """The frames of perturbations after H.264: a callable that can be pickled."""

    frames: PerturbedImage

    def __call__(self, file: ImageFile, change: str, step: int, seed: int) -> Pixels:
        """A frame; `step` is its number, from 0."""
        return _encoded(self.frames.levels[change], file, change, seed)[step]


# the frames of a sequence follow each other
@lru_cache(maxsize=1)
def _encoded(level: int, file: ImageFile, change: str, seed: int) -> list[Pixels]:
    make = PerturbedImage({change: level})
    count = frame_count(change)
    return encoded([make(file, change, frame, seed) for frame in range(count)], change)


def encoded(frames: list[Pixels], change: str) -> list[Pixels]:
    """The frames of a whole sequence, encoded with the benchmark's options for this perturbation and decoded."""
    options = ["-tune", "grain"] if change in NOISE_PERTURBATIONS else ["-crf", "20"]
    with TemporaryDirectory() as folder:
        for number, frame in enumerate(frames):
            Image.fromarray(frame).save(Path(folder, f"img{number}.png"))
        path = Path(folder, "frames.mp4")
        inputs = ["-r", "1", "-framerate", "1", "-i", str(Path(folder, "img%01d.png"))]
        coding = ["-vcodec", "libx264", *options, "-preset", "veryslow"]
        command = ["ffmpeg", "-loglevel", "error", *inputs, *coding, str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise CleansetError(f"ffmpeg: {run.stderr.strip()}; expected it to encode frames, see perturbations.codec")
        return video(path, len(frames))
