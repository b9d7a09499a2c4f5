"""Tasks and workers of every long computation, and the engine local: any worker of this machine computes any shard.

Worker: computes shards on one device. It is in this process, as the pipelines of `score` and the passes of changed
images are, or in a process of its own (`WorkerProcess`), as those of attacks are, which use the process's global random
generators. The bytes of a shard depend neither on the worker nor on the number of workers.
"""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from cleanset.errors import CleansetError
from cleanset.plumbing.machine import available_cores, max_workers
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device
from cleanset.scoring.shards import Shards
from cleanset.scoring.validity import MadeFrom

Found = TypeVar("Found")
"""The result of a shard: its table, or several tables."""

FoundOut = TypeVar("FoundOut", covariant=True)

END_SECONDS = 10.0
"""Seconds that a process gets to end before it is killed."""


@dataclass(frozen=True, slots=True)
class Task:
    """A shard to be computed: its number and its image ids."""

    number: int
    ids: Sequence[Any]


def missing_tasks(shards: Shards) -> list[Task]:
    """The shards that were missing when `shards` were opened, in order."""
    return [Task(number, shards.image_ids(number)) for number in shards.missing]


class Tasks(Iterator[Task]):
    """Tasks in order, each for the worker that asks first; none once they are stopped."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = iter(tasks)
        self._changed = threading.Condition(threading.RLock())
        self._open = 0
        self._is_stopped = False

    def __next__(self) -> Task:
        with self._changed:
            if self._is_stopped:
                raise StopIteration
            found = next(self._tasks)
            self._open += 1
            return found

    @property
    def is_stopped(self) -> bool:
        """Whether the computation is over, or has failed."""
        return self._is_stopped

    def stop(self) -> None:
        """Give no further task."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def finish(self, keep: Callable[[int, Found], None], number: int, found: Found) -> None:
        """Keep the result of a task; no task is taken, and no other result kept, meanwhile."""
        with self._changed:
            keep(number, found)
            self._open -= 1
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until the tasks that were taken are finished, or until they are stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or self._open == 0)


class Worker(Protocol[FoundOut]):
    """Computes shards on one device."""

    def results(self, tasks: Tasks) -> Generator[tuple[int, FoundOut], None, None]:
        """The numbers and results of the tasks that it takes, in their order; it may take some ahead of time."""

    def stop(self) -> None:
        """Let `results` end soon; called from another thread, when the computation is over or has failed."""


class Limit(Protocol):
    """Limits a computation, whose shards are begun in order."""

    def may_begin(self, number: int) -> bool:
        """Whether a shard may begin; if not, no later one may."""

    def begin(self, number: int) -> None:
        """A worker of this machine begins a shard."""


def begun(tasks: Iterable[Task], limit: Limit | None) -> Iterator[Task]:
    """The tasks as they begin, while they may."""
    for task in tasks:
        if limit is not None:
            if not limit.may_begin(task.number):
                return
            limit.begin(task.number)
        yield task


def compute(
    workers: Sequence[Worker[Found]],
    tasks: Iterable[Task],
    keep: Callable[[int, Found], None],
    limit: Limit | None = None,
) -> None:
    """Compute tasks on this machine, as far as `limit` allows: each worker takes the next one, some of them ahead.

    The first worker runs in this thread, the others in threads of their own; those that have not begun when no task is
    left are not waited for. `keep` is called with one result at a time. The error of one worker ends all, and is
    raised; what was kept before stays.
    """
    shared = Tasks(begun(tasks, limit))
    problems: list[BaseException] = []

    def run(worker: Worker[Found]) -> None:
        try:
            with closing(worker.results(shared)) as results:
                for number, found in results:
                    shared.finish(keep, number, found)
        except BaseException as error:
            problems.append(error)
            shared.stop()

    first, *others = workers
    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in others]
    for thread in threads:
        thread.start()
    try:
        run(first)
        shared.wait()
    finally:
        shared.stop()
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join()
    if problems:
        raise problems[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Generic[Found]):
    """A computation as one process finds it in the files: a worker, and everything that its results depend on."""

    worker: Worker[Found]
    made_from: MadeFrom


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker computes: a device, and the number of cores that it has next to it."""

    device: Device
    cores: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere(Generic[Found]):
    """A computation that another process or another machine opens again, and the facts that it must find there."""

    name: str
    """What is computed, as errors name it."""

    open: Callable[[Place], Opened[Found]]
    """Opens it from the files; it is pickled."""

    made_from: MadeFrom
    """Everything that the results depend on, as found here."""

    def worker(self, place: Place) -> Worker[Found]:
        """A worker. Raises CleansetError where anything that the results depend on differs from what was found here."""
        opened = self.open(place)
        if differences := self.made_from.differences(opened.made_from.facts, "expected"):
            raise CleansetError("; ".join(differences))
        return opened.worker


def worker_devices(devices: Sequence[Device], tasks: int) -> list[Device]:
    """The device of each worker for a number of tasks: every GPU like the first one, or the CPU once for each core.

    A worker computes with one thread of the CPU: gradients of another number of threads differ in the last digits, and
    two workers of a thread on two cores are faster than one of two. `CLEANSET_WORKERS` limits them.
    """
    first = devices[0]
    alike = [each for each in devices if each.name == first.name] if first.is_separate else [first] * available_cores()
    return alike[: max(1, min(tasks, max_workers() or len(alike)))]


def further_workers(
    elsewhere: Elsewhere[Found], devices: Sequence[Device], tasks: int, modules: Iterable[str] = ()
) -> list[Worker[Found]]:
    """The workers of this machine next to the one of this process, each in a process of its own.

    `modules`: modules that the computation imports, for the server of processes.
    """
    return [WorkerProcess(elsewhere, each, modules) for each in worker_devices(devices, tasks)[1:]]


class WorkerProcess(Generic[Found]):
    """A worker in a process of its own, which ends with `stop`, or when this process does.

    `modules`: modules that the computation imports, which the server of processes then has imported before.
    """

    def __init__(self, elsewhere: Elsewhere[Found], device: Device, modules: Iterable[str]) -> None:
        context = worker_processes(modules)
        self._name = elsewhere.name
        self._ours, theirs = context.Pipe()
        self._awake, self._wake = context.Pipe(duplex=False)
        self._process = context.Process(target=_serve, args=(theirs, device, Path.cwd()))
        self._lock = threading.Lock()
        self._is_started = False
        self._is_stopped = False
        # the server answers when it has imported the modules, which takes seconds
        threading.Thread(target=self._start, args=(theirs, elsewhere), daemon=True).start()

    def _start(self, theirs: "Connection[Any, Any]", elsewhere: Elsewhere[Found]) -> None:
        self._process.start()
        theirs.close()
        # no argument of the process: what is larger than a pipe is cut off where this process ends at its start, and
        # the server then prints a traceback
        with suppress(BrokenPipeError, ConnectionResetError):  # its end shows in place of an answer
            self._ours.send(elsewhere)
        with self._lock:
            self._is_started = True
            is_stopped = self._is_stopped
        if is_stopped:
            self._end()

    def results(self, tasks: Tasks) -> Generator[tuple[int, Found], None, None]:
        """The numbers and results of the tasks that it takes; it takes the first one when its process is ready.

        Raises the error of the process, and CleansetError if the process is killed.
        """
        if not self._has_answer(""):
            return
        for task in tasks:
            with suppress(BrokenPipeError, ConnectionResetError):  # its end shows in place of an answer
                self._ours.send(task)
            if not self._has_answer(f", at {task.ids[0]}"):
                return
            yield task.number, self._found

    def _has_answer(self, place: str) -> bool:
        """Wait for an answer of the process, and take it; False if this worker is stopped before."""
        if self._awake in wait([self._ours, self._awake]):
            return False
        try:
            self._found = self._ours.recv()
        except (EOFError, ConnectionResetError):
            self._process.join(END_SECONDS)
            raise CleansetError(
                f"{self._name}: a worker process ended with exit code {self._process.exitcode}{place}; expected it to "
                "continue: run again (what is finished is kept), with more memory, or fewer workers by "
                "CLEANSET_WORKERS, if it ran out of it"
            ) from None
        if isinstance(self._found, BaseException):
            raise self._found
        return True

    def stop(self) -> None:
        """End the process, whatever it computes."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            is_started = self._is_started
        self._wake.send(None)
        if is_started:
            self._end()

    def _end(self) -> None:
        self._process.terminate()
        self._process.join(END_SECONDS)
        self._process.kill()


def _serve(pipe: "Connection[Any, Any]", device: Device, folder: Path) -> None:
    """The worker process: take what opens the worker, say when it is ready, then answer each task with its result.

    An error is the last answer.
    """
    # the parent is interrupted too, and ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # what the code of a model prints must not be within --json
    sys.stdout = sys.stderr
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.chdir(folder)
    try:
        elsewhere: Elsewhere[object] = pipe.recv()
    except (EOFError, OSError):  # the parent has ended
        return
    try:
        device.prepare()
        worker = elsewhere.worker(Place(device))
        pipe.send(None)
        for _, found in worker.results(Tasks(iter(pipe.recv, None))):
            pipe.send(found)
    except EOFError:
        return
    except Exception as error:
        if not isinstance(error, CleansetError):
            # a traceback does not survive pickling
            error.add_note(traceback.format_exc())
        # the parent may have ended meanwhile
        with suppress(ConnectionError):
            pipe.send(error)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
