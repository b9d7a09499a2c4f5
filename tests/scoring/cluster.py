"""A Ray cluster of two nodes on this machine, each in a network namespace of its own; needs root and iproute2."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

PORT = 6379
OBJECT_STORE_BYTES = 80_000_000
START_SECONDS = 120
WAIT_SECONDS = 240
RAY_START = [sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start"]
SCORE = [sys.executable, "-c", "from cleanset.cli import main; main()", "score", "--model", "standard"]
# otherwise Ray would write a token into the home folder, which changes how later clusters start
WITH_TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "5" * 64}
_number = count()


class Run(subprocess.Popen[str]):
    """A command that a failing test ends, and that no test waits for without end."""

    def wait(self, timeout: float | None = WAIT_SECONDS) -> int:
        return super().wait(timeout)

    def __exit__(self, kind: type[BaseException] | None, *others: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *others)


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of the cluster: a network namespace, in which Ray runs between `start` and `kill`."""

    namespace: str
    address: str
    head: str
    folder: Path

    def start(self, *mounts: tuple[Path, Path], cpus: int = 1, gpus: int = 0) -> None:
        """Start Ray; `mounts`: pairs of what this node alone sees, and the file or folder in whose place.

        `cpus`, `gpus`: how many Ray may give to workers, which need not be there.
        """
        head = ["--head", f"--port={PORT}", "--include-dashboard=false"]
        options = [
            *(head if self.address == self.head else [f"--address={self.head}:{PORT}"]),
            f"--node-ip-address={self.address}", f"--temp-dir={self.folder}",
            f"--num-cpus={cpus}", f"--num-gpus={gpus}",
            f"--object-store-memory={OBJECT_STORE_BYTES}", "--disable-usage-stats",
        ]  # fmt: skip
        # what ip starts in a namespace has mounts of its own
        mounted = "".join(f"mount --bind '{source}' '{target}' && " for source, target in mounts)
        command = ["sh", "-c", f'{mounted}exec "$@"', "sh", *RAY_START, *options]
        with self.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            output = process.communicate(timeout=START_SECONDS)[0]
        assert process.returncode == 0, output

    def score(self, edition: Path) -> Run:
        """Start `cleanset score` on this node."""
        return self.run(SCORE, cwd=edition, stderr=subprocess.PIPE)

    def run(
        self,
        command: Sequence[str],
        cwd: Path | None = None,
        *,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> Run:
        """Start a command on this node."""
        environment = {
            **os.environ,
            **WITH_TOKEN,
            "NODE": self.address,
            "PYTHONWARNINGS": "ignore",
            "RAY_ADDRESS": f"{self.head}:{PORT}",
            # until a process without a head ends; a minute otherwise
            "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
        }
        inside = ["ip", "netns", "exec", self.namespace, *command]
        return Run(inside, cwd=cwd, env=environment, text=True, stdout=stdout, stderr=stderr)

    def kill(self, but: Sequence[int] = ()) -> None:
        """End every process of the node at once, as a power failure does, but those and their children."""
        while pids := [pid for pid in self.pids() if not _parents(pid).intersection(but)]:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def pids(self) -> list[int]:
        """The processes that run on the node."""
        return [int(pid) for pid in ip("netns", "pids", self.namespace).split()]


def _parents(pid: int) -> set[int]:
    """A process and those that it descends from."""
    found = set[int]()
    with suppress(OSError):
        while pid > 1:
            found.add(pid)
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def ip(*arguments: str) -> str:
    """What `ip` prints; CalledProcessError if it fails."""
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def lack_of_namespaces() -> str | None:
    """The reason why network namespaces are impossible here; None if they are possible."""
    if shutil.which("ip") is None:
        return "no ip: install the package iproute2"
    name = f"cs{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode:
        return f"no network namespaces: {' '.join(made.stderr.split())}; run as root"
    ip("netns", "del", name)
    return None


@contextmanager
def two_nodes() -> Iterator[tuple[Node, Node]]:
    """Two nodes joined by a cable, nothing running on them; whatever then runs on them is killed at the end."""
    number, nodes = next(_number), list[Node]()
    with ExitStack() as stack:
        for host in (1, 2):
            name = f"cs{os.getpid()}-{number}{host}"
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
            # pytest's folders have paths too long for Ray's sockets
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True))
            nodes.append(Node(name, f"10.77.0.{host}", "10.77.0.1", Path(folder)))
            stack.callback(nodes[-1].kill)
        ends = [["name", "cable", "netns", node.namespace] for node in nodes]
        ip("link", "add", *ends[0], "type", "veth", "peer", *ends[1])
        for node in nodes:
            ip("-n", node.namespace, "address", "add", f"{node.address}/24", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", node.namespace, "link", "set", device, "up")
        yield nodes[0], nodes[1]


def errors_of(run: "subprocess.Popen[str]") -> list[str]:
    """The errors of a run, once it has ended: its progress is a line each half minute, if no terminal is."""
    return [line for line in run.communicate(timeout=WAIT_SECONDS)[1].splitlines() if line.startswith("error: ")]


def wait_for(condition: Callable[[], object], run: "subprocess.Popen[str]") -> None:
    """Wait until something holds, while a run continues."""
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < end, f"not within {WAIT_SECONDS} s"
        time.sleep(0.1)
