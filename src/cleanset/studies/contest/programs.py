"""Defences that are programs: started again for each image in gVisor, a kernel of its own in user space.

A program sees the system's programs and libraries, the files of its own folder and one image, all for reading; it has
no network, and what it writes is lost. The limits are those of the OCI runtime specification (sandbox.yaml): memory of
a process, their number, and where gVisor makes control groups the memory of all together. Time and output are watched
here.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from PIL import Image

from cleanset.errors import CleansetError
from cleanset.evaluation.printed_answers import printed_answers
from cleanset.images.codec import decode
from cleanset.plumbing.validation import shown
from cleanset.plumbing.yaml_files import data_beside
from cleanset.studies.contest.entries import Defence, Program
from cleanset.studies.contest.log import Objects
from cleanset.studies.contest.rules import ABSTAIN

RUNSC = "runsc"
SIDE = 299
"""Width and height of the images that a program is given, as in the paper's data."""
MAX_OUTPUT_BYTES = 1_000_000
"""The most bytes that a program may print to its output or to its errors."""
POLL_SECONDS = 0.05
TRIAL_SECONDS = 60.0
_SYSTEM = (
    "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/bin", "/lib", "/lib32", "/lib64", "/libx32",
    "/etc/alternatives", "/etc/ld.so.cache",
)  # fmt: skip
"""Programs and libraries of the system, whatever a command's first word is; other folders may hold anything."""


class ProgramDefence:
    """A defence that is a program, whose files are among the `objects`. Raises CleansetError without gVisor.

    `images_per_minute`: the lowest rate, so that no program keeps others waiting for long.
    """

    digest = None

    def __init__(self, objects: Objects, defence: Defence, groups: Collection[str], images_per_minute: float) -> None:
        assert defence.program is not None
        self._objects = objects
        self._name = defence.name
        self._program = defence.program
        self._answers = (*groups, ABSTAIN)
        self._images_per_minute = images_per_minute
        self._options = _working_options(defence.name)

    def __call__(self, paths: Mapping[str, Path]) -> tuple[dict[str, str], float]:
        """The answers by the SHA-256 of the image, and the seconds that they took.

        The program runs again for each image, in an order drawn again, so that no answer can depend on other images.
        Raises CleansetError, which names the defence, if it fails, takes too long, or answers otherwise.
        """
        found: dict[str, str] = {}
        begun = monotonic()
        # for all images together
        ends = begun + len(paths) / self._images_per_minute * 60
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "defence")
            images = Path(scratch, "images")
            write_files(self._objects, folder, self._program)
            for key in secrets.SystemRandom().sample(sorted(paths), len(paths)):
                file = nameless_copy(paths[key], images)
                found[key] = self._answer(folder, images, file, ends)
        return found, monotonic() - begun

    def _answer(self, folder: Path, images: Path, file: str, ends: float) -> str:
        """The answer to the only file in the folder `images`; `folder`: the program's own."""
        with tempfile.TemporaryDirectory() as bundle:
            write_bundle(Path(bundle), [*self._program.command, "/images"], folder, images)
            text = self._output(Path(bundle), ends)
        expected = f"one of {', '.join(self._answers)}"
        is_answer = self._answers.__contains__
        return printed_answers(text, {file}, self._name, is_answer, kind="its answer", expected=expected)[file]

    def _output(self, bundle: Path, ends: float) -> str:
        out = bundle / "out"
        errors = bundle / "errors"
        start = _start(bundle, self._options)
        code = None
        # files, not pipes: a program that prints without end must not fill the memory
        with out.open("wb") as stdout, errors.open("wb") as stderr:
            # in a session of its own, so that everything that it starts can be killed with it
            process = subprocess.Popen(
                start, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
            )
        try:
            while code is None and monotonic() < ends:
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(POLL_SECONDS)
                # while it runs, too: it must not fill the disk
                if max(out.stat().st_size, errors.stat().st_size) > MAX_OUTPUT_BYTES:
                    raise CleansetError(f"{self._name}: printed over {MAX_OUTPUT_BYTES:,} bytes; expected a line")
        finally:
            if code is None:
                delete = [*start[: start.index("run")], "delete", "--force", start[-1]]
                subprocess.run(delete, capture_output=True, check=False)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if code is None:
            least = f"{self._images_per_minute:g} images a minute, limits.images_per_minute"
            raise CleansetError(f"{self._name}: too slow; expected at least {least}: make it faster")
        if code != 0:
            said = errors.read_bytes()[-2000:].decode(errors="replace").strip().rpartition("\n")[2]
            raise CleansetError(f"{self._name}: failed with exit code {code} ({shown(said)}); expected 0: fix it")
        return out.read_bytes().decode(errors="replace")


def _start(bundle: Path, options: Sequence[str]) -> list[str]:
    """The command that runs a bundle; its last word is the name of the container."""
    of_user = [] if os.getuid() == 0 else ["--rootless"]
    state = f"--root={bundle / 'state'}"
    container = f"cleanset-{secrets.token_hex(8)}"
    return [RUNSC, "--network=none", *of_user, *options, state, "run", f"--bundle={bundle}", container]


def _working_options(name: str) -> list[str]:
    """The options with which gVisor starts here: with control groups, else without. Raises CleansetError for none."""
    for options in ([], ["--ignore-cgroups"]):
        with tempfile.TemporaryDirectory() as bundle, suppress(OSError, subprocess.TimeoutExpired):
            write_bundle(Path(bundle), ["true"], Path("/usr/lib"), Path("/usr/lib"))
            start = _start(Path(bundle), options)
            if subprocess.run(start, capture_output=True, check=False, timeout=TRIAL_SECONDS).returncode == 0:
                return options
    raise CleansetError(f"{name}: a program; expected gVisor's {RUNSC} to work: install Debian's package {RUNSC}")


def write_bundle(bundle: Path, arguments: Sequence[str], folder: Path, images: Path) -> None:
    """Write what gVisor starts: a description, and a root folder with the places of what the program sees.

    `folder`, the program's own files, is /defence; `images` is /images.
    """
    description = data_beside(__file__, "sandbox.yaml")
    description["process"]["args"] = [*arguments]
    seen = [*((Path(each), each) for each in _SYSTEM), (folder.resolve(), "/defence"), (images.resolve(), "/images")]
    for outside, inside in seen:
        path = bundle / "root" / inside.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if outside.is_symlink():
            path.symlink_to(outside.readlink())
        elif outside.exists():
            path.mkdir() if outside.is_dir() else path.touch()
            mount = {"destination": inside, "type": "bind", "source": str(outside), "options": ["ro", "rbind"]}
            description["mounts"].append(mount)
    (bundle / "config.json").write_text(json.dumps(description))


def write_files(objects: Objects, folder: Path, program: Program) -> None:
    """Write the files of a program into a folder, all with one date and the same permissions."""
    for name, digest in program.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(objects.read(digest))
        os.utime(path, (0, 0))
    # whatever the umask is: the program is another user
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o555)


def nameless_copy(path: Path, folder: Path) -> str:
    """Write an image into a folder of its own, under a name drawn again, which is returned.

    All are PPMs of one size and time, scaled without cropping: neither name, kind, size, date nor metadata of a file
    reveals where the image comes from.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    name = f"{secrets.token_hex(16)}.ppm"
    decode(path.read_bytes()).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(folder / name)
    (folder / name).chmod(0o444)
    folder.chmod(0o755)
    for each in (folder / name, folder):
        os.utime(each, (0, 0))
    return name
