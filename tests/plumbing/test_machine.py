"""What this process may use of the machine."""

import os
import platform
import subprocess
import sys

import pytest

from cleanset.plumbing.machine import available_cores

PROGRAM = """
import resource, sys
from cleanset.plumbing.machine import keep_freed_memory
if "keep" in sys.argv:
    keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
bytearray(b"x") * 20_000_000
before = faults()
for _ in range(10):
    bytearray(b"x") * 20_000_000
print(faults() - before)
"""


def test_cores_are_those_that_this_process_may_run_on() -> None:
    alone = subprocess.run(
        [sys.executable, "-c", "from cleanset.plumbing.machine import available_cores; print(available_cores())"],
        preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(alone.stdout) == 1 <= available_cores()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_freed_memory_is_kept() -> None:
    """Ten times 20 MB, taken and freed: 4,883 pages of 4 KiB each time, unless they are kept."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    found = {}
    for how in ("keep", "default"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, how], env=environment, capture_output=True, text=True, check=True
        )
        found[how] = int(done.stdout)
    assert found["keep"] < 500
    assert found["default"] > 10 * found["keep"]
