"""The answers of a model loaded again in a fresh process, which has seen none of the queries of an attack.

If bubblewrap is installed, files that the model's code wrote to the home, working and temporary folders since it was
attacked are hidden, too. A network service that remembers queries is not detected.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cleanset.errors import CleansetError
from cleanset.evaluation.given_model import can_be_sent
from cleanset.evaluation.sets import ImageFile, SetImages
from cleanset.images.preprocessing import PixelPlanes
from cleanset.plumbing.files import sha256
from cleanset.plumbing.interpreter import code_command
from cleanset.scoring.consistency import MAX_CHECKED
from cleanset.scoring.decoding import pixels_of, worker_processes
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import arithmetic
from cleanset.studies.attacks import earlier_disk
from cleanset.studies.attacks.candidate_files import pixels_of_png
from cleanset.studies.attacks.judge import ImageLogits, Judge
from cleanset.studies.attacks.probing import answers_in_batches
from cleanset.studies.attacks.signs import SeenSign, rounded_dependence
from cleanset.studies.attacks.targets import Searching

StoredLogits = Mapping[tuple[str, str], ImageLogits]
"""Logits by attack and file."""
Answers = tuple[StoredLogits, SeenSign | None]
"""Logits, and the sign that they depend on more than the image."""
ITSELF = ""
"""In place of an attack's name: the image itself."""
_PROGRAM = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from cleanset.studies.attacks.fresh import answer
answer()
"""
_KILLED = (
    "the fresh process that judges the attacked files was killed; expected memory for the model once more: run the "
    "command again on a larger machine"
)
_EXIT_CODE_OF_KILLED = 137
"""What bubblewrap gives for a process that was killed."""


class Asked(NamedTuple):
    """An image, by its file in the set and the attack that changed it, its PNG, and the seed of a random model."""

    attack: str
    file: str
    png: Path
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshModel:
    """A function that loads the model again, and how it is computed."""

    load: Callable[[], LoadedModel]
    how: Searching
    files: Mapping[str, ImageFile]
    """The images of the set, by file."""

    attacked_at: float | None
    """When the attacks began, in seconds since 1970: what was written to the disk since is not seen; None: all is."""

    def answers(self, parts: Sequence[Sequence[Asked]]) -> Answers:
        """The logits of all images, by attack and file, and the sign that they depend on more than the image.

        Each part is answered in a process of its own. Raises CleansetError for a model that cannot be loaded there.
        """
        found = dict[tuple[str, str], ImageLogits]()
        signs = list[SeenSign]()
        for answers, seen in self._by_part(parts):
            found |= answers
            signs += [] if seen is None else [seen]
        return found, signs[0] if signs else None

    def _by_part(self, parts: Sequence[Sequence[Asked]]) -> Iterator[Answers]:
        if not can_be_sent(self.load):
            # a network of a notebook: every load is another copy
            for part in parts:
                yield answered(self, Path.cwd(), part)
            return
        pngs = {each.png.resolve().parent for part in parts for each in part if each.attack != ITSELF}
        command = None if self.attacked_at is None else earlier_disk.beginning(self.attacked_at, pngs)
        if command is not None:
            for part in parts:
                yield _on_earlier_disk(command, self, part)
            return
        with ProcessPoolExecutor(1, worker_processes([__name__]), max_tasks_per_child=1) as pool:
            try:
                yield from pool.map(partial(answered, self, Path.cwd()), parts)
            except BrokenProcessPool:
                raise CleansetError(_KILLED) from None


def _on_earlier_disk(command: Sequence[str], fresh: FreshModel, asked: Sequence[Asked]) -> Answers:
    """What `answered` returns or raises, from a process of its own that is begun by `command`."""
    # the path by itself: the rest cannot be read before the modules are found
    given = pickle.dumps(sys.path) + pickle.dumps((fresh, Path.cwd(), asked))
    done = subprocess.run([*command, *code_command(_PROGRAM)], input=given, stdout=subprocess.PIPE, check=False)
    if done.returncode < 0 or done.returncode == _EXIT_CODE_OF_KILLED:
        raise CleansetError(_KILLED)
    if done.returncode:
        raise CleansetError(
            f"the fresh process that judges the attacked files ended with exit code {done.returncode}; expected 0: see "
            "what it printed above"
        )
    found: Answers | Exception = pickle.loads(done.stdout)
    if isinstance(found, Exception):
        raise found
    return found


def answer() -> None:
    """Answer what standard input asks on standard output; what the model's code prints goes to standard error."""
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    given: tuple[FreshModel, Path, Sequence[Asked]] = pickle.load(sys.stdin.buffer)
    try:
        found: Answers | Exception = answered(*given)
    except Exception as error:
        found = error
    with os.fdopen(output, "wb") as file:
        pickle.dump(found, file)


def answered(fresh: FreshModel, folder: Path, asked: Sequence[Asked]) -> Answers:
    """The answers in this process, from the model loaded again in a working folder."""
    os.chdir(folder)
    model = fresh.load()
    how = fresh.how
    files = SetImages(fresh.files)

    def pixels(each: Asked) -> PixelPlanes:
        if each.attack == ITSELF:
            return pixels_of(each.file, files, model.preprocessing)
        return pixels_of_png(each.png.read_bytes())

    # neither the order of the attacks nor that of their images; an image after what attacks have made of it
    ordered = sorted(asked, key=_place)
    judge = Judge(model, how.device, precision=how.precision)
    found = {(each.attack, each.file): judge.logits(pixels(each), each.seed) for each in ordered}
    few = ordered[: min(how.batch_size, MAX_CHECKED)]
    network = how.network(model.network)
    with arithmetic(how.precision):
        answers = answers_in_batches(network, [pixels(each) for each in few], "inference_mode")
    if not np.array_equal(answers[0], answers[1]):
        # a random model, which is seeded for each file: random_answers is its sign
        return found, None
    alone = np.stack([found[each.attack, each.file] for each in few])
    return found, rounded_dependence(answers, how.precision, alone)


def _place(each: Asked) -> tuple[bool, str]:
    return each.attack == ITSELF, sha256(f"{each.file} {each.attack}".encode())
