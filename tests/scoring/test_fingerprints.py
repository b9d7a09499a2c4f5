"""Fingerprints of programs and modules: each file that they are made of changes them, and nothing else does."""

import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cleanset.scoring import fingerprints
from cleanset.scoring.fingerprints import module_fingerprint, program_fingerprint

FILES = {
    "answer.py": "import beside\nfrom package import part\nprint(beside.ANSWER)\n",
    "beside.py": "ANSWER = 'n01440764'\n",
    "package/__init__.py": "from .inner import *\n",
    "package/inner.py": "from . import innermost\nfrom ..nowhere import x\n",
    "package/innermost.py": "A = 1\n",
    "package/part.py": "def f():\n    import late\n",
    "late.py": "B = 1\n",
    "broken.py": "print 'of Python 2'\n",
    "unused.py": "C = 1\n",
    "weights.bin": "1",
    "models/a.bin": "2",
    "models/.hidden": "3",
}
IMPORTED = (
    "beside.py", "package/__init__.py", "package/inner.py", "package/innermost.py", "package/part.py", "late.py",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files in the working folder, on the path of Python."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def changes(folder: Path, command: list[str]) -> set[str]:
    """The files of the folder that change the fingerprint of a command."""
    before = program_fingerprint(command)
    found = set()
    for name, text in FILES.items():
        (folder / name).write_text(text + "# changed\n")
        if program_fingerprint(command) != before:
            found.add(name)
        (folder / name).write_text(text)
    assert program_fingerprint(command) == before
    return found


def test_the_files_that_a_command_names(folder: Path) -> None:
    (folder / "run.sh").write_text("#!/bin/sh\n")
    python = sys.executable
    assert changes(folder, [python, "answer.py"]) == {"answer.py", *IMPORTED}
    assert changes(folder, [python, "-m", "beside"]) == {"beside.py"}
    assert changes(folder, [python, "-m", "package.part"]) >= {"package/__init__.py", "package/part.py", "late.py"}
    assert changes(folder, [python, "broken.py", "--weights=weights.bin"]) == {"broken.py", "weights.bin"}
    assert changes(folder, ["sh", "run.sh", "models"]) == {"models/a.bin"}
    assert changes(folder, ["no-such-program", "x" * 5000]) == set()
    assert program_fingerprint(["sh", "run.sh", "a"]) != program_fingerprint(["sh", "run.sh", "b"])
    before = program_fingerprint(["sh", "run.sh"])
    (folder / "run.sh").unlink()
    assert program_fingerprint(["sh", "run.sh"]) != before


def test_the_program_that_is_found_on_the_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind a link: its own bytes count."""
    program = folder / "bin-1"
    program.write_text("#!/bin/sh\necho 1\n")
    program.chmod(0o755)
    (folder / "models" / "tool").symlink_to(program)
    monkeypatch.setenv("PATH", str(folder / "models"))
    before = program_fingerprint(["tool"])
    program.write_text("#!/bin/sh\necho 2\n")
    assert program_fingerprint(["tool"]) != before


def test_the_packages_of_the_environment_of_the_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though two environments have links to one interpreter."""
    for name in ("one", "two"):
        (folder / name / "bin").mkdir(parents=True)
        (folder / name / "bin" / "python").symlink_to(sys.executable)
        (folder / name / "pyvenv.cfg").write_text("")
        (folder / name / "lib" / "python3.11" / "site-packages" / "timm-1.0.9.dist-info").mkdir(parents=True)

    def found(name: str) -> str:
        monkeypatch.setenv("PATH", str(folder / name / "bin"))
        return program_fingerprint(["python", "answer.py"])

    one = found("one")
    assert found("two") == one
    packages = folder / "two" / "lib" / "python3.11" / "site-packages"
    (packages / "timm-1.0.9.dist-info").rename(packages / "timm-1.0.10.dist-info")
    assert found("two") != one
    assert found("one") == one


def test_a_folder_of_many_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts by names, sizes and times; one of still more by its name. Hidden files are not counted."""
    (folder / "models" / "b.bin").write_text("4")
    monkeypatch.setattr(fingerprints, "MAX_FILES", 1)
    before = program_fingerprint(["sh", "models"])
    (folder / "models" / "a.bin").write_text("longer")
    assert program_fingerprint(["sh", "models"]) != before
    monkeypatch.setattr(fingerprints, "MAX_LISTED", 1)
    assert changes(folder, ["sh", "models"]) == set()
    (folder / "models" / "b.bin").unlink()
    assert changes(folder, ["sh", "models"]) == {"models/a.bin"}


def test_a_module_with_what_it_imports_next_to_it(folder: Path) -> None:
    (folder / "mine.py").write_text("import answer\nimport numpy\nimport cleanset.classes\n")
    importlib.invalidate_caches()
    before = module_fingerprint("mine")
    found = set()
    for name, text in FILES.items():
        (folder / name).write_text(text + "# changed\n")
        if module_fingerprint("mine") != before:
            found.add(name)
        (folder / name).write_text(text)
    assert found == {"answer.py", *IMPORTED}
    assert module_fingerprint("mine") == before
    assert module_fingerprint("mine", others=["unused"]) != before
    assert module_fingerprint("mine", others=["numpy", "cleanset.classes", "no_such_module", "__main__"]) == before


def test_further_files_count_by_their_bytes(folder: Path) -> None:
    before = module_fingerprint("beside", [folder / "weights.bin"])
    assert before != module_fingerprint("beside")
    (folder / "weights.bin").write_text("0")
    assert module_fingerprint("beside", [folder / "weights.bin"]) != before


@pytest.mark.slow
def test_libraries_count_by_their_versions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the name of their distribution; those that every record has are left out."""
    (folder / "other.py").write_text("import numpy, json, torchvision, no_such_library\n")
    (folder / "further.py").write_text("import numpy, cv2\n")
    importlib.invalidate_caches()
    asked: list[list[str]] = []

    def versions(names: Iterable[str]) -> dict[str, str]:
        asked.append([*names])
        return {"a": str(len(asked))}

    monkeypatch.setattr(fingerprints, "library_versions", versions)
    assert module_fingerprint("other") != module_fingerprint("other")
    module_fingerprint("further")
    assert asked == [["torchvision"], ["torchvision"], ["opencv-python-headless"]]


def test_modules_of_this_package_count_by_its_version_files(monkeypatch: pytest.MonkeyPatch) -> None:
    before = module_fingerprint("cleanset.studies.training.networks")
    asked: list[str] = []

    def code_of(package: str) -> str:
        asked.append(package)
        return "raised"

    monkeypatch.setattr(fingerprints, "code_of", code_of)
    assert module_fingerprint("cleanset.studies.training.networks") != before
    assert asked == ["studies/training"]


def test_an_installed_package_counts_as_a_whole(folder: Path) -> None:
    """And nothing that is next to it."""
    (folder / "package-1.0.dist-info").mkdir()
    before = module_fingerprint("package.part")
    for name, is_its_own in {"package/innermost.py": True, "late.py": False}.items():
        (folder / name).write_text("changed = 1\n")
        assert (module_fingerprint("package.part") != before) is is_its_own
        (folder / name).write_text(FILES[name])
