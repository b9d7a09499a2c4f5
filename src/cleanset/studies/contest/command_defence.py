"""Running a defence's command over a folder of images, and reading what it prints."""

import functools
import os
import signal
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from cleanset.errors import CleansetError, reason
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.validation import shown

MAX_OUTPUT_BYTES = 100_000_000
KEPT = ("PATH", "LANG", "LC_ALL")
"""Environment variables that a command is given; its home is an empty folder."""
# with a user namespace (--map-root-user), because a network namespace alone needs root
_WITHOUT_NETWORK = ("unshare", "--map-root-user", "--net", "--")


def answers_of(
    command: Sequence[str], folder: Path, images: Path, groups: Collection[str], time_limit_seconds: float, name: str
) -> dict[str, str]:
    """The answers of a command to every file in the folder `images`, by the file's name.

    The command runs in its own `folder`, with the path of the images as its last argument, and without network where
    this machine allows that. It prints a line `file, class or abstain` for each image. Raises CleansetError, which
    begins with `name`, if it fails, takes too long, or answers otherwise.
    """
    with tempfile.TemporaryDirectory() as scratch:
        text = _output(
            [*without_network(), *command, str(images.resolve())], folder, Path(scratch), time_limit_seconds, name
        )
    return parse_answers(text, {path.name for path in images.iterdir()}, groups, name)


@functools.cache
def without_network() -> tuple[str, ...]:
    """The prefix of a command that takes the network from it; empty where the machine does not allow that."""
    try:
        done = subprocess.run([*_WITHOUT_NETWORK, "true"], capture_output=True, check=False)
    except OSError:
        return ()
    return _WITHOUT_NETWORK if done.returncode == 0 else ()


def _output(command: list[str], folder: Path, scratch: Path, time_limit_seconds: float, name: str) -> str:
    out, errors, home = scratch / "out", scratch / "errors", scratch / "home"
    home.mkdir()
    # no other variables: they may hold credentials, and somebody else wrote the command
    environment = {key: os.environ[key] for key in KEPT if key in os.environ} | {"HOME": str(home)}
    # files, not pipes: a command that prints without end must not fill the memory
    with out.open("wb") as stdout, errors.open("wb") as stderr:
        try:
            # in a session of its own, so that everything that it starts can be killed with it
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise CleansetError(f"{name}: its command did not start ({reason(error)}); expected a program") from None
        try:
            code = process.wait(time_limit_seconds)
        except subprocess.TimeoutExpired:
            raise CleansetError(
                f"{name}: its command took more than {time_limit_seconds:g} s; expected it to end within that time"
            ) from None
        finally:
            # also after success: what it started may still run
            _kill(process)
    if code != 0:
        said = errors.read_bytes()[-2000:].decode(errors="replace").strip().rpartition("\n")[2]
        raise CleansetError(f"{name}: its command failed with exit code {code} ({shown(said)}); expected exit code 0")
    if out.stat().st_size > MAX_OUTPUT_BYTES:
        raise CleansetError(
            f"{name}: its command printed more than {MAX_OUTPUT_BYTES:,} bytes; expected one line for each image"
        )
    return out.read_bytes().decode(errors="replace")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End the command and everything that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def parse_answers(text: str, files: Collection[str], groups: Collection[str], name: str) -> dict[str, str]:
    """The answer to each of the files, from lines `file, class or abstain`. Raises CleansetError, beginning `name`."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        file, comma, answer = (part.strip() for part in line.partition(","))
        where = f"{name}: line {number} of its output"
        if not comma or file not in files:
            raise CleansetError(f"{where}: {shown(line)}; expected a file that it was given, a comma and its answer")
        if answer not in (*groups, ABSTAIN):
            raise CleansetError(f"{where}: answers {shown(answer)}; expected one of {', '.join((*groups, ABSTAIN))}")
        if file in found:
            raise CleansetError(f"{where}: {file} a second time; expected one line for each image")
        found[file] = answer
    missing = sorted(set(files) - set(found))
    if missing:
        raise CleansetError(
            f"{name}: its command did not answer {len(missing)} images, {missing[0]} among them; expected one line each"
        )
    return found
