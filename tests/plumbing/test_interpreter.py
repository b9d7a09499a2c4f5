"""Every Python of the package is started with -P: none imports the modules of a stranger's folder that it is in."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from cleanset.plumbing.interpreter import python_command
from tests.checkouts import INSTALLED, Checkout
from tests.ten_images import drawn_image

SOURCE = Path(__file__).parents[2] / "src" / "cleanset"
DOCS = Path(__file__).parents[2] / "docs"
HELPER = SOURCE / "plumbing" / "interpreter.py"
REPLACES = {"execl", "execle", "execlp", "execv", "execve", "execvp", "posix_spawn", "set_executable", "spawnv"}
"""Functions that replace the process, and one that names the Python of multiprocessing."""
RUNS = {"Popen", "call", "check_call", "check_output", "run"}
"""Functions of subprocess."""


def starts_of_python(module: ast.Module) -> Iterator[int]:
    """The lines that name this Python, start another, or replace the process."""
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and (node.attr in REPLACES or ast.unparse(node) == "sys.executable"):
            yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RUNS:
            words = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
            if any(isinstance(word, str) and word.startswith("python") for word in words):
                yield node.lineno


@pytest.mark.parametrize(
    "text",
    ["run([sys.executable, '-m', 'dvc'])", "os.execv(a, b)", "s.run(['python3', '-c', '1'])", "s.Popen(('python', a))"],
)
def test_the_scan_finds_a_start(text: str) -> None:
    assert list(starts_of_python(ast.parse(text))) == [1]


def test_one_helper_starts_every_python() -> None:
    found = [
        f"{path.name}:{line}: {text}"
        for path in (*SOURCE.rglob("*.py"), *DOCS.glob("*.py"))
        if path != HELPER
        for line in starts_of_python(ast.parse(path.read_text()))
        # the folder of the program `cleanset`
        if "Path(sys.executable).parent" not in (text := path.read_text().splitlines()[line - 1].strip())
    ]
    assert found == []
    assert list(starts_of_python(ast.parse(HELPER.read_text()))) != []


def shadow(folder: Path, record: Path) -> None:
    """A module for each of Python's and of the installed packages, which notes that it was imported."""
    names = {*sys.stdlib_module_names, *packages_distributions()}
    assert {"multiprocessing", "selectors", "yaml", "pandas", "dvc", "torch", "cleanset"} < names
    for name in names:
        if name.isidentifier() and not name.startswith("__"):
            (folder / f"{name}.py").write_text(f"open({str(record)!r}, 'a').write({name!r} + ' ')\n")


WORKER = """
import sys
from cleanset.scoring.decoding import worker_processes
from concurrent.futures import ProcessPoolExecutor
if __name__ == "__main__":
    with ProcessPoolExecutor(1, worker_processes()) as pool:
        pool.submit(len, "a").result()
"""


def test_workers_inherit_the_option(tmp_path: Path) -> None:
    """Without it the server that forks them imports what is in the folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    record = tmp_path / "record"
    record.touch()
    shadow(folder, record)
    program = tmp_path / "worker.py"
    program.write_text(WORKER)
    subprocess.run(python_command(str(program)), cwd=folder, check=True)
    assert record.read_text() == ""
    # Python itself takes the folder of the script for the first place, and of a worker this one
    subprocess.run([sys.executable, str(program)], cwd=folder, capture_output=True, check=False)
    assert "multiprocessing" in record.read_text()


BRIEF = (
    "plan", "doctor", "hints photographs", "fetch . standard",
    "attacks evaluate data/export/standard --model standard --attacks none --limit 1 --no-warnings --out attacked",
)  # fmt: skip
"""Commands that start processes, or read what somebody published."""
FURTHER = (
    "status", "doctor --quick", "agreement", "score --model standard", "score_crops --model standard", "cite",
    "verify data/export/standard", "look data/export/standard --out look", "publish data/export/standard build/release",
    "evaluate data/export/standard --model standard",
    "rebuild --manifest data/export/standard --images raw/ILSVRC2012_img_val.tar --out rebuilt",
)  # fmt: skip


@pytest.mark.parametrize(
    "commands", [pytest.param(BRIEF, marks=pytest.mark.exhaustive), pytest.param(FURTHER, marks=pytest.mark.exhaustive)]
)
def test_no_command_imports_modules_of_the_folder(commands: tuple[str, ...], small: Checkout, tmp_path: Path) -> None:
    checkout = small.clone_with_data(tmp_path / "edition")
    checkout.run("dvc", "remote", "modify", "origin", "url", str(small.folder / ".dvc" / "cache"))
    checkout.commit("Change the remote")
    (checkout.folder / "photographs").mkdir()
    for seed in range(3):
        drawn_image(300, 300, seed=seed).save(checkout.folder / "photographs" / f"{seed}.png")
    record = tmp_path / "record"
    record.touch()
    shadow(checkout.folder, record)
    program = str(Path(sys.executable).with_name("cleanset"))
    variables = checkout.environment() | INSTALLED | {"CLEANSET_CACHE": str(tmp_path / "cache")}
    for command in commands:
        done = subprocess.run(
            [program, *command.split()], cwd=checkout.folder, env=variables, capture_output=True, text=True, check=False
        )
        assert (done.returncode, record.read_text()) == (0, ""), (command, done.stderr)
