"""Run a command, and measure it with all processes that it starts: `python -m cleanset.planning.launch COMMAND …`.

Worker processes are forked by a server that outlives the command, so its own usage does not count them. Here they
become children of the launcher, which waits for them. Linux alone has that.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from time import perf_counter

from cleanset.errors import CleansetError
from cleanset.interpreter import code_command, python_command

PR_SET_CHILD_SUBREAPER = 36
"""From Linux's prctl.h: orphaned descendants become children of this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSeconds:
    """The time of a command with all processes that it starts."""

    seconds: float
    """By the clock, until the command ends."""
    processor_seconds: float
    """Of all cores."""


def process_seconds(command: Sequence[str]) -> ProcessSeconds:
    """Run a command to its end, and measure it. Raises CleansetError, with its last line, if it fails."""
    launched = python_command("-m", "cleanset.planning.launch", *command)
    done = subprocess.run(launched, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise CleansetError(f"{last or 'a process failed'}; expected it to start, so that its start can be measured")
    found = json.loads(done.stdout)
    return ProcessSeconds(seconds=found["seconds"], processor_seconds=found["processor_seconds"])


@cache
def seconds_of_code(code: str, *arguments: str, is_separate: bool = False) -> float:
    """Seconds of a process of Python that runs some code: of all cores, or by the clock if a device is separate.

    Measured once.
    """
    found = process_seconds(code_command(code, *arguments))
    return found.seconds if is_separate else found.processor_seconds


def main(command: Sequence[str]) -> int:
    """Run a command, print its seconds as JSON, and return its exit code; its own output goes to standard error."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    begin = perf_counter()
    code = subprocess.call(command, stdout=sys.stderr)
    seconds = perf_counter() - begin
    with suppress(ChildProcessError):
        while True:
            os.wait()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = ProcessSeconds(seconds=seconds, processor_seconds=usage.ru_utime + usage.ru_stime)
    print(json.dumps(asdict(found)))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
