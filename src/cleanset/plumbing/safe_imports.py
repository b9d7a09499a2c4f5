"""Importing this module keeps libraries that are imported later from the files of the current folder.

It may be a stranger's, and four libraries look there when they are imported:

- torch: libcusparseLt.so.0 of its CUDA wheels has an empty RUNPATH entry, so that the loader runs a `libcuda.so.1` of
  the current folder;
- numba reads .numba_config.yaml there, which leads to a folder of pickles (`cache_dir`);
- NiceGUI takes a folder `.nicegui` there for its storage, and reads a file in it when a server starts, of any size;
- cv2 puts an empty entry into LD_LIBRARY_PATH, so that every program that is started afterwards looks there for its
  libraries.

It also keeps torchvision from importing torch's compiler, with sympy and triton, for one function: a second of
processor time, over a third of what torch, torchvision and timm take, in each process of a run.

The programs and worker processes of this package import it first; where the package is used from Python, nothing does.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import chdir
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

LOOKING_AROUND = ("cv2", "nicegui", "numba", "torch")
"""Libraries that look into the current folder when they are imported, or let others."""


class _FromRoot(Loader):
    """Runs a module's code in the root folder; all else is the module's own loader."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        # threads see the other folder, too: the libraries are imported before any is started
        with chdir(os.sep):
            self._loader.exec_module(module)
        _drop_empty_entries("LD_LIBRARY_PATH")


COMPILER = "torch._dynamo"
"""torch's compiler, and below it the module with the function that torchvision imports."""
COMPILER_UTILS = f"{COMPILER}.utils"


class _WithoutCompiler(_FromRoot):
    """Runs torchvision's code with stand-ins of the compiler, which is imported when the function is called."""

    def exec_module(self, module: ModuleType) -> None:
        # torch itself sees the real compiler
        import_module("torch")
        if COMPILER in sys.modules:
            self._loader.exec_module(module)
            return
        sys.modules |= {name: ModuleType(name) for name in (COMPILER, COMPILER_UTILS)}
        vars(sys.modules[COMPILER_UTILS])["is_compile_supported"] = _is_compile_supported
        try:
            self._loader.exec_module(module)
        finally:
            del sys.modules[COMPILER], sys.modules[COMPILER_UTILS]


def _is_compile_supported(device_type: str) -> Any:
    return import_module(COMPILER_UTILS).is_compile_supported(device_type)


class _Finder(MetaPathFinder):
    """Finds torchvision and the modules of LOOKING_AROUND as the other finders do, with another loader."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        loader = _WithoutCompiler if fullname == "torchvision" else _FromRoot
        if fullname not in LOOKING_AROUND and loader is _FromRoot:
            return None
        others = (each.find_spec(fullname, path, target) for each in sys.meta_path if each is not self)
        spec = next(filter(None, others), None)
        if spec is not None and spec.loader is not None:
            spec.loader = loader(spec.loader)
        return spec


def _drop_empty_entries(variable: str) -> None:
    """Leave out the empty entries of a list of folders, which stand for the current one."""
    entries = os.environ.get(variable, "").split(os.pathsep)
    if kept := list(filter(None, entries)):
        os.environ[variable] = os.pathsep.join(kept)
    else:
        os.environ.pop(variable, None)


sys.meta_path.insert(0, _Finder())
