"""Signs of modification, measured in the background for the pictures that are shown or come next."""

import pickle
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from cleanset.errors import CleansetError
from cleanset.images import Read

if TYPE_CHECKING:  # they import SciPy, which would delay the start
    from cleanset.review.hint_measures import Fingerprint, Measures
    from cleanset.review.hints import Hint


class Signs:
    """Hints by image id, as far as the pictures are measured. They help to look; they decide nothing.

    The measuring is a process of its own, so that turning the page never waits for it; it ends with this one.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._measured: dict[str, tuple[Measures, Fingerprint]] = {}
        self._asked: set[str] = set()
        self._pool = ThreadPoolExecutor(1, "signs")
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, image_ids: Iterable[str]) -> None:
        """Have these pictures measured, in this order, if they are not yet."""
        for image_id in image_ids:
            if image_id not in self._asked:
                self._asked.add(image_id)
                self._pool.submit(self._measure, image_id)

    def of(self, image_ids: Iterable[str]) -> "Mapping[str, list[Hint]]":
        """The hints on each of these pictures, and between them."""
        there = {image_id: self._measured[image_id] for image_id in image_ids if image_id in self._measured}
        if not there:
            return {}
        from cleanset.review.hints import between, hints

        others = between({image_id: fingerprint for image_id, (_, fingerprint) in there.items()})
        return {image_id: [*hints(measures), *others[image_id]] for image_id, (measures, _) in there.items()}

    def close(self) -> None:
        """Measure no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._process is not None:
            self._process.kill()

    def _measure(self, image_id: str) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "cleanset.reviewer.measuring"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # a picture that cannot be read is told where it is shown; without the process there are no hints
        with suppress(CleansetError, OSError, EOFError):
            pickle.dump(self._read(image_id), self._process.stdin)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
            if answer is not None:
                self._measured[image_id] = answer
