"""From image ids to batches of preprocessed pixels, decoded ahead of the computation.

Two ways with the same result: threads, which are best where the same cores compute, since Pillow
releases the GIL for all but a quarter of a millisecond per image; and processes that write into
shared memory, for a GPU, where that quarter would delay the launching of kernels. No torch here: worker
processes are forked by a server that has imported no more than they need.
"""

import pickle
import signal
import sys
from collections import deque
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.images.codec import Source, decode, unreadable_image
from cleanset.images.preprocessing import PixelPlanes, Preprocessing

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import SynchronizedArray

Result = TypeVar("Result")

PRELOADED = (
    "cleanset.plumbing.safe_imports",
    "PIL.JpegImagePlugin", "PIL.PngImagePlugin",
    "cleanset.cli", "cleanset.dataset.archives", "cleanset.scoring.decoding",
)  # fmt: skip
"""Modules that every worker process imports: `cleanset.cli` is the main module of a command."""
# batches that are decoded before they are asked for; in shared memory one more is in use
PREFETCHED_BATCHES = 4
PORTIONS = 4
"""Portions of a batch for each worker, on average: with 1, one slow worker in four made decoding 2.3 times slower."""


class PixelBatch(NamedTuple):
    """Pixels, uint8, of a full batch, padded with zeros if it has fewer `image_ids`."""

    image_ids: Sequence[Any]
    pixels: NDArray[np.uint8]


def pixels_of(image_id: Hashable, read: Source, preprocessing: Preprocessing) -> PixelPlanes:
    """The preprocessed pixels of one image. Raises CleansetError, naming the image, if that fails."""
    try:
        data = read(image_id)
        image = decode(data) if isinstance(data, bytes) else data
    except ValueError as error:
        raise unreadable_image(image_id, error) from None
    try:
        return preprocessing(image)
    except ValueError as error:
        raise CleansetError(f"{image_id}: too elongated ({error}): replace the image, or draw another crop") from None


def in_threads(
    groups: Iterable[Sequence[Hashable]], read: Source, preprocessing: Preprocessing, batch_size: int, workers: int
) -> Generator[PixelBatch, None, None]:
    """A batch for each group of at most `batch_size` image ids, in order, decoded ahead in threads.

    `groups` is consumed only as far as decoding runs ahead. Raises CleansetError as `pixels_of` does.
    """
    shape = (batch_size, 3, preprocessing.size, preprocessing.size)

    def fill(batch: PixelBatch, place: int) -> PixelBatch | None:
        """Decode an image into its place; the batch, if it is the last one."""
        batch.pixels[place] = pixels_of(batch.image_ids[place], read, preprocessing)
        return batch if place == len(batch.image_ids) - 1 else None

    def started() -> Iterator[Future[PixelBatch | None]]:
        for group in groups:
            batch = PixelBatch(group, np.zeros(shape, np.uint8))
            for place in range(len(group)):
                yield pool.submit(fill, batch, place)

    ahead = max(2 * workers, PREFETCHED_BATCHES * batch_size // 2)
    with ThreadPoolExecutor(workers) as pool, closing(in_order(started(), ahead)) as results:
        yield from (batch for batch in results if batch is not None)


def in_order(futures: Iterable[Future[Result]], ahead: int) -> Generator[Result, None, None]:
    """The results of futures in their order; `ahead` further ones are taken first. Its end cancels the others."""
    pending: deque[Future[Result]] = deque()
    try:
        for future in futures:
            pending.append(future)
            if len(pending) > ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()


def worker_processes(modules: Iterable[str] = ()) -> ForkServerContext:
    """Start the server that forks worker processes, unless it runs: it imports PRELOADED and `modules` in the
    background.

    So call this before long operations, such as reading weights. Forked from this process, which has threads and may
    have CUDA, they might hang.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, *modules])
    forkserver.ensure_running()
    return context


class SharedBatches:
    """Shared memory for a few batches, filled by worker processes; a context manager that ends them.

    A batch's memory is overwritten as soon as the next batch is asked for. `memory` is all of it, so
    that it can be pinned. `modules`: modules that the workers import in addition to PRELOADED.
    """

    LOCK_SECONDS = 30.0
    """A worker that waits longer for the others, which hold the lock for microseconds, ends: one of them was killed."""

    def __init__(
        self, read: Source, preprocessing: Preprocessing, batch_size: int, workers: int, modules: Iterable[str] = ()
    ) -> None:
        context = worker_processes(modules)
        shape = (PREFETCHED_BATCHES + 1, batch_size, 3, preprocessing.size, preprocessing.size)
        # in /dev/shm, or, where a container leaves that too small, in a temporary file; never outlives this process
        raw = context.RawArray("B", int(np.prod(shape)))
        self._taken = context.Array("i", PREFETCHED_BATCHES + 1)  # images of each batch that a worker has taken
        self.memory: NDArray[np.uint8] = np.frombuffer(raw, np.uint8).reshape(shape)
        self._is_unfinished = False
        self._workers: list[tuple[BaseProcess, Connection[tuple[int, Sequence[Hashable]], Exception | None]]] = []
        # consecutive images to one worker: they may be made of the same file
        portion = -(-batch_size // (PORTIONS * workers))
        # sent when all processes are starting: as an argument it would hold up each until the one before has imported
        source = pickle.dumps((read, preprocessing))
        for _ in range(workers):
            ours, theirs = context.Pipe()
            taking = self._taken, portion, self.LOCK_SECONDS
            process = context.Process(target=_fill, args=(theirs, raw, shape, *taking), daemon=True)
            process.start()
            theirs.close()
            self._workers.append((process, ours))
        for _, pipe in self._workers:
            with suppress(BrokenPipeError, ConnectionResetError):  # batches() reports that it has ended
                pipe.send_bytes(source)

    def __enter__(self) -> "SharedBatches":
        return self

    def __exit__(self, *error: object) -> None:
        for _, pipe in self._workers:
            pipe.close()  # tells the worker to end, as the death of this process does
        for process, _ in self._workers:
            process.join()

    def batches(self, groups: Iterable[Sequence[Hashable]]) -> Generator[PixelBatch, None, None]:
        """A batch for each group of image ids, in order. Raises CleansetError as `pixels_of` does.

        Who ends it early gets no further batches from these processes, whose answers to the rest are still to come.
        """
        if self._is_unfinished:
            raise CleansetError("the processes that decode images stopped halfway; run again")
        self._is_unfinished = True
        pending: deque[PixelBatch] = deque()
        for number, group in zip(count(), groups):
            if number > PREFETCHED_BATCHES:
                yield self._filled(pending.popleft())
            slot = number % (PREFETCHED_BATCHES + 1)
            batch = PixelBatch(group, self.memory[slot])
            batch.pixels[len(group) :] = 0
            self._taken[slot] = 0
            for process, pipe in self._workers:
                try:
                    pipe.send((slot, group))
                except (BrokenPipeError, ConnectionResetError):
                    raise _ended(process, batch) from None
            pending.append(batch)
        while pending:
            yield self._filled(pending.popleft())
        self._is_unfinished = False

    def _filled(self, batch: PixelBatch) -> PixelBatch:
        for process, pipe in self._workers:
            try:
                problem = pipe.recv()
            except (EOFError, ConnectionResetError):
                raise _ended(process, batch) from None
            if problem is not None:
                raise problem
        return batch


def _ended(process: BaseProcess, batch: PixelBatch) -> CleansetError:
    process.join()
    return CleansetError(
        f"a process that decodes images ended with exit code {process.exitcode}, near {batch.image_ids[0]}; "
        "expected it to continue: run again (finished shards are kept), with more memory if it ran out of it"
    )


def _fill(
    pipe: "Connection[Exception | None, tuple[int, Sequence[Hashable]]]",
    raw: Any,
    shape: tuple[int, ...],
    taken: "SynchronizedArray[int]",
    portion: int,
    seconds: float,
) -> None:
    """The worker process: decode images of each batch into their places, until the pipe is closed.

    It is sent the source and the preprocessing first, then the ids of each batch; it takes `portion` at a time
    that no other has taken: a slow process holds up none of the rest.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and closes the pipe
    sys.stdout = sys.stderr  # what a user's preprocessing prints must not be within --json
    memory = np.frombuffer(raw, np.uint8).reshape(shape)
    try:
        read, preprocessing = pickle.loads(pipe.recv_bytes())
    except (EOFError, ConnectionResetError):
        return
    while True:
        try:
            slot, group = pipe.recv()
        except (EOFError, ConnectionResetError):
            return
        problem = None
        try:
            while (start := _take(taken, slot, portion, seconds)) < len(group):
                for place, image_id in enumerate(group[start : start + portion], start):
                    memory[slot, place] = pixels_of(image_id, read, preprocessing)
        except (CleansetError, OSError) as error:
            problem = error
        try:
            pipe.send(problem)
        except (BrokenPipeError, ConnectionResetError):
            return


def _take(taken: "SynchronizedArray[int]", slot: int, portion: int, seconds: float) -> int:
    """Take the next images of a batch; return the place of the first. Ends this process if the lock is never free."""
    if not taken.get_lock().acquire(timeout=seconds):
        sys.exit("a process that decodes images ended while it held the lock")
    start: int = taken[slot]
    taken[slot] = start + portion
    taken.get_lock().release()
    return start
