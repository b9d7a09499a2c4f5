"""Defences that answer: a command that is started for each image, or a model of the edition; and their runs.

A command sees nothing but the files that its entry names, one image, and programs and libraries of this machine, all
for reading. It is the first process of a process namespace, so that everything that it starts ends with it, and has a
network namespace without a network. Bubblewrap makes the namespaces.

A run is over every submitted image and the eligibility list. torch is imported only for a model.

The line of contest.yaml with the digest of an unpublished list.

`cleanset contest threshold`: the threshold of a model that covers a share of the eligibility list.
"""

import ctypes
import datetime
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
from itertools import chain
from pathlib import Path
from time import monotonic, perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, reason
from cleanset.files import read_bytes, sha256
from cleanset.images.codec import decode
from cleanset.measure.predictions import printed_answers
from cleanset.scoring.logits import Groups, predicted_groups, stored_columns
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import MANIFEST, Entry
from cleanset.statistics.basics import Flags, Floats
from cleanset.statistics.coverage import (
    CONFIDENCES,
    RANKINGS,
    Confidence,
    Ranking,
    at_coverage,
    check_coverage,
    confidences,
    confident_mistakes,
    eligibility,
    threshold,
)
from cleanset.studies.contest.files import (
    ContestFiles,
    Defence,
    DefenceRun,
    ModelOfEdition,
    UnpublishedFigures,
    WarningSign,
    coverage_steps,
    submitted_images,
)
from cleanset.studies.contest.log import Objects, read_state, visible
from cleanset.studies.contest.rules import ABSTAIN, ContestRules
from cleanset.validation import check_known, shown

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


@cache
def can_confine() -> bool:
    """Whether bubblewrap is installed and this machine lets it confine a command."""
    with tempfile.TemporaryDirectory() as empty, suppress(OSError):
        command = confined(["true"], Path(empty), Path(empty))
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


def confined(command: Sequence[str], folder: Path, images: Path) -> list[str]:
    """A command that sees nothing but its folder, its images' folder, and the system's programs and libraries.

    HOME and TMPDIR have to be /home and /tmp.
    """
    places = chain.from_iterable(_places(command[0], folder, images))
    return [*_BUBBLEWRAP, *places, "--chdir", "/defence", "--", *command, "/images"]


def _places(program: str, folder: Path, images: Path) -> Iterator[tuple[str, str, str]]:
    """The places that a command sees: bubblewrap's option, the place outside, and the place inside."""
    for name in _SYSTEM:
        if Path(name).is_symlink():
            yield "--symlink", str(Path(name).readlink()), name
        elif Path(name).exists():
            yield "--ro-bind", name, name
    for path in (*map(Path, _DEVICES), *sorted(Path("/dev").glob("nvidia*"))):
        if path.is_char_device():
            yield "--dev-bind", str(path), str(path)
    for place in sorted(_interpreters(program, folder.resolve())):
        yield "--ro-bind", place, place
    yield "--ro-bind", str(folder.resolve()), "/defence"
    yield "--ro-bind", str(images.resolve()), "/images"


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
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL")
"""Environment variables that a command is given; its home is an empty folder."""


DEFENCE_SIDE = 299
"""Width and height of the images that a command is given, as in the paper's data."""


class CommandDefence:
    """A defence that is a command, whose files are among the `objects`.

    `is_confined`: whether this machine lets it see nothing but its files and an image; unless `unconfined` is given, a
    machine that does not is refused. `preparation_seconds`: how long it took to make the images that the last call gave
    to it.
    """

    digest = None

    def __init__(self, objects: Objects, defence: Defence, groups: Collection[str], unconfined: bool = False) -> None:
        self._objects, self._defence, self._groups = objects, defence, groups
        self.is_confined = can_confine()
        self.preparation_seconds = 0.0
        if not self.is_confined and not unconfined:
            raise CleansetError(
                f"{defence.name}: a command that this machine cannot confine; expected bubblewrap (the program bwrap), "
                "allowed to make namespaces, or --unconfined, with which the standing says so"
            )

    def __call__(self, paths: Mapping[str, Path]) -> tuple[dict[str, str], None]:
        """The answers by the SHA-256 of the image; it tells no confidence.

        The command runs anew for each image, in an order drawn anew, so that no answer can depend on other images.
        """
        found, defence = dict[str, str](), self._defence
        self.preparation_seconds = 0.0
        with tempfile.TemporaryDirectory() as scratch:
            folder, images = Path(scratch, "defence"), Path(scratch, "images")
            write_files(self._objects, folder, defence)
            begun = monotonic()
            for key in secrets.SystemRandom().sample(sorted(paths), len(paths)):
                before = monotonic()
                file = nameless_copy(paths[key], images)
                self.preparation_seconds += monotonic() - before
                ends = begun + defence.time_limit_seconds + self.preparation_seconds
                found[key] = answers_of(defence, folder, images, self._groups, ends)[file]
        return found, None


def write_files(objects: Objects, folder: Path, defence: Defence) -> None:
    """Write the files of a defence into a folder, all with one date and the same permissions."""
    for each in defence.files:
        path = folder / each.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(objects.read(each.sha256))
        path.chmod(0o555)
        os.utime(path, (0, 0))


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
    for each in (folder / name, folder):
        os.utime(each, (0, 0))
    return name


def answers_of(defence: Defence, folder: Path, images: Path, groups: Collection[str], ends: float) -> dict[str, str]:
    """The answers of a command to every file in the folder `images`, by the file's name.

    The command runs in its own `folder`, with the path of the images as its last argument, confined where this machine
    allows that. It prints a line `file, class or abstain` for each image. `ends`: when its time is over, by
    `monotonic()`. Raises CleansetError, which names the defence, if it fails, takes too long, or answers otherwise.
    """
    command = defence.command or []
    with tempfile.TemporaryDirectory() as scratch:
        # no other variables: they may hold credentials, and somebody else wrote the command
        environment = {key: os.environ[key] for key in KEPT_VARIABLES if key in os.environ}
        if can_confine():
            whole = confined(command, folder, images)
            environment |= {"HOME": "/home", "TMPDIR": "/tmp"}
        else:
            home = Path(scratch, "home")
            home.mkdir()
            whole = [*command, str(images.resolve())]
            environment |= {"HOME": str(home)}
        text = _output(whole, folder, environment, Path(scratch), defence, ends)
    return parse_answers(text, {path.name for path in images.iterdir()}, groups, defence.name)


_LIBC = ctypes.CDLL(None)
_KEYCTL = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
"""The number of the system call, for which neither Python nor a common program has a function."""


def _join_new_keyring() -> None:
    # no namespace has the keyring of a login session: in it a command could leave what it has seen for the next image
    if sys.platform == "linux" and _KEYCTL is not None:
        _LIBC.syscall(_KEYCTL, 1, None)


def _output(
    command: list[str], folder: Path, environment: dict[str, str], scratch: Path, defence: Defence, ends: float
) -> str:
    name, limit = defence.name, defence.time_limit_seconds
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
            while (code := _code_after_a_while(process, ends)) is None and monotonic() < ends:
                _check_length(name, out, errors)
        finally:
            # also after success: what it started may still run
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    _check_length(name, out, errors)
    if code is None:
        raise CleansetError(f"{name}: its command took more than {limit:g} s; expected it to end within that time")
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
"""Number of images on which a model is probed for signs of gradient masking."""


class ModelDefence:
    """A model of the edition that abstains below its threshold; the model is loaded on construction.

    `digest`: the SHA-256 of the model's entry in params.yaml, which names its weights by their own.
    """

    preparation_seconds = 0.0
    is_confined = None

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

    def signs(self, known: "Mapping[str, EligibilityImage]", paths: Mapping[str, Path]) -> list[WarningSign]:
        """The signs of gradient masking in the model's answers to some images and in their gradients.

        `known`: images by name. No attack is run; the study of attacks does that.
        """
        from cleanset.scoring.decoding import pixels_of
        from cleanset.scoring.differentiable import PixelNetwork, searching
        from cleanset.studies.attacks.base import Subject
        from cleanset.studies.attacks.warnings import of_answers

        # any class of the group will do for the gradient, since only its presence is checked
        preprocessing, first_class = self._model.preprocessing, self._groups.first_class
        subjects = [
            Subject(name, name, first_class(each.group), pixels_of(name, partial(read_image, paths), preprocessing))
            for name, each in list(known.items())[:PROBED]
        ]
        network = PixelNetwork(self._model.network, self._settings.devices[0].torch, "float64", PROBED)
        with searching("float64"):
            return [WarningSign(**asdict(each)) for each in of_answers(network, [subjects])]


def read_image(paths: Mapping[str, Path], name: str) -> Image.Image:
    """An image by its name, in RGB. Raises ValueError if it cannot be read."""
    return decode(paths[name].read_bytes()).convert("RGB")


def group_columns(
    groups: Groups, logits: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", _ids: Sequence[str] = ()
) -> dict[str, "np.ndarray"]:
    """The columns that confidences need, and the predicted group, from logits of shape (n, 1000).

    Raises ValueError if a logit is not finite.
    """
    found = groups.logits(logits)
    return {**stored_columns(found), "group": predicted_groups(found)}


UNPUBLISHED_LIST = "unpublished"
"""The folder, beside contest.yaml, of the list that is not published; git ignores it."""


class EligibilityImage(NamedTuple):
    """An image whose group is known."""

    path: Path
    group: str


def clean_images(edition: Edition) -> list[tuple[Path, Entry]]:
    """The images of the edition's finished sets, set by set, with their entries."""
    folders = sorted(path.parent for path in (edition.folder / "data" / "export").glob(f"*/{MANIFEST}"))
    return [(folder / entry.file, entry) for folder in folders for entry in read_entries(folder)]


def eligibility_list(edition: Edition, groups: Groups) -> dict[str, EligibilityImage]:
    """By SHA-256, the images of the edition's finished sets whose class is in one of the groups."""
    found: dict[str, EligibilityImage] = {}
    for path, entry in clean_images(edition):
        group = groups.group_of(entry.class_index)
        if group is not None:
            # an image in the sets of several models counts once
            found.setdefault(entry.file_sha256, EligibilityImage(path, groups.names[group]))
    if not found:
        raise CleansetError(
            f"{edition.folder / 'data' / 'export'}: no image of a class of the contest; expected some in the finished "
            "sets: run dvc pull, or name other classes in contest.yaml"
        )
    return dict(sorted(found.items()))


def unpublished_list(folder: Path, groups: Groups) -> dict[str, EligibilityImage]:
    """By SHA-256, the images of a list that is not published: a folder with one folder for each group, by its name.

    Raises CleansetError for a group without an image, a link, and an image in both groups.
    """
    found: dict[str, EligibilityImage] = {}
    for group in groups.names:
        paths = visible(folder / group)
        if not paths:
            raise CleansetError(f"{folder / group}: no image; expected a folder of images for each of the two groups")
        for path in paths:
            other = found.setdefault(sha256(read_bytes(path)), EligibilityImage(path, group))
            if other.group != group:
                raise CleansetError(f"{path}: the same image as {other.path}; expected each image in one group")
    return dict(sorted(found.items()))


def list_digest(images: Mapping[str, EligibilityImage]) -> str:
    """The digest of a list in contest.yaml: of a line `<group> <SHA-256>` for each image, sorted."""
    return sha256("".join(sorted(f"{each.group} {digest}\n" for digest, each in images.items())).encode())


def checked_list(contest: Path, rules: ContestRules, unpublished: Path | None) -> dict[str, EligibilityImage]:
    """The unpublished list that contest.yaml names, in a folder or in `unpublished/` beside it; empty without one.

    Raises CleansetError for another list than the one that it names, and as `unpublished_list` does.
    """
    folder = contest / UNPUBLISHED_LIST if unpublished is None else unpublished
    if rules.unpublished is None and unpublished is None:
        return {}
    if not folder.is_dir():
        raise CleansetError(
            f"{folder}: no folder; expected the unpublished list that contest.yaml names: add it, or give its folder "
            "with --unpublished"
        )
    found = unpublished_list(folder, rules.groups())
    if rules.unpublished is None:
        raise CleansetError(
            f"{folder}: an unpublished list, missing from contest.yaml; expected its line there before the contest "
            "begins: cleanset contest check prints it"
        )
    if list_digest(found) != rules.unpublished:
        raise CleansetError(
            f"{folder}: a list with the digest {list_digest(found)}; expected the one that contest.yaml names as "
            f"unpublished, {rules.unpublished}: give that one"
        )
    return found


def run_defence(
    contest: Path,
    files: ContestFiles,
    name: str,
    on: datetime.date,
    unpublished: Path | None = None,
    unconfined: bool = False,
) -> DefenceRun:
    """One run of a defence, dated `on`: all images answered, its rate measured.

    `unconfined`: a command may run where this machine cannot confine it.

    Raises CleansetError for a defence that fails, and for an image or a file of it that is missing or has changed.
    """
    defence, objects = files.defences[name], Objects(contest)
    accepted = any(each.defence == name and each.date <= on for each in files.accepted)
    if defence.command is not None and not accepted:
        raise CleansetError(f"{name}: a command that the board has not accepted by {on}; expected its acceptance")
    groups, edition = files.rules.groups(), Edition(contest / ".." / "..")
    images = {image.sha256 for _, image in submitted_images(files.submissions)}
    known, submitted = eligibility_list(edition, groups), {sha: objects.path(sha) for sha in sorted(images)}
    hidden = checked_list(contest, files.rules, unpublished)
    for sha in sorted(hidden.keys() & (known.keys() | submitted.keys())):
        raise CleansetError(
            f"{hidden[sha].path}: a published image; expected only unpublished ones in the unpublished list: remove it"
        )
    paths = {sha: each.path for sha, each in (hidden | known).items()} | submitted
    for sha, path in paths.items():
        # before the defence runs, which may take long
        if not path.is_file() or sha256(path.read_bytes()) != sha:
            raise CleansetError(f"{path}: missing or changed; expected SHA-256 {sha}: run cleanset contest check")
    answer: ModelDefence | CommandDefence
    if defence.model is not None:
        answer = ModelDefence(edition, defence.model, groups)
    else:
        answer = CommandDefence(objects, defence, groups.names, unconfined)
    before = perf_counter()
    answers, confidences = answer(paths)
    # making the images that a command is given takes time that is not the command's
    minutes = (perf_counter() - before - answer.preparation_seconds) / 60
    if defence.model is not None and all(answers[sha] == ABSTAIN for sha in known):
        raise CleansetError(
            f"{name}: threshold {defence.model.threshold:g} abstains on everything, all {len(known)} images of the "
            "eligibility list; expected a lower one: cleanset contest threshold finds one"
        )
    flags, of_hidden = (_flags(images, answers, confidences) for images in (known, hidden))
    figures = eligibility(*of_hidden).model_dump() | {"list_sha256": list_digest(hidden)} if hidden else None
    return DefenceRun(
        defence=name,
        date=on,
        model=answer.digest,
        confined=answer.is_confined,
        images_per_minute=round(len(paths) / minutes, 1),
        eligibility=eligibility(*flags),
        unpublished=None if figures is None else UnpublishedFigures(**figures),
        coverage=[list(step) for step in coverage_steps(*flags)],
        signs=answer.signs(known, paths) if isinstance(answer, ModelDefence) else None,
        # of the lists only counts are kept: one of them is not published
        answers={sha: answers[sha] for sha in submitted},
    )


def _flags(
    known: Mapping[str, EligibilityImage], answers: Mapping[str, str], confidences: Mapping[str, float] | None
) -> tuple[Flags, Flags, Floats | None]:
    """For each image: is the answer correct, does the defence abstain, and with which confidence (if known)."""
    correct = np.array([answers[sha] == each.group for sha, each in known.items()])
    abstains = np.array([answers[sha] == ABSTAIN for sha in known])
    return correct, abstains, None if confidences is None else np.array([confidences[sha] for sha in known])


def different_answers(contest: Path, files: ContestFiles) -> list[str]:
    """A line on each defence, whose answers to the images of all its runs are computed again.

    Raises CleansetError for a model that gives an image another answer than a run has.
    """
    edition, groups, objects, lines = Edition(contest / ".." / ".."), files.rules.groups(), Objects(contest), []
    for name, defence in sorted(files.defences.items()):
        runs = files.runs_by_defence()[name]
        if defence.model is None:
            lines.append(f"{name}: {len(runs)} runs of a command, not recomputable")
            continue
        paths = {sha: objects.path(sha) for run in runs for sha in run.answers if objects.read(sha)}
        answers = ModelDefence(edition, defence.model, groups)(paths)[0] if paths else {}
        for run in runs:
            for sha, given in sorted(run.answers.items()):
                if answers[sha] != given:
                    raise CleansetError(
                        f"run of {name} on {run.date}: {sha[:12]}… is {given}; expected {answers[sha]}, as computed: "
                        "void the run"
                    )
        lines.append(f"{name}: {len(runs)} runs with the answers that were computed again")
    return lines


def unpublished_yaml(rules: ContestRules, folder: Path) -> str:
    """The line of contest.yaml that names an unpublished list, a folder with one of images for each group."""
    found = unpublished_list(folder, rules.groups())
    return f'unpublished: "{list_digest(found)}"   # {len(found)} images'


def run(contest: Path, role: str, kind: Confidence, coverage: float, ranking: Ranking) -> str:
    """Compute the model's answers to the eligibility list, and return the threshold for a coverage as text."""
    check_known("confidence", kind, CONFIDENCES)
    check_known("ranking", ranking, RANKINGS)
    check_coverage(coverage)
    edition, groups = Edition(contest / ".." / ".."), read_state(contest).rules.groups()
    known = eligibility_list(edition, groups)
    # any threshold will do: predictions() does not abstain
    model = ModelDefence(edition, ModelOfEdition(role=role, confidence=kind, threshold=0.0), groups)
    found = model.predictions({sha: each.path for sha, each in known.items()})
    images = [known[sha] for sha in found["image_id"]]
    correct = found["group"].map(lambda group: groups.names[group]).to_numpy() == [each.group for each in images]
    names = [f"{each.path.parent.name}/{each.path.name}" for each in images]
    return threshold_text(f"{role}: {kind}", found["confidence"].to_numpy(), correct, names, coverage, ranking)


def threshold_text(
    model: str, confidence: Floats, correct: Flags, names: Sequence[str], coverage: float, ranking: Ranking
) -> str:
    """The threshold for a coverage of 0 to 1, accuracy by ranking there and at full coverage, confident mistakes.

    Raises CleansetError as `coverage.threshold` does.
    """
    least = threshold(confidence, coverage, ranking)
    answered = f"{(confidence >= least).sum()} of {len(names)} images of the eligibility list"
    lines = [f"{model} of at least {least!r} answers {answered}"]
    for each in RANKINGS:
        for share in (coverage, 1.0):
            at = at_coverage(confidence, correct, names, share, each)
            accuracy = "no accuracy" if at.accuracy is None else f"accuracy {at.accuracy:.4f}"
            counts = f"{at.mistakes} mistakes among {at.covered} images"
            lines.append(f"{each}, {100 * share:g} % coverage: {accuracy}, {counts}")
    mistakes = confident_mistakes(confidence, correct, names, coverage, ranking)
    return "\n".join([*lines, *(f"confident mistake: {name}" for name in mistakes)])
