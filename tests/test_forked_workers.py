"""The workers of a test run start with what the collection of its tests has imported."""

import subprocess
from pathlib import Path

import pytest

from tests.forked_workers import forked_worker

pytestmark = pytest.mark.slow

TESTS = """import os
file = open(os.devnull)
os.environ["SET"] = "y"
def test_nothing():
    pass
"""
PROGRAM = """import os, random, sys
print("tests.conftest" in sys.modules, sys.argv, os.environ["NAMED"], os.environ["SET"])
print(vars(sys.modules["__main__"]).get("__file__"), sys.stdin.read())
print(random.random(), sys.modules["numpy"].random.random())
from multiprocessing import forkserver, get_context
process = get_context("forkserver").Process(target=os._exit, args=(5,))
process.start()
process.join()
print(process.exitcode, forkserver._forkserver._forkserver_pid)
sys.stdin, opened = None, [os.dup(2) for _ in range(20)]
next(module for name, module in sys.modules.items() if name.endswith("test_open")).file.close()
for descriptor in (0, *opened):
    os.fstat(descriptor)
sys.exit(3)
"""


@pytest.mark.long
def test_a_worker_is_what_python_c_starts(tmp_path: Path) -> None:
    """With what was imported before, random states of its own, and the fork server of all workers.

    A file that is open before closes no other.
    """
    (tmp_path / "test_open.py").write_text(TESTS)
    worker = forked_worker(["tests/properties.py", str(tmp_path)])
    lines = []
    for _ in range(2):
        done = subprocess.run(
            [worker, "-u", "-c", PROGRAM], input="given", capture_output=True, text=True, check=False,
            env={"NAMED": "x"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (3, "")
        lines.append(done.stdout.splitlines())
        assert lines[-1][:2] == ["True ['-c'] x y", "None given"]
    assert not set(lines[0][2].split()) & set(lines[1][2].split())
    assert lines[0][3] == lines[1][3]
    assert lines[0][3].startswith("5 ")
