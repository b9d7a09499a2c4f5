"""The local engine: the same results from any number of workers, and what is left when one of them ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import torch

from cleanset.errors import CleansetError
from cleanset.plumbing.machine import max_workers
from cleanset.scoring import computation as engine
from cleanset.scoring.computation import (
    Elsewhere,
    Opened,
    Place,
    Task,
    Tasks,
    WorkerProcess,
    compute,
    further_workers,
    worker_devices,
)
from cleanset.scoring.devices import Cuda
from cleanset.scoring.validity import MadeFrom
from tests.scoring.networks import CPU
from tests.ten_images import FORK_SERVER

pytestmark = pytest.mark.slow

TASKS = [Task(number, [f"image {number}"]) for number in range(6)]
SQUARES = {task.number: task.number**2 for task in TASKS}
FACTS = MadeFrom({"weights": "a"})
DEADLINE_SECONDS = 120


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < end, "still waiting"
        time.sleep(0.01)


@dataclass(frozen=True)
class Squares:
    """Squares the number of each task, for which `folder` then has a file; `begins_after` a task that others take."""

    folder: Path
    begins_after: int | None = None
    killed_at: int | None = None
    fails_at: int | None = None
    ends_with_others: bool = False

    def results(self, tasks: Tasks) -> Generator[tuple[int, tuple[int, int]], None, None]:
        for task in tasks:
            self.file(task.number).write_text(str(os.getpid()))
            if task.number == self.killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
            if task.number == self.fails_at:
                raise CleansetError(f"{task.ids[0]}: unreadable")
            if self.ends_with_others:
                wait_for(lambda: tasks.is_stopped)
            if self.begins_after is not None:
                wait_for(self.file(self.begins_after).exists)
            yield task.number, (task.number**2, os.getpid())

    def file(self, number: int) -> Path:
        return self.folder / f"begun {number}"

    def stop(self) -> None:
        pass


def opened(worker: Squares, facts: MadeFrom, _: Place) -> Opened[tuple[int, int]]:
    return Opened(worker=worker, made_from=facts)


def computed(here: Squares, there: Squares, facts: MadeFrom = FACTS) -> dict[int, tuple[int, int]]:
    """The results of a worker in this process and one in another, and the process that each is of."""
    found: dict[int, tuple[int, int]] = {}
    elsewhere = Elsewhere(name="squares", open=partial(opened, there, facts), made_from=FACTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "available_cores", lambda: 2)
        patch.delenv("CLEANSET_WORKERS", raising=False)
        compute([here, *further_workers(elsewhere, [CPU], len(TASKS))], TASKS, found.__setitem__)
    return found


def test_one_worker(tmp_path: Path) -> None:
    found: dict[int, tuple[int, int]] = {}
    compute([Squares(tmp_path)], TASKS, found.__setitem__)
    assert found == {number: (square, os.getpid()) for number, square in SQUARES.items()}


def test_a_further_process_takes_part(tmp_path: Path) -> None:
    found = computed(Squares(tmp_path, begins_after=1), Squares(tmp_path))
    assert {number: square for number, (square, _) in found.items()} == SQUARES
    assert {process == os.getpid() for _, process in found.values()} == {True, False}


def test_a_process_that_is_not_ready_is_not_waited_for(tmp_path: Path) -> None:
    # its worker would wait for a task that there is not
    found = computed(Squares(tmp_path), Squares(tmp_path / "missing", begins_after=99))
    assert {number: square for number, (square, _) in found.items()} == SQUARES


def test_a_killed_process_is_named_and_what_is_finished_stays(tmp_path: Path) -> None:
    here = Squares(tmp_path, begins_after=1)
    with pytest.raises(CleansetError) as problem:
        computed(here, Squares(tmp_path, killed_at=1))
    assert str(problem.value) == (
        "squares: a worker process ended with exit code -9, at image 1; expected it to continue: run again (what is "
        "finished is kept), with more memory, or fewer workers by CLEANSET_WORKERS, if it ran out of it"
    )


@pytest.mark.parametrize("is_here", [True, False])
def test_the_error_of_one_ends_all(tmp_path: Path, is_here: bool) -> None:
    # the error of the other process may be on its way while this one computes
    here = Squares(tmp_path, begins_after=1, fails_at=2 if is_here else None, ends_with_others=not is_here)
    there = Squares(tmp_path, fails_at=None if is_here else 1)
    kept: dict[int, tuple[int, int]] = {}
    with pytest.raises(CleansetError, match=r"^image \d: unreadable$"):
        kept |= computed(here, replace(there, begins_after=2) if is_here else there)
    assert not here.file(5).exists()


def test_a_process_that_finds_other_inputs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"^weights 'b', expected 'a'$"):
        computed(Squares(tmp_path, ends_with_others=True), Squares(tmp_path), MadeFrom({"weights": "b"}))


def never_ending(folder: Path) -> None:
    worker = WorkerProcess(
        Elsewhere(name="squares", open=partial(opened, Squares(folder, begins_after=99), FACTS), made_from=FACTS),
        CPU,
        (),
    )
    compute([worker], TASKS, lambda *_: None)


@pytest.mark.long
def test_a_worker_ends_with_its_killed_parent(tmp_path: Path) -> None:
    parent = FORK_SERVER.Process(target=never_ending, args=(tmp_path,))
    parent.start()
    wait_for(lambda: (tmp_path / "begun 0").exists() and (tmp_path / "begun 0").read_text() != "")
    parent.kill()
    worker = int((tmp_path / "begun 0").read_text())
    wait_for(lambda: not Path(f"/proc/{worker}").exists())


STOPPED_AT_ONCE = """
import time
from functools import partial
from pathlib import Path
from cleanset.scoring.computation import Elsewhere, WorkerProcess
from cleanset.scoring.validity import MadeFrom
from tests.scoring.networks import CPU
from tests.scoring.test_computation import opened

# more than fits a pipe
elsewhere = Elsewhere(name="squares", open=partial(opened, bytes(1_000_000)), made_from=MadeFrom({}))
worker = WorkerProcess(elsewhere, CPU, ())
time.sleep(0.2)  # its start has begun
worker.stop()
"""


@pytest.mark.long
def test_nothing_is_printed_of_a_worker_that_is_stopped_at_its_start() -> None:
    # the server of processes has the same stderr, and ends last
    done = subprocess.run([sys.executable, "-c", STOPPED_AT_ONCE], stderr=subprocess.PIPE, text=True, check=True)
    assert done.stderr == ""


def test_the_device_of_each_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLEANSET_WORKERS", raising=False)
    monkeypatch.setattr(engine, "available_cores", lambda: 4)
    assert worker_devices([CPU], 9) == [CPU] * 4
    assert worker_devices([CPU], 3) == [CPU] * 3
    assert worker_devices([CPU], 0) == [CPU]
    names = {0: "H100", 1: "H100", 2: "A100"}
    monkeypatch.setattr(Cuda, "name", property(lambda self: names[self.torch.index]))
    gpus = [Cuda(torch.device("cuda", number)) for number in names]
    assert worker_devices(gpus, 9) == gpus[:2]
    monkeypatch.setenv("CLEANSET_WORKERS", "1")
    assert worker_devices(gpus, 9) == gpus[:1]
    monkeypatch.setenv("CLEANSET_WORKERS", "0")
    with pytest.raises(CleansetError, match=r"^CLEANSET_WORKERS: '0'; expected a number of workers, such as 4"):
        max_workers()
