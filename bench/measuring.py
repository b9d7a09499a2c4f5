"""Helpers of the benches: run and measure a command, describe the machine, print a table."""

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

from cleanset.plumbing.machine import available_cores

PROJECT = Path(__file__).parents[1]
REAL = Path(os.environ.get("CLEANSET_REAL") or PROJECT.parent / "shared" / "real")
"""The folder of real photographs and weights, which may be missing."""


@dataclass(frozen=True, slots=True)
class Run:
    """Wall time and processor time of one process."""

    seconds: float
    processor_seconds: float


def run(*command: str | Path, cwd: Path) -> Run:
    """Run a command to its end and measure it. Exits with the command's output if it fails.

    Python imports this checkout's code, installed or not.
    """
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(PROJECT / "src"), env.get("PYTHONPATH"))))
    with tempfile.TemporaryFile("w+") as output:
        start = perf_counter()
        process = subprocess.Popen(command, cwd=cwd, env=env, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {process.returncode}\n{text}")
    return Run(seconds, usage.ru_utime + usage.ru_stime)


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder in CLEANSET_BENCH_DIR, or in the system's place for such; removed at the end."""
    with tempfile.TemporaryDirectory(prefix="cleanset-bench-", dir=os.environ.get("CLEANSET_BENCH_DIR")) as name:
        yield Path(name)


def share(value: float, limit: float) -> str:
    """The value's share of its limit; more than 1 is too much."""
    return f"{value / limit:.2f}"


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table as Markdown: the first column to the left, the others to the right."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]

    def shown(line: Sequence[str]) -> str:
        cells = [
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        return f"| {' | '.join(cells)} |"

    rule = ["-" * (width + 2) if place == 0 else "-" * (width + 1) + ":" for place, width in enumerate(widths)]
    print(f"\n{title}\n", shown(lines[0]), f"|{'|'.join(rule)}|", *map(shown, lines[1:]), sep="\n")


def print_machine(*libraries: str) -> None:
    """Print two lines on the machine and one on the versions, also of further `libraries`."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    print(f"Machine: {_processor()}, {available_cores()} cores, {memory:.0f} GiB of memory, {platform.system()}.")
    print(f"Running or waiting to, on average over the last minute: {os.getloadavg()[0]:.1f} processes.")
    names = ("numpy", "pandas", "pyarrow", "pillow", "pydantic", "dvc", *libraries)
    versions = (f"{name} {_version(name)}" for name in names)
    print(f"Python {platform.python_version()}, {', '.join(versions)}.")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
