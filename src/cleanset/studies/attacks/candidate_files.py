"""The PNG of each candidate, with its L0, L2, Linf and SSIM to the image; LPIPS, which needs a network, is not here.

Encoding, decoding and SSIM take some 20 ms an image. A GPU does not wait for them: processes make the files of a group
while it judges the candidates. No torch here, which these processes do not need.
"""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

import numpy as np
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.images import codec
from cleanset.images.preprocessing import PixelPlanes
from cleanset.plumbing.files import sha256
from cleanset.scoring.decoding import worker_processes
from cleanset.studies.attacks.threats import LEVELS, Ball

MAX_WRITERS = 8
"""Processes for one device: together they make 400 files a second."""

Distance = Callable[[PixelPlanes, PixelPlanes], float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unwritten:
    """A candidate for an image, and the ball around a center that it was promised in; None: in any distance."""

    name: str
    image: PixelPlanes
    candidate: PixelPlanes
    center: PixelPlanes
    ball: Ball | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateFile:
    """The PNG of a candidate, with its distances from the image, by column, and in the norm of its ball from the
    center of that.
    """

    png: bytes
    sha256: str
    distances: dict[str, float | None]
    from_center: float | None


def candidate_file(asked: Unwritten) -> CandidateFile:
    """The file of a candidate, which holds exactly its pixels.

    Raises CleansetError if the candidate is not in the ball that the attack promised, and for a file of other pixels.
    """
    ball = asked.ball
    from_center = None if ball is None else ball.distance(asked.center, asked.candidate)
    if ball is not None and not ball.contains(asked.center, asked.candidate):
        raise CleansetError(
            f"{asked.name}: a candidate at {ball.norm} {from_center:.6g}; expected at most {ball.eps:.6g}: "
            "the attack is wrong, please report it"
        )
    png = png_of(asked.candidate)
    # whoever has the file gets the verdict on the array
    if not np.array_equal(pixels_of_png(png), asked.candidate):
        raise CleansetError(
            f"{asked.name}: the PNG of a candidate has other pixels; expected the same: install the locked Pillow"
        )
    return CandidateFile(
        png=png, sha256=sha256(png), distances=distances(asked.image, asked.candidate), from_center=from_center
    )


def png_of(pixels: PixelPlanes) -> bytes:
    """The PNG of an image."""
    return codec.png(Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0))))


def pixels_of_png(png: bytes) -> PixelPlanes:
    """The pixels in a PNG. Raises ValueError if it cannot be read."""
    image = codec.decode(png, ("PNG",)).convert("RGB")
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def distances(image: PixelPlanes, candidate: PixelPlanes, lpips: Distance | None = None) -> dict[str, float | None]:
    """The distances of a candidate from the image, by column; sides of at least 7 pixels.

    Pixels are in 0..1, and all distances 0 (and SSIM 1) for the image itself. `l0`: the places where any color differs.
    `ssim`: structural similarity as scikit-image computes it by default. `lpips`: None if it is not measured.
    """
    from skimage.metrics import structural_similarity

    similarity: Callable[..., float] = structural_similarity
    # differences of uint8 would wrap around
    difference = np.abs(candidate.astype(np.int64) - image)
    return {
        "l0": int((difference > 0).any(axis=0).sum()),
        "l2": float(np.sqrt((difference**2).sum())) / LEVELS,
        "linf": float(difference.max()) / LEVELS,
        "ssim": float(similarity(image, candidate, channel_axis=0, data_range=LEVELS)),
        "lpips": None if lpips is None else lpips(image, candidate),
    }


Begun = Callable[[], CandidateFile]
"""Waits for a file; raises as `candidate_file` does."""


class Writers:
    """Processes that make files; a context manager that ends them. Without any, a file is made when it is waited for.

    They end with this process, too, however that ends: their pipes are closed then.
    """

    def __init__(self, processes: int) -> None:
        self._own = threading.local()
        # each thread has a process, and starts it: the server of processes answers when it has imported the modules
        self._threads = ThreadPoolExecutor(processes, initializer=self._start) if processes else None
        if processes:
            worker_processes([__name__, "skimage.metrics"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def begin(self, asked: Unwritten) -> Begun:
        """Begin a file."""
        if self._threads is None:
            return partial(candidate_file, asked)
        return self._threads.submit(self._made, asked).result

    def _start(self) -> None:
        context = worker_processes()
        self._own.pipe, theirs = context.Pipe()
        context.Process(target=_write, args=(theirs,), daemon=True).start()
        theirs.close()

    def _made(self, asked: Unwritten) -> CandidateFile:
        pipe: Connection[Unwritten, CandidateFile | Exception] = self._own.pipe
        try:
            pipe.send(asked)
            found = pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise CleansetError(
                f"{asked.name}: a process that writes candidates was killed; expected it to continue: run again "
                "(what is finished is kept), with more memory if it ran out of it"
            ) from None
        if isinstance(found, Exception):
            raise found
        return found


def _write(pipe: "Connection[CandidateFile | Exception, Unwritten]") -> None:
    """A writing process: answer each candidate with its file, or with the error."""
    # the parent is interrupted too, and closes the pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            return
        try:
            found: CandidateFile | Exception = candidate_file(asked)
        except Exception as error:
            found = error
        pipe.send(found)
