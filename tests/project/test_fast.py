"""What `make test-fast` refuses: torch and servers, in tests and in the Python processes that they start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("import torch", "--fast: this test imports torch; expected tests without it: mark it slow"),
        ("try: import torch\nexcept ImportError: pass", "--fast: this test imports torch; "),
        (
            "import http.server as h; h.HTTPServer(('localhost', 0), None)",
            "--fast: this test starts a server; expected tests without one: mark it server",
        ),
        ("import asyncio; asyncio.run(asyncio.start_server(print, 'localhost', 0))", "--fast: this test starts a ser"),
        ("import socket; s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(); import numpy, pandas", ""),
    ],
)
def test_what_fast_tests_may_not_do(program: str, error: str, repository: Path, tmp_path: Path) -> None:
    variables = os.environ | {"PYTHONPATH": str(repository / "tests" / "fast")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1] if done.stderr else ""
    assert (done.returncode, last.startswith(f"AssertionError: {error}" if error else "")) == (int(bool(error)), True)
