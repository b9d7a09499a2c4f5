"""The commands that a server forks do what the installed ones do."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.checkouts import INSTALLED, Checkout
from tests.forked_commands import forked_commands, may_be_forked

pytestmark = pytest.mark.slow

CLI = """
import atexit, os, signal, sys, time

def main():
    command = sys.argv[1]
    atexit.register(print, "at exit")
    print(sys.argv[1:], os.getcwd(), os.environ.get("GIT_AUTHOR_NAME"), oct(os.umask(0)), sys.stdin.read())
    print("to stderr", file=sys.stderr)
    if command == "forked":
        print("timm" in sys.modules)
    if command == "exit":
        return 3
    if command == "text":
        sys.exit("what went wrong")
    if command == "fails":
        raise ValueError("why")
    if command == "kill":
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    if command == "wait":
        open("waiting", "w").write(str(os.getpid()))
        time.sleep(60)
"""
"""A `cleanset.cli` that tells how it was started."""
SCRIPT = """
if __name__ == "__main__":
    from multiprocessing import get_context
    from beside import NUMBER
    print(NUMBER, __file__, sys.argv[0], sys.path[0])
    if sys.argv[1] == "runs":
        with get_context("spawn").Pool(1) as pool:
            print(pool.map(print, ["in a process that imports the script"]))
    sys.exit(main())
"""
"""What makes a script of it, next to a module that it imports."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "cleanset"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(CLI)
    # where the installed command begins
    (package / "__main__.py").write_text("from cleanset.cli import main\n")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "beside.py").write_text("NUMBER = 5\n")
    (tmp_path / "scripts" / "script.py").write_text(f"{CLI}{SCRIPT}")
    return tmp_path


@pytest.mark.parametrize("program", [("cleanset",), ("python", "scripts/script.py")], ids=str)
@pytest.mark.parametrize("command", ["runs", "exit", "text", "fails", "kill"])
def test_it_is_what_the_installed_command_does(folder: Path, program: tuple[str, ...], command: str) -> None:
    """Output, exit code, working folder, environment, standard input and umask."""
    found = []
    for variables in ({}, INSTALLED):
        done = subprocess.run(
            [*program, command, "an argument"], cwd=folder, input="given", capture_output=True, text=True,
            check=False, umask=0o027, env=Checkout(folder, variables).environment(),
        )  # fmt: skip
        found.append((done.returncode, done.stdout, done.stderr.splitlines()[:1], done.stderr.splitlines()[-1:]))
    assert found[0] == found[1]
    assert found[0][0] == {"exit": 3, "text": 1, "fails": 1, "kill": -9}.get(command, 0)
    assert f"['{command}', 'an argument'] {folder} A 0o27 given" in found[0][1]


def test_it_is_forked(folder: Path) -> None:
    """Unless the environment differs in what an import may look at; of Python only scripts are."""
    for variables, forked in (({}, "True"), (INSTALLED, "False"), ({"HF_HUB_OFFLINE": "1"}, "False")):
        assert Checkout(folder, variables).run("cleanset", "forked").stdout.split("\n")[1] == forked
        script = Checkout(folder, variables).run("python", "scripts/script.py", "forked")
        assert script.stdout.split("\n")[2] == forked
    assert Checkout(folder).run("python", "-c", "import sys; print('timm' in sys.modules)").stdout == "False\n"


def test_the_code_is_read_again(folder: Path) -> None:
    checkout = Checkout(folder)
    checkout.run("cleanset", "runs")
    (folder / "src" / "cleanset" / "cli.py").write_text("def main():\n    print('other code')\n")
    assert checkout.run("cleanset", "runs").stdout == "other code\n"


def test_a_sitecustomize_is_imported(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import sys; print(sys.argv[1:])\n")
    checkout = Checkout(folder, {"PYTHONPATH": f"{other}{os.pathsep}{folder / 'src'}"})
    assert checkout.run("cleanset", "forked").stdout.startswith("['forked']\n['forked']")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_command(folder: Path, number: signal.Signals) -> None:
    command = subprocess.Popen(
        ["cleanset", "wait"], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        env=Checkout(folder).environment(),
    )  # fmt: skip
    while not (folder / "waiting").is_file() or not (folder / "waiting").read_text():
        assert command.poll() is None
        time.sleep(0.01)
    process = int((folder / "waiting").read_text())
    assert process != command.pid
    command.send_signal(number)
    assert command.wait(10) == -number
    end = time.monotonic() + 10
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_may_differ() -> None:
    server = {"HOME": "/root", "PATH": "/bin"}
    same = server | {"PYTHONPATH": "/clone/src", "PATH": "/usr/bin", "DVC_STAGE": "score", "COLUMNS": "80"}
    assert may_be_forked(same, server)
    assert may_be_forked(same | {"MASTER_PORT": "1", "RANK": "0", "TORCHELASTIC_RUN_ID": "x"}, server)
    for change in ({"HOME": "/"}, {"SSL_CERT_FILE": "x"}, {"PYTHONPATH": "/watch"}, {"OMP_NUM_THREADS": "2"}):
        assert not may_be_forked(same | change, server)
    assert not may_be_forked({name: value for name, value in same.items() if name != "HOME"}, server)


def test_the_server_has_the_commands() -> None:
    names = ["cleanset", "cleanset-python.socket", "dvc", "dvc.socket", "python"]
    assert sorted(path.name for path in forked_commands().iterdir()) == names
