"""The files that a program opens while it answers: in each of the ways in which programs are started and read files."""

import sys
from pathlib import Path

import pytest

from cleanset.scoring.fingerprints import program_fingerprint
from cleanset.scoring.opened_files import opened_files

ANSWER = "import os, sys\nfor f in sorted(os.listdir(sys.argv[-1])): print(f'{f}, cat')\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with programs that answer, and what they read."""
    monkeypatch.chdir(tmp_path)
    files = {
        "answer.py": ANSWER,
        "run.sh": f'exec {sys.executable} answer.py "$1"\n',
        "named.py": "import importlib\nimportlib.import_module('inner' + '_net')\n",
        "inner_net.py": "open('weights.txt').read()\nopen('log.txt', 'w').write('x')\n",
        "option.py": "import sys\nopen(sys.argv[1][2:]).read()\n",
        "weights.txt": "1",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ([sys.executable, "answer.py"], ["answer.py"]),
        (["bash", "-c", f"{sys.executable} answer.py $0"], ["answer.py"]),
        (["bash", "run.sh"], ["answer.py"]),
        (["nice", sys.executable, "answer.py"], ["answer.py"]),
        # what it writes does not count
        ([sys.executable, "named.py"], ["inner_net.py", "named.py", "weights.txt"]),
        ([sys.executable, "option.py", "-wweights.txt"], ["option.py", "weights.txt"]),
        (["true"], []),
        (["no-such-program"], []),
        # it takes no hook: docs/formats.md states it
        ([sys.executable, "-I", "answer.py"], []),
    ],
)
def test_what_a_program_opens(command: list[str], expected: list[str], folder: Path) -> None:
    """The same again, when modules are compiled; its environment is known, too."""
    for _ in range(2):
        found = opened_files(command, b"")
        assert [path.name for path in found.files] == expected
        assert list(found.environments) == ([Path(sys.prefix)] if expected else [])


def test_a_module_of_this_name_of_the_user_is_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "sitecustomize.py").write_text("open('weights.txt').read()\n")
    monkeypatch.setenv("PYTHONPATH", str(folder / "own"))
    found = opened_files([sys.executable, "answer.py"], b"")
    assert [path.name for path in found.files] == ["answer.py", "sitecustomize.py", "weights.txt"]


def test_a_changed_file_changes_the_fingerprint(folder: Path) -> None:
    """A file of a program whose command does not name it does, too; and so does a new version of a package of its
    environment."""
    command = ["bash", "run.sh"]

    def fingerprint() -> str:
        return program_fingerprint(command, opened_files(command, b"").files, [folder / "env"])

    before = fingerprint()
    assert fingerprint() == before
    (folder / "answer.py").write_text(ANSWER.replace("cat", "dog"))
    after = fingerprint()
    assert after != before
    (folder / "env/lib/python3.11/site-packages/timm-1.0.9.dist-info").mkdir(parents=True)
    assert fingerprint() != after
