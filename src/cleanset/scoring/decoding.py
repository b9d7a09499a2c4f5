"""From image ids to batches of preprocessed pixels, decoded ahead of whoever computes with them.

Two ways with the same result: threads, which are best where the same cores compute, since Pillow
releases the lock for all but a quarter of a millisecond per picture; and processes that write into
shared memory, for a GPU, where that quarter would hold up the launching of its work. No torch here,
so that a worker process starts in a second.
"""

import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.images import Preprocessing, Source, decode

Pixels = Callable[[Image.Image], NDArray[np.uint8]]
"""From a decoded picture to what a network sees."""

AHEAD = 4
"""Batches that are decoded before they are asked for; in shared memory one more is in use."""


class Batch(NamedTuple):
    """`pixels` has the same shape every time; the pictures after `image_ids` are zeros, there to fill it."""

    image_ids: Sequence[str]
    pixels: NDArray[np.uint8]


def pixels_of(image_id: str, read: Source, preprocessing: Pixels) -> NDArray[np.uint8]:
    """What a network gets of one picture. Raises CleansetError, naming it, if it cannot be read."""
    try:
        found = read(image_id)
        return preprocessing(decode(found) if isinstance(found, bytes) else found)
    except ValueError as error:
        raise CleansetError(f"{image_id}: cannot be read ({error}); expected a whole JPEG") from None


def in_threads(
    groups: Iterable[Sequence[str]], read: Source, preprocessing: Preprocessing, batch_size: int, workers: int
) -> Generator[Batch, None, None]:
    """A batch for each group of at most `batch_size` image ids, in order, decoded ahead in threads.

    `groups` is drawn from only as far as that goes ahead. Raises CleansetError as `pixels_of` does.
    """
    shape = (batch_size, 3, preprocessing.size, preprocessing.size)

    def fill(pixels: NDArray[np.uint8], place: int, image_id: str) -> None:
        pixels[place] = pixels_of(image_id, read, preprocessing)

    def start(group: Sequence[str]) -> tuple[Batch, list[Future[None]]]:
        pixels = np.zeros(shape, np.uint8)
        return Batch(group, pixels), [pool.submit(fill, pixels, *item) for item in enumerate(group)]

    waiting: deque[tuple[Batch, list[Future[None]]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for group in groups:
                waiting.append(start(group))
                if len(waiting) * batch_size > max(2 * workers, AHEAD * batch_size // 2):
                    yield _whole(waiting.popleft())
            while waiting:
                yield _whole(waiting.popleft())
        finally:
            for _, futures in waiting:
                for future in futures:
                    future.cancel()


def _whole(started: tuple[Batch, list[Future[None]]]) -> Batch:
    batch, futures = started
    try:
        for future in futures:
            future.result()
    finally:
        for future in futures:
            future.cancel()
    return batch


class SharedBatches:
    """Memory for a few batches, which worker processes fill; a context that ends them.

    A batch's memory is filled anew as soon as the next batch is asked for. `memory` is the whole of
    it, for whoever wants to pin it.
    """

    def __init__(self, read: Source, preprocessing: Preprocessing, batch_size: int, workers: int) -> None:
        context = get_context("forkserver")  # a fork of a process that has threads, or CUDA, may hang
        shape = (AHEAD + 1, batch_size, 3, preprocessing.size, preprocessing.size)
        # lies in /dev/shm, or, where a container leaves that too small, in a temporary file; never outlives us
        raw = context.RawArray("B", int(np.prod(shape)))
        self.memory: NDArray[np.uint8] = np.frombuffer(raw, np.uint8).reshape(shape)
        self._workers: list[tuple[BaseProcess, Connection[Any, Any]]] = []
        for _ in range(workers):
            ours, theirs = context.Pipe()
            arguments = (theirs, raw, shape, read, preprocessing)
            process = context.Process(target=_fill, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._workers.append((process, ours))

    def __enter__(self) -> "SharedBatches":
        return self

    def __exit__(self, *error: object) -> None:
        for _, pipe in self._workers:
            pipe.close()  # which is the sign to end; so is our own death
        for process, _ in self._workers:
            process.join()

    def batches(self, groups: Iterable[Sequence[str]]) -> Iterator[Batch]:
        """A batch for each group of image ids, in order. Raises CleansetError as `pixels_of` does."""
        waiting: deque[Batch] = deque()
        for number, group in zip(count(), groups):
            if number > AHEAD:
                yield self._whole(waiting.popleft())
            slot = number % (AHEAD + 1)
            batch = Batch(group, self.memory[slot])
            batch.pixels[len(group) :] = 0
            for worker, (process, pipe) in enumerate(self._workers):
                places = range(worker, len(group), len(self._workers))
                try:
                    pipe.send((slot, [(place, group[place]) for place in places]))
                except (BrokenPipeError, ConnectionResetError):
                    raise _ended(process, batch) from None
            waiting.append(batch)
        while waiting:
            yield self._whole(waiting.popleft())

    def _whole(self, batch: Batch) -> Batch:
        for process, pipe in self._workers:
            try:
                problem = pipe.recv()
            except (EOFError, ConnectionResetError):
                raise _ended(process, batch) from None
            if problem is not None:
                raise problem
        return batch


def _ended(process: BaseProcess, batch: Batch) -> CleansetError:
    process.join()
    return CleansetError(
        f"a process that decodes pictures ended with exit code {process.exitcode}, near {batch.image_ids[0]}; "
        "expected it to go on: run again (what is finished is kept), with more memory if it was short of it"
    )


def _fill(
    pipe: "Connection[Any, Any]", raw: Any, shape: tuple[int, ...], read: Source, preprocessing: Preprocessing
) -> None:
    """A worker process: write the pictures that are asked for into their places, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who asks is interrupted too, and closes the pipe
    memory = np.frombuffer(raw, np.uint8).reshape(shape)
    while True:
        try:
            slot, places = pipe.recv()
        except (EOFError, ConnectionResetError):
            return
        problem = None
        try:
            for place, image_id in places:
                memory[slot, place] = pixels_of(image_id, read, preprocessing)
        except (CleansetError, OSError) as error:
            problem = error
        try:
            pipe.send(problem)
        except (BrokenPipeError, ConnectionResetError):
            return
