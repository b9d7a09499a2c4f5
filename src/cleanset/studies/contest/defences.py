"""Defences that answer: a command that is started for each image, or a model of the edition.

A command sees nothing but the files that its defence.yaml names, one image, and programs and libraries of this machine,
all for reading. It is the first process of a process namespace, so that everything that it starts ends with it, and has
a network namespace without a network. Bubblewrap makes the namespaces.
"""

import ctypes
import json
import os
import platform
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from time import monotonic

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, reason
from cleanset.files import sha256
from cleanset.images.codec import decode
from cleanset.measure.predictions import printed_answers
from cleanset.scoring.logits import Groups, predicted_groups, stored_columns
from cleanset.statistics.coverage import confidences
from cleanset.studies.contest.files import Defence, ModelOfEdition
from cleanset.studies.contest.reading import copy_defence
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.validation import shown

_SYSTEM = (
    "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/local/lib", "/bin", "/lib", "/lib32",
    "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache", "/nix/store",
)  # fmt: skip
"""Programs and libraries of a system; other folders of /usr may hold anything."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_BUBBLEWRAP = (
    "bwrap", "--unshare-all", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--proc", "/proc",
    "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/home",
)  # fmt: skip
_OPTIONS = {"link": "--symlink", "read": "--ro-bind", "device": "--dev-bind"}


@cache
def can_confine() -> bool:
    """Whether bubblewrap is installed and this machine lets it confine a command."""
    with tempfile.TemporaryDirectory() as empty, suppress(OSError):
        command = confined(["true"], Path(empty), Path(empty))
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


def confined(command: Sequence[str], folder: Path, images: Path) -> list[str]:
    """A command that sees nothing but its folder, that of its images, and the system's programs and libraries.

    HOME and TMPDIR have to be /home and /tmp.
    """
    places = [part for kind, *place in _places(command[0], folder, images) for part in (_OPTIONS[kind], *place)]
    return [*_BUBBLEWRAP, *places, "--chdir", "/defence", "--", *command, "/images"]


def _places(program: str, folder: Path, images: Path) -> Iterator[tuple[str, str, str]]:
    """The places that a command sees: `link`, `read` or `device`, the place outside, and the place inside."""
    for name in _SYSTEM:
        if Path(name).is_symlink():
            yield "link", str(Path(name).readlink()), name
        elif Path(name).exists():
            yield "read", name, name
    for path in (*map(Path, _DEVICES), *sorted(Path("/dev").glob("nvidia*"))):
        if path.is_char_device():
            yield "device", str(path), str(path)
    for place in sorted(_interpreters(program, folder.resolve())):
        yield "read", place, place
    yield "read", str(folder.resolve()), "/defence"
    yield "read", str(images.resolve()), "/images"


def _interpreters(program: str, folder: Path) -> set[str]:
    """Programs and libraries of a program and of Python, where they are not the system's; none has `folder` in it."""
    found: set[str] = set()
    for name in (program, "python3", "python"):
        path = shutil.which(name)
        for each in () if path is None else (Path(path).absolute(), Path(os.path.realpath(path))):
            prefix = each.parent.parent
            # of a folder such as ~/bin nothing is shown: its parent is no installation but somebody's home
            if each.parent.name == "bin" and (prefix / "lib").is_dir() and not folder.is_relative_to(prefix):
                found |= {
                    str(prefix / part) for part in ("bin", "lib", "lib64", "pyvenv.cfg") if (prefix / part).exists()
                }
    return found - set(_SYSTEM)


MAX_OUTPUT_BYTES = 100_000_000
POLL_SECONDS = 0.05
KEPT = ("PATH", "LANG", "LC_ALL")
"""Environment variables that a command is given; its home is an empty folder."""


SIDE = 299
"""Width and height of the images that a command is given: those of the paper's data."""


class CommandDefence:
    """A defence that is a command in `folder`; `name` begins its errors.

    `is_confined`: whether this machine lets it see nothing but its files and an image; unless `unconfined` is given, a
    machine that does not is refused. `preparation_seconds`: how long it took to make the images that the last call gave
    to it.
    """

    def __init__(
        self, folder: Path, defence: Defence, groups: Collection[str], name: str, unconfined: bool = False
    ) -> None:
        self._folder, self._defence, self._groups, self._name = folder, defence, groups, name
        self.is_confined = can_confine()
        self.preparation_seconds = 0.0
        if not self.is_confined and not unconfined:
            raise CleansetError(
                f"{name}: a command that this machine cannot confine; expected bubblewrap (the program bwrap), allowed "
                "to make namespaces, or --unconfined, with which the standing says so"
            )

    def __call__(self, paths: Mapping[str, Path]) -> tuple[dict[str, str], None]:
        """The answers by the SHA-256 of the image; it tells no confidence.

        The command runs anew for each image, in an order drawn anew, so that no answer can depend on other images.
        """
        found: dict[str, str] = {}
        self.preparation_seconds = 0.0
        with tempfile.TemporaryDirectory() as scratch:
            folder, images = Path(scratch, "defence"), Path(scratch, "images")
            copy_defence(self._folder, folder, self._defence)
            ends = monotonic() + self._defence.time_limit_seconds
            for key in secrets.SystemRandom().sample(sorted(paths), len(paths)):
                before = monotonic()
                file = nameless_copy(paths[key], images)
                seconds = monotonic() - before
                self.preparation_seconds += seconds
                ends += seconds
                limit = (self._defence.time_limit_seconds, ends)
                found[key] = answers_of(self._defence.command or [], folder, images, self._groups, limit, self._name)[
                    file
                ]
        return found, None


def nameless_copy(path: Path, folder: Path) -> str:
    """Write an image into a folder of its own, under a name drawn anew, which is returned.

    All are PNGs of nothing but pixels, of one size and of one time: neither name, kind, size, date nor metadata of a
    file tells where the image comes from.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    image = decode(path.read_bytes()).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    # Pillow would write the color profile of the original
    image.info.clear()
    name = f"{secrets.token_hex(16)}.png"
    image.save(folder / name, compress_level=1)
    for each in (folder / name, folder):
        os.utime(each, (0, 0))
    return name


def answers_of(
    command: Sequence[str],
    folder: Path,
    images: Path,
    groups: Collection[str],
    limit: tuple[float, float],
    name: str,
) -> dict[str, str]:
    """The answers of a command to every file in the folder `images`, by the file's name.

    The command runs in its own `folder`, with the path of the images as its last argument, confined where this machine
    allows that. It prints a line `file, class or abstain` for each image. `limit`: its seconds, and when they are over
    by `monotonic()`. Raises CleansetError, which begins with `name`, if it fails, takes too long, or answers otherwise.
    """
    with tempfile.TemporaryDirectory() as scratch:
        # no other variables: they may hold credentials, and somebody else wrote the command
        environment = {key: os.environ[key] for key in KEPT if key in os.environ}
        if can_confine():
            whole = confined(command, folder, images)
            environment |= {"HOME": "/home", "TMPDIR": "/tmp"}
        else:
            home = Path(scratch, "home")
            home.mkdir()
            whole = [*command, str(images.resolve())]
            environment |= {"HOME": str(home)}
        text = _output(whole, folder, environment, Path(scratch), limit, name)
    return parse_answers(text, {path.name for path in images.iterdir()}, groups, name)


_LIBC = ctypes.CDLL(None)
_KEYCTL = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
"""The number of the system call, for which neither Python nor a common program has a function."""


def _join_new_keyring() -> None:
    # no namespace has the keyring of a login session: in it a command could leave what it has seen for the next image
    if sys.platform == "linux" and _KEYCTL is not None:
        _LIBC.syscall(_KEYCTL, 1, None)


def _output(
    command: list[str], folder: Path, environment: dict[str, str], scratch: Path, limit: tuple[float, float], name: str
) -> str:
    out, errors = scratch / "out", scratch / "errors"
    # files, not pipes: a command that prints without end must not fill the memory
    with out.open("wb") as stdout, errors.open("wb") as stderr:
        try:
            # in a session of its own, so that everything that it starts can be killed with it
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                start_new_session=True, preexec_fn=_join_new_keyring,
            )  # fmt: skip
        except OSError as error:
            raise CleansetError(f"{name}: its command did not start ({reason(error)}); expected a program") from None
        try:
            while (code := _code_after_a_while(process, limit[1])) is None and monotonic() < limit[1]:
                _check_length(name, out, errors)
        finally:
            # also after success: what it started may still run
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    _check_length(name, out, errors)
    if code is None:
        raise CleansetError(f"{name}: its command took more than {limit[0]:g} s; expected it to end within that time")
    if code != 0:
        said = errors.read_bytes()[-2000:].decode(errors="replace").strip().rpartition("\n")[2]
        raise CleansetError(f"{name}: its command failed with exit code {code} ({shown(said)}); expected exit code 0")
    return out.read_bytes().decode(errors="replace")


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


PROBED = 8
"""Number of images in which a model is searched for signs that it only looks strong."""


class ModelDefence:
    """A model of the edition that abstains below its threshold; the model is loaded on construction.

    `digest`: the SHA-256 of the model's entry in params.yaml, which names its weights by their own.
    """

    preparation_seconds = 0.0

    def __init__(self, edition: Edition, wanted: ModelOfEdition, groups: Groups) -> None:
        # torch is imported here, because a defence that is a command needs none
        from cleanset.scoring.differentiable import Uninteresting
        from cleanset.scoring.engine import settings_for
        from cleanset.scoring.models import load_model

        params = read_params(edition.folder)
        entry = params.network(wanted.role)
        self.digest = sha256(json.dumps(entry.model_dump(mode="json"), sort_keys=True).encode())
        model = load_model(entry, edition.folder)
        self._model = replace(model, network=Uninteresting(model.network)) if wanted.wrapper else model
        self._settings, self._groups = settings_for(params.score), groups
        self.wanted = wanted

    def __call__(self, paths: Mapping[str, Path]) -> tuple[dict[str, str], Mapping[str, float]]:
        """By the name of each image, a group or `abstain`, and the confidence."""
        found = self.predictions(paths)
        sure = dict(zip(found["image_id"], found["confidence"], strict=True))
        groups = zip(found["image_id"], found["group"], strict=True)
        least = self.wanted.threshold
        return {name: self._groups.names[group] if sure[name] >= least else ABSTAIN for name, group in groups}, sure

    def predictions(self, paths: Mapping[str, Path]) -> pd.DataFrame:
        """The columns `image_id`, `group` (0 or 1) and `confidence`, a row for each image, without abstaining."""
        from cleanset.scoring.engine import score_few

        read, read_off = partial(read_image, paths), partial(group_columns, self._groups)
        found = score_few(self._model, read, self._settings, list(paths), read_off=read_off)
        return found.assign(confidence=confidences(found, self.wanted.confidence))

    def signs(self, known: Mapping[str, str], paths: Mapping[str, Path]) -> list[dict[str, str]]:
        """The signs that the model only looks strong, in its answers to some images and in their gradients.

        `known`: the group of each image by its name. No attack is run; the study of attacks does that.
        """
        from cleanset.scoring.decoding import pixels_of
        from cleanset.scoring.differentiable import PixelNetwork, searching
        from cleanset.studies.attacks.base import Subject
        from cleanset.studies.attacks.warnings import of_answers

        # any class of the group will do for the gradient, since only its presence is checked
        preprocessing, first_class = self._model.preprocessing, self._groups.first_class
        subjects = [
            Subject(name, name, first_class(group), pixels_of(name, partial(read_image, paths), preprocessing))
            for name, group in list(known.items())[:PROBED]
        ]
        network = PixelNetwork(self._model.network, self._settings.devices[0].torch, "float64", PROBED)
        with searching("float64"):
            return [asdict(each) for each in of_answers(network, subjects, PROBED)]


def read_image(paths: Mapping[str, Path], name: str) -> Image.Image:
    """An image by its name, in RGB. Raises ValueError if it cannot be read."""
    return decode(paths[name].read_bytes()).convert("RGB")


def group_columns(
    groups: Groups, logits: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"
) -> dict[str, "np.ndarray"]:
    """The columns that confidences need, and the predicted group, from logits of shape (n, 1000).

    Raises ValueError if a logit is not finite.
    """
    found = groups.logits(logits)
    return {**stored_columns(found), "group": predicted_groups(found)}
