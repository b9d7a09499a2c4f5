"""Hints of modification, measured in the background for the images that are shown or come next."""

import os
import signal
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING

from cleanset.errors import CleansetError
from cleanset.images.codec import Read

if TYPE_CHECKING:  # they import SciPy, which would delay the start
    from cleanset.hints.hints import Hint
    from cleanset.hints.measures import Fingerprint, Measures

MAX_MEASURED = 300
"""Images whose measures are kept, the last ones shown, some 0.1 MB each."""


class BackgroundHints:
    """Hints by image id, for the images measured so far. They help people to look, and decide nothing.

    Images are measured in another process, so that the page never waits.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._measured: OrderedDict[str, tuple[Measures, Fingerprint]] = OrderedDict()
        self._requested: set[str] = set()
        self._queue = ThreadPoolExecutor(1, "hints")
        self._process: Executor | None = None

    def request(self, image_ids: Iterable[str]) -> None:
        """Queue these images for measuring, in this order, unless they are measured already."""
        for image_id in image_ids:
            if image_id in self._measured:
                self._measured.move_to_end(image_id)
            elif image_id not in self._requested:
                self._requested.add(image_id)
                self._queue.submit(self._measure, image_id)

    def of(self, image_ids: Iterable[str]) -> "Mapping[str, list[Hint]]":
        """The hints on each of these images, and between them."""
        found = {image_id: self._measured.get(image_id) for image_id in image_ids}
        measured = {image_id: each for image_id, each in found.items() if each is not None}
        if not measured:
            return {}
        from cleanset.hints.hints import hints_between_images, hints_of_image

        others = hints_between_images({image_id: fingerprint for image_id, (_, fingerprint) in measured.items()})
        return {
            image_id: [*hints_of_image(measures), *others[image_id]] for image_id, (measures, _) in measured.items()
        }

    def close(self) -> None:
        """Stop measuring."""
        self._queue.shutdown(wait=False, cancel_futures=True)
        if self._process is not None:
            self._process.shutdown(wait=False, cancel_futures=True)

    def _measure(self, image_id: str) -> None:
        from cleanset.hints.measures import measure_jpeg

        if self._process is None:
            self._process = _start_process()
        # an image that cannot be read is reported where it is shown
        with suppress(CleansetError, OSError, ValueError):
            try:
                self._measured[image_id] = self._process.submit(measure_jpeg, self._read(image_id)).result()
            except BrokenProcessPool:  # killed from outside: the next image gets a new process
                self._process = None
        while len(self._measured) > MAX_MEASURED:
            # the first is the one that was asked for longest ago
            self._measured.popitem(last=False)
        self._requested.discard(image_id)


def _start_process() -> Executor:
    """A process that ignores Ctrl+C, which a terminal sends to it, too, maybe while it is still importing."""
    # spawn: a fork of a process with threads may inherit a lock that nobody releases
    executor = ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin_in_process)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a new process inherits it
    # the pool starts its process at the first task, here while the signal is blocked
    executor.submit(os.getpid)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return executor


def _begin_in_process() -> None:
    """Give the page priority, and end with the parent process, even if that is killed."""
    os.nice(10)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    # sys.exit would end this thread only
    os._exit(0)
