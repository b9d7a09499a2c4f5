"""Defences that are commands: started anew for each image, in a sandbox, with a limit of time and of output."""

import ctypes
import os
import platform
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic

from PIL import Image

from cleanset.errors import CleansetError, reason
from cleanset.evaluation.printed_answers import printed_answers
from cleanset.images.codec import decode
from cleanset.plumbing.validation import shown
from cleanset.studies.contest.bubblewrap import Bubblewrap
from cleanset.studies.contest.entries import DEFENCE_SIDE, Defence
from cleanset.studies.contest.gvisor import Gvisor
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.studies.contest.sandbox import Confined, Sandbox, Start, can_start, scope

MAX_OUTPUT_BYTES = 100_000_000
"""The most bytes that a command may print to its output or to its errors."""

# a byte more than is allowed: whoever writes that many, also by fallocate, is found out
_MAX_FILE_BYTES = MAX_OUTPUT_BYTES + 1

POLL_SECONDS = 0.05
"""Interval between two looks at a running command."""

KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL")
"""Environment variables that a command is given; its home is an empty folder."""

_OF_SCOPES = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""Environment variables by which a sandbox is started in a scope."""

SANDBOXES: Sequence[Sandbox] = (Gvisor(), Bubblewrap())
"""The first that this machine can start confines a command."""


class CommandDefence:
    """A defence that is a command, whose files are among the `objects`.

    A machine that cannot confine it by one of `sandboxes` is refused, unless `unconfined` is given.
    """

    digest = None

    def __init__(
        self,
        objects: Objects,
        defence: Defence,
        groups: Collection[str],
        *,
        unconfined: bool = False,
        sandboxes: Sequence[Sandbox] = SANDBOXES,
    ) -> None:
        self._objects = objects
        self._defence = defence
        self._groups = groups
        self._sandbox = next(filter(can_start, sandboxes), None)
        self._scope = [] if self._sandbox is None else scope()
        self.is_confined = self._sandbox is not None
        """Whether this machine lets the command see nothing but its files and an image."""
        self.preparation_seconds = 0.0
        """Time that it took to make the images of the last call."""
        if not self.is_confined and not unconfined:
            raise CleansetError(
                f"{defence.name}: a command that this machine cannot confine; expected gVisor (the program runsc) or "
                "bubblewrap (bwrap, 0.8 or newer), allowed to make namespaces, or --unconfined, with which the "
                "standing says so"
            )

    def __call__(self, paths: Mapping[str, Path]) -> tuple[dict[str, str], None]:
        """The answers by the SHA-256 of the image; it tells no confidence.

        The command runs anew for each image, in an order drawn anew, so that no answer can depend on other images.
        """
        found: dict[str, str] = {}
        self.preparation_seconds = 0.0
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "defence")
            images = Path(scratch, "images")
            write_files(self._objects, folder, self._defence)
            begun = monotonic()
            for key in secrets.SystemRandom().sample(sorted(paths), len(paths)):
                before = monotonic()
                file = nameless_copy(paths[key], images)
                self.preparation_seconds += monotonic() - before
                ends = begun + self._defence.time_limit_seconds + self.preparation_seconds
                found[key] = self.answers_of(folder, images, ends)[file]
        return found, None

    def answers_of(self, folder: Path, images: Path, ends: float) -> dict[str, str]:
        """The answers to every file in the folder `images`, by the file's name.

        The command runs in its own `folder`, with the path of the images as its last argument, confined where this
        machine allows that. It prints a line `file, class or abstain` for each image. `ends`: when its time is over, by
        `monotonic()`. Raises CleansetError, which names the defence, if it fails, takes too long, or answers otherwise.
        """
        command = self._defence.command or []
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            # no other variables: they may hold credentials, and somebody else wrote the command
            variables = {key: os.environ[key] for key in KEPT_VARIABLES if key in os.environ}
            bundle = scratch / "bundle"
            bundle.mkdir()
            if self._sandbox is None:
                start = Start(command=[*command, str(images.resolve())], max_file_bytes=_MAX_FILE_BYTES)
                # its home, too
                variables |= {"HOME": str(bundle)}
            else:
                confined = Confined(
                    command=command, folder=folder, images=images, variables=variables, max_file_bytes=_MAX_FILE_BYTES
                )
                start = stack.enter_context(self._sandbox.open(confined, bundle))
                start = replace(start, command=[*self._scope, *start.command])
                if self._scope:
                    variables |= {key: os.environ[key] for key in _OF_SCOPES if key in os.environ}
            text = self._output(start, folder, variables, scratch, ends=ends)
        return parse_answers(text, {path.name for path in images.iterdir()}, self._groups, self._defence.name)

    def _output(
        self,
        start: Start,
        folder: Path,
        variables: Mapping[str, str],
        scratch: Path,
        *,
        ends: float,
    ) -> str:
        name = self._defence.name
        out = scratch / "out"
        errors = scratch / "errors"
        # files, not pipes: a command that prints without end must not fill the memory
        with out.open("wb") as stdout, errors.open("wb") as stderr:
            try:
                # in a session of its own, so that everything that it starts can be killed with it
                process = subprocess.Popen(
                    start.command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                    start_new_session=True, preexec_fn=partial(_limit, start.max_file_bytes), pass_fds=start.passed,
                )  # fmt: skip
            except OSError as error:
                raise CleansetError(
                    f"{name}: its command did not start ({reason(error)}); expected a program"
                ) from None
            try:
                while (code := _code_after_a_while(process, ends)) is None and monotonic() < ends:
                    _check_length(name, out, errors)
            finally:
                # also after success: what it started may still run
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        _check_length(name, out, errors)
        if code is None:
            limit = self._defence.time_limit_seconds
            raise CleansetError(f"{name}: its command took more than {limit:g} s; expected it to end within that time")
        if code != 0:
            said = errors.read_bytes()[-2000:].decode(errors="replace").strip().rpartition("\n")[2]
            raise CleansetError(
                f"{name}: its command failed with exit code {code} ({shown(said)}); expected exit code 0"
            )
        return out.read_bytes().decode(errors="replace")


def write_files(objects: Objects, folder: Path, defence: Defence) -> None:
    """Write the files of a defence into a folder, all with one date and the same permissions."""
    for each in defence.files:
        path = folder / each.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(objects.read(each.sha256))
        os.utime(path, (0, 0))
    # whatever the umask is: the command is another user
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o555)


def nameless_copy(path: Path, folder: Path) -> str:
    """Write an image into a folder of its own, under a name drawn anew, which is returned.

    All are PNGs of nothing but pixels, of one size and of one time: neither name, kind, size, date nor metadata of a
    file tells where the image comes from.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    image = decode(path.read_bytes()).convert("RGB").resize((DEFENCE_SIDE, DEFENCE_SIDE), Image.Resampling.BICUBIC)
    # Pillow would write the color profile of the original
    image.info.clear()
    name = f"{secrets.token_hex(16)}.png"
    image.save(folder / name, compress_level=1)
    (folder / name).chmod(0o444)
    folder.chmod(0o755)
    for each in (folder / name, folder):
        os.utime(each, (0, 0))
    return name


_LIBC = ctypes.CDLL(None)
_KEYCTL = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
"""The number of the system call, for which neither Python nor a common program has a function."""


def _limit(max_file_bytes: int | None) -> None:
    if max_file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    # no namespace has the keyring of a login session: in it a command could leave what it has seen for the next image
    if sys.platform == "linux" and _KEYCTL is not None:
        _LIBC.syscall(_KEYCTL, 1, None)


def _code_after_a_while(process: "subprocess.Popen[bytes]", ends: float) -> int | None:
    with suppress(subprocess.TimeoutExpired):
        return process.wait(min(POLL_SECONDS, max(0.0, ends - monotonic())))
    return None


def _check_length(name: str, *outputs: Path) -> None:
    # while the command runs, too: it must not fill the disk
    if any(path.stat().st_size > MAX_OUTPUT_BYTES for path in outputs):
        raise CleansetError(
            f"{name}: its command printed more than {MAX_OUTPUT_BYTES:,} bytes; expected one line for each image"
        )


def parse_answers(text: str, files: Collection[str], groups: Collection[str], name: str) -> dict[str, str]:
    """The answer to each of the files, from lines `file, class or abstain`. Raises CleansetError, beginning `name`."""
    answers = (*groups, ABSTAIN)
    return printed_answers(
        text, files, name, answers.__contains__, kind="its answer", expected=f"one of {', '.join(answers)}"
    )
