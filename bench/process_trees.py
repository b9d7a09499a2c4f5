"""A command with all processes that it starts: its time and memory, and apart those of each `cleanset` among them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

import psutil

from measuring import Run

SAMPLE_SECONDS = 0.2
_MIB = 2**20


@dataclass(slots=True)
class StageUse:
    """Time and memory of one `cleanset` command and its children, as far as the samples show them."""

    seconds: float = 0.0
    processor_seconds: float = 0.0
    peak_mib: float = 0.0


@dataclass(frozen=True, slots=True)
class TreeRun(Run):
    """A run whose peak is that of all processes together; `stages`: each `cleanset` command, by its arguments."""

    stages: Mapping[str, StageUse] = field(default_factory=dict)


def run_tree(*command: str | Path, cwd: Path, env: Mapping[str, str]) -> TreeRun:
    """Run a command to its end and measure it. Exits with the command's output if it fails.

    A page that several processes share is counted once: each has its share of it (PSS, which Linux alone has).
    """
    with tempfile.TemporaryFile("w+") as output:
        start = perf_counter()
        process = subprocess.Popen(command, cwd=cwd, env=env, stdout=output, stderr=subprocess.STDOUT)
        sampler = _Sampler(process.pid)
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = perf_counter() - start
        sampler.stop()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {process.returncode}\n{text[-4000:]}")
    return TreeRun(seconds, usage.ru_utime + usage.ru_stime, sampler.peak_mib, text, sampler.stages)


class _Sampler(Thread):
    """Looks at a process and its descendants until it is stopped."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak_mib = 0.0
        self.stages: dict[str, StageUse] = {}
        self._first: dict[str, float] = {}
        self._pid = pid
        self._ended = Event()

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self._sample()

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def _sample(self) -> None:
        now = perf_counter()
        whole = 0.0
        memory: dict[str, float] = {}
        processor: dict[str, float] = {}
        for stage, mib, seconds in _processes(self._pid):
            whole += mib
            if stage:
                memory[stage] = memory.get(stage, 0.0) + mib
                processor[stage] = processor.get(stage, 0.0) + seconds
        self.peak_mib = max(self.peak_mib, whole)
        for stage, mib in memory.items():
            first = self._first.setdefault(stage, now)
            use = self.stages.setdefault(stage, StageUse())
            # on average it began half a sample before the first one, and ended half a sample after the last one
            use.seconds = now - first + SAMPLE_SECONDS
            use.peak_mib = max(use.peak_mib, mib)
            use.processor_seconds = max(use.processor_seconds, processor[stage])


def _processes(pid: int) -> Iterator[tuple[str | None, float, float]]:
    """Stage, MiB and processor seconds of a process and of each of its descendants that lives."""
    try:
        root = psutil.Process(pid)
        below = [root, *root.children(recursive=True)]
    except psutil.Error:
        return
    stage_of: dict[int, str | None] = {}
    for each in below:  # parents before children
        try:
            parent = stage_of.get(each.ppid())
            stage = stage_of[each.pid] = parent or _stage(each.cmdline())
            times = each.cpu_times()
            ended = times.children_user + times.children_system
            yield stage, each.memory_full_info().pss / _MIB, times.user + times.system + ended
        except psutil.Error:  # it has just ended
            continue


def _stage(arguments: Sequence[str]) -> str | None:
    """The arguments of a `cleanset` command; None for any other command."""
    for place, argument in enumerate(arguments[:2]):
        if Path(argument).name == "cleanset":
            return " ".join(arguments[place + 1 :])
    return None
