"""Libraries that look into the current folder when they are imported find nothing there."""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

from cleanset.plumbing.interpreter import code_command, python_command
from cleanset.plumbing.safe_imports import LOOKING_AROUND

LIBRARY = """
#include <stdio.h>
__attribute__((constructor)) static void note(void) { fclose(fopen(RECORD, "a")); }
"""
TORCH = "import torch"
SHOWN = """
import os, sys
import cv2, numba, torch
from importlib.resources import files
from nicegui.storage import Storage
print(os.getcwd(), numba.config.CACHE_DIR, os.environ.get("LD_LIBRARY_PATH", ""), Storage().path, sep="\\n")
print(*(files(each).name for each in (cv2, numba, torch)), torch.__version__ == __import__("torch").__version__)
"""


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "has_run"


@pytest.fixture
def folder(record: Path, tmp_path: Path) -> Path:
    """A folder with a library of the name that torch's CUDA wheels look for, and settings of numba."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".numba_config.yaml").write_text("cache_dir: ./pickles\n")
    if (compiler := which("cc")) is None:
        pytest.skip("no C compiler: install gcc")
    command = [compiler, "-shared", "-fPIC", f'-DRECORD="{record}"', "-x", "c", "-", "-o", str(folder / "libcuda.so.1")]
    subprocess.run(command, input=LIBRARY.encode(), check=True)
    return folder


def run(folder: Path, command: list[str], **variables: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"} | variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.long
def test_nothing_of_the_folder_is_loaded(folder: Path, record: Path) -> None:
    here, cache, libraries, storage, names = run(folder, code_command(SHOWN))
    assert (here, cache, names) == (str(folder), "", "cv2 numba torch True")
    assert all(libraries.split(":"))
    assert not Path(storage).is_relative_to(folder)
    assert not record.exists()


@pytest.mark.long
def test_torch_alone_loads_a_library_of_the_folder(folder: Path, record: Path) -> None:
    """If it comes from a CUDA wheel: else there is nothing to keep it from."""
    if find_spec("nvidia.cusparselt") is None:
        pytest.skip("torch without CUDA: it looks for no library of the driver")
    run(folder, python_command("-c", TORCH))
    assert record.exists()


def test_what_the_user_has_set_is_kept(tmp_path: Path) -> None:
    code = "import cv2, os; print(os.environ['LD_LIBRARY_PATH'])"
    (found,) = run(tmp_path, code_command(code), LD_LIBRARY_PATH="/usr/lib/one:/usr/lib/two")
    assert found.endswith(":/usr/lib/one:/usr/lib/two")


def test_a_library_that_is_missing(tmp_path: Path) -> None:
    code = "import sys\nsys.path = []\ntry:\n    import torch\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert run(tmp_path, code_command(code)) == ["No module named 'torch'"]


def test_workers_import_it_first() -> None:
    from cleanset.scoring.decoding import PRELOADED

    assert PRELOADED[0] == "cleanset.plumbing.safe_imports"
    assert not {name.partition(".")[0] for name in PRELOADED} & set(LOOKING_AROUND)


WITHOUT_COMPILER = """
import sys, timm, torch, torchvision
print("sympy" in sys.modules, "torch._dynamo" in sys.modules)
boxes = [torch.tensor([[0.0, 0.0, 4.0, 4.0]])]
print(torchvision.ops.roi_align(torch.arange(64.0).reshape(1, 1, 8, 8), boxes, 2).flatten().tolist())
import torch._dynamo.utils
supported = torchvision.ops.roi_align.__globals__["is_compile_supported"]
print(supported("cpu") is torch._dynamo.utils.is_compile_supported("cpu"))
print(torch.compile(torch.relu, backend="eager")(torch.tensor([-1.0, 2.0])).tolist())
"""


@pytest.mark.long
def test_torchvision_is_imported_without_the_compiler_of_torch() -> None:
    """What needs the compiler imports it, and gets the real one."""
    done = subprocess.run(code_command(WITHOUT_COMPILER), capture_output=True, text=True, check=True)
    # by hand: bilinear means of four points in each quarter of the box from 0 to 4
    assert done.stdout.splitlines() == ["False False", "[9.0, 11.0, 25.0, 27.0]", "True", "[0.0, 2.0]"]
