"""`cleanset`, `dvc` and Python scripts start in milliseconds: a server that has imported their libraries forks them.

A third of the processor time of a test run went into starting Python with torch, timm or DVC. The server imports
libraries only: the code of `cleanset` is that of PYTHONPATH, read again by each command. If the environment differs
from the server's in anything that an import may look at (a sitecustomize, certificates, switches of a library), the
installed command is started; so is Python with anything but the path of a script as its first argument.

As a script, with its name in SERVERS, the number of a listening socket and the folder of the commands, this is a
server; it ends with its standard input.
"""

import atexit
import gc
import marshal
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, NoReturn

PYTHON = "python"
DVC_LIBRARIES = (
    "aiohttp", "configobj", "dulwich.filters", "dulwich.ignore", "dulwich.index", "dulwich.patch", "dulwich.worktree",
    "dvc.cachemgr", "dvc.cli.parser", "dvc.data_cloud", "dvc.lock", "dvc.repo.artifacts", "dvc.repo.datasets",
    "dvc.repo.graph", "dvc.repo.metrics.show",
    "dvc.repo.params", "dvc.repo.plots", "dvc.repo.reproduce", "dvc.repo.stage", "dvc.repo.trie", "dvc.stage.run",
    "dvc.utils.strictyaml", "dvc_data.fs", "dvc_data.hashfile.db.index", "dvc_data.hashfile.db.local",
    "dvc_data.hashfile.status", "dvc_data.index.checkout", "dvc_data.index.collect", "dvc_data.index.fetch",
    "dvc_data.index.push",
    "fsspec.implementations.memory", "networkx", "packaging.requirements", "platformdirs.unix", "pygit2", "pyparsing",
    "rich.progress", "ruamel.yaml", "scmrepo.git", "tabulate", "wcwidth", "yaml",
)  # fmt: skip
LIBRARIES = (
    *DVC_LIBRARIES, "fastapi", "jinja2", "markdown_it.presets", "nicegui", "numpy.random", "pandas",
    "PIL.BmpImagePlugin", "PIL.features", "PIL.GifImagePlugin", "PIL.JpegImagePlugin", "PIL.PngImagePlugin",
    "PIL.PpmImagePlugin",
    "pyarrow.pandas_compat", "pyarrow.parquet", "pydantic.dataclasses", "pydantic.functional_validators",
    "pydantic.type_adapter",
    "rich.columns", "safetensors.torch", "scipy.stats", "skimage.draw", "timm", "typer", "uvicorn",
)  # fmt: skip
SERVERS = {"dvc": ("dvc",), "all": ("cleanset", PYTHON)}
"""The programs of each server; the first forks several times faster, since it has not imported torch."""
MAY_DIFFER = {
    "BROWSER", "COLUMNS", "CUBLAS_WORKSPACE_CONFIG", "LD_LIBRARY_PATH", "LINES", "MFLAGS", "NO_COLOR", "NO_PROXY",
    "OLDPWD", "OPENCV_FFMPEG_LOGLEVEL", "PATH", "PS1", "PWD", "PYTHONPATH", "SHLVL", "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING", "XDG_STATE_HOME", "_",
}  # fmt: skip
MAY_DIFFER_FROM = (
    "CLEANSET_", "DVC_", "GIT_", "GROUP_", "LOCAL_", "MAKE", "MASTER_", "PYTEST_", "RANK", "ROLE_", "TORCHELASTIC_",
    "WORLD_SIZE",
)  # fmt: skip
"""Environment variables that no library looks at when it is imported, and how others of them begin."""
REFUSED = b"installed"
SHARED = "CLEANSET_TEST_COMMANDS"
"""The environment variable that names the folder to a test run's workers."""

CLIENT = """#!{python} -IS
import marshal, os, sys
from _signal import SIG_DFL, SIGINT, SIGKILL, SIGTERM, signal
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

installed = {installed!r}
server = socket(AF_UNIX, SOCK_STREAM)
server.connect({address!r})
os.umask(umask := os.umask(0))
request = marshal.dumps((installed, sys.argv[1:], os.getcwd(), dict(os.environ), umask))
descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([len(request).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, descriptors)])
server.sendall(request)
for number in (SIGINT, SIGTERM):
    signal(number, lambda number, frame: server.send(bytes([number])))
answer = server.recv(16)
if answer == {refused!r}:
    os.execv(installed, [installed, *sys.argv[1:]])
status = int(answer or -SIGKILL)
if status < 0:
    if status != -SIGKILL:
        signal(-status, SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""
"""The command: hands to the server what it was started with, passes signals on, and ends as the forked process did."""


class Request(NamedTuple):
    """What a command was started with."""

    installed: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    umask: int


@cache
def forked_commands() -> Path:
    """A folder with the commands, for PATH; empty if none is installed.

    Their servers end with the process that started them: the first of a test run, whose workers use them too.
    """
    if SHARED in os.environ:
        return Path(os.environ[SHARED])
    folder = Path(tempfile.mkdtemp(prefix="commands-"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for server, programs in SERVERS.items():
        installed = {name: path for name in programs if (path := shutil.which(name))}
        start_server(folder, installed, environment, "-P", __file__, server)
    return folder


def start_server(folder: Path, commands: Mapping[str, str], environment: Mapping[str, str], *program: str) -> None:
    """Start a Python program that forks commands, and write their clients, by name, into a folder.

    `commands` has what is executed where a command cannot be forked.
    """
    address = str(folder / f"{'-'.join(commands)}.socket")
    for name, installed in commands.items():
        client = CLIENT.format(python=sys.executable, installed=installed, address=address, refused=REFUSED)
        (folder / name).write_text(client)
        (folder / name).chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:  # a command waits until the server has imported its libraries
        listening.bind(address)
        listening.listen(64)
        server = subprocess.Popen(
            [sys.executable, *program, str(listening.fileno()), str(folder)], stdin=subprocess.PIPE, env=environment,
            pass_fds=[listening.fileno()], start_new_session=True,
        )  # fmt: skip
    _SERVERS.append(server)


def forking(source: Path) -> dict[str, str]:
    """The environment's PATH with these commands in front, and as PYTHONPATH the folder `src` whose code they run."""
    return {"PATH": f"{forked_commands()}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(source)}


_SERVERS: list[subprocess.Popen[bytes]] = []
"""So that its standard input stays open."""


def may_be_forked(environment: Mapping[str, str], of_server: Mapping[str, str]) -> bool:
    """Whether imports under both environments do the same, and the code comes from a folder `src`."""
    changed = {name for name in {*environment, *of_server} if environment.get(name) != of_server.get(name)}
    return environment.get("PYTHONPATH", "").endswith("/src") and all(
        name in MAY_DIFFER or name.startswith(MAY_DIFFER_FROM) for name in changed
    )


class Running(NamedTuple):
    """A forked process, and the connection of its command."""

    process: int
    pidfd: int
    connection: socket.socket


def is_forked(request: Request, of_server: Mapping[str, str]) -> bool:
    """Whether a command is forked, by its environment; for Python, only scripts."""
    is_script = bool(request.arguments) and request.arguments[0].endswith(".py")
    return (is_script or Path(request.installed).name != PYTHON) and may_be_forked(request.environment, of_server)


def serve(listening: socket.socket, folder: str, accepts: Callable[[Request], bool]) -> Request | None:
    """Fork a process for each request that the server accepts.

    In that process, the request is returned; None in the server, at its end.
    """
    running: list[Running] = []
    while True:
        ready, _, _ = select.select([listening, sys.stdin, *(one for each in running for one in each[1:])], [], [])
        if sys.stdin in ready:
            shutil.rmtree(folder, ignore_errors=True)
            return None
        running = [each for each in running if not has_ended(each, ready)]
        if listening in ready:
            connection, _ = listening.accept()
            request, descriptors = receive(connection)
            if not accepts(request):
                connection.sendall(REFUSED)
                connection.close()
            elif process := os.fork():
                running.append(Running(process, os.pidfd_open(process), connection))
            else:
                os.setsid()
                for number, descriptor in enumerate(descriptors):
                    os.dup2(descriptor, number)
                # not a range: what another object here has open, it would close a second time when it is freed
                for each in (listening, connection, *(each.connection for each in running)):
                    each.close()
                for descriptor in (*descriptors, *(each.pidfd for each in running)):
                    os.close(descriptor)
                return request
            for descriptor in descriptors:
                os.close(descriptor)


def has_ended(each: Running, ready: Sequence[object]) -> bool:
    """Pass on to a forked process what its command has received, and to the command how the process has ended."""
    if each.pidfd in ready:
        _, status = os.waitpid(each.process, 0)
        with suppress(OSError):  # the command was killed
            each.connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os.close(each.pidfd)
        each.connection.close()
    elif each.connection in ready:
        received = each.connection.recv(1)  # nothing if the command was killed
        end(each.process, signal.Signals(received[0]) if received else signal.SIGKILL)
    return each.pidfd in ready


def receive(connection: socket.socket) -> tuple[Request, list[int]]:
    """A request, and the command's standard input, output and error."""
    head, descriptors, _, _ = socket.recv_fds(connection, 8, 3)
    size, content = int.from_bytes(head, "big"), b""
    while len(content) < size:
        content += connection.recv(size - len(content))
    return Request(*marshal.loads(content)), descriptors


def end(process: int, number: signal.Signals) -> None:
    """Send a signal to a command and to what it has started."""
    try:
        os.killpg(process, number)
    except ProcessLookupError:  # it has just been forked
        os.kill(process, number)


def enter(request: Request) -> None:
    """Take over the folder of a command, its environment added to what imports have set, and new random states."""
    os.chdir(request.folder)
    os.umask(request.umask)
    os.environ.update(request.environment)
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()


def run(request: Request) -> int:
    """Do what the installed command does; its exit code."""
    os.environ.clear()
    enter(request)
    name = Path(request.installed).name
    sys.argv = request.arguments if name == PYTHON else [request.installed, *request.arguments]
    program = Path(sys.argv[0]).absolute()
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = str(program)  # what processes that it starts import
    sys.path[:0] = [str(program.resolve().parent), *request.environment["PYTHONPATH"].split(os.pathsep)]
    sys.modules.pop("sitecustomize", None)
    with suppress(ModuleNotFoundError):
        import_module("sitecustomize")
    try:
        if name == PYTHON:
            exec(compile(program.read_bytes(), program, "exec"), vars(main))
            code = None
        else:
            code = import_module(f"{name}.cli").main()
    except SystemExit as error:
        code = error.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    return code if isinstance(code, int) else int(code is not None)


def leave(code: int) -> NoReturn:
    """End as Python does, but for freeing what the server has imported, which takes a while."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    started_with = dict(os.environ)  # torch adds to it when it is imported
    for library in DVC_LIBRARIES if sys.argv[1] == "dvc" else LIBRARIES:
        import_module(library)
    assert "cleanset" not in sys.modules
    gc.collect()
    gc.freeze()
    accepts = partial(is_forked, of_server=started_with)
    if command := serve(socket.socket(fileno=int(sys.argv[2])), sys.argv[3], accepts):
        leave(run(command))
