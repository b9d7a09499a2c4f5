"""Check the files of an attack once more with the model loaded anew in a fresh process, in another order.

A model that remembers earlier queries starts with an empty memory there, so the verdicts of the fresh process count:
everyone else will get the same answers to these files.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Pixels
from cleanset.measure.consistency import MAX_CHECKED, batches_to_ask
from cleanset.scoring.decoding import pixels_of, worker_processes
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import arithmetic
from cleanset.studies.attacks.base import to_unit
from cleanset.studies.attacks.targets import Judge, Logits, Searching, pixels_of_png
from cleanset.studies.attacks.warnings import Seen, changed_answers, rounded_dependence
from cleanset.studies.robustness.images import SetImages, StudyFile
from cleanset.vocabulary import ClassTable, classes_in_use, use_classes

Answers = Mapping[tuple[str, str], Logits]
"""Logits by attack and file."""
CLEAN = ""
"""In place of an attack's name: the image itself."""


class Asked(NamedTuple):
    """An image, by its file in the set and the attack that changed it, its PNG, and the seed of a random model."""

    attack: str
    file: str
    png: Path
    seed: int


@dataclass(frozen=True, slots=True)
class FreshModel:
    """A function that loads the model anew, and how it is computed; `files`: the images of the set, by file."""

    load: Callable[[], LoadedModel]
    how: Searching
    files: Mapping[str, StudyFile]

    def answers(self, parts: Sequence[Sequence[Asked]]) -> tuple[dict[tuple[str, str], Logits], Seen | None]:
        """The logits of all images, by attack and file, and the sign that they depend on more than the image.

        Each part is answered in a process of its own. Raises CleansetError for a model that cannot be loaded there.
        """
        found, signs = dict[tuple[str, str], Logits](), list[Seen]()
        with ProcessPoolExecutor(1, worker_processes([__name__]), max_tasks_per_child=1) as pool:
            try:
                for answers, seen in pool.map(partial(_answered, self, classes_in_use(), Path.cwd()), parts):
                    found |= answers
                    signs += [] if seen is None else [seen]
            except BrokenProcessPool:
                raise CleansetError(
                    "the fresh process that judges the attacked files was killed; expected memory for the model once "
                    "more: run the command again on a larger machine"
                ) from None
        return found, signs[0] if signs else None


def _answered(
    fresh: FreshModel, classes: ClassTable, folder: Path, asked: Sequence[Asked]
) -> tuple[dict[tuple[str, str], Logits], Seen | None]:
    os.chdir(folder)
    use_classes(classes)
    model, how, files = fresh.load(), fresh.how, SetImages(fresh.files)

    def pixels(each: Asked) -> Pixels:
        if each.attack == CLEAN:
            return pixels_of(each.file, files, model.preprocessing)
        return pixels_of_png(each.png.read_bytes())

    # neither the order of the attacks nor that of their images; an image after what attacks have made of it
    ordered = sorted(asked, key=_place)
    judge = Judge(model, how.device, precision=how.precision)
    found = {(each.attack, each.file): judge.logits([pixels(each)], [each.seed])[0] for each in ordered}
    few = ordered[: min(how.batch_size, MAX_CHECKED)]
    network = how.network(model.network)
    batches, answers = [[few[number] for number in batch] for batch in batches_to_ask(len(few))], []
    with arithmetic(how.precision), torch.inference_mode():
        for batch in batches:
            logits = network(to_unit([pixels(each) for each in batch], network))
            answers.append(np.asarray(logits.double().cpu().numpy()))
    if not np.array_equal(answers[0], answers[1]):
        # a random model, which is seeded for each file: random_answers is its sign
        return found, None
    alone = np.stack([found[each.attack, each.file] for each in few])
    return found, rounded_dependence(answers, how.precision, alone)


def _place(each: Asked) -> tuple[bool, bytes]:
    return each.attack == CLEAN, sha256(f"{each.file} {each.attack}".encode()).digest()


def other_answers(stored: Answers, anew: Answers, verdicts: int) -> Seen | None:
    """The sign that files get another answer from the model loaded anew; `verdicts`: how many another verdict, too."""
    if not (changed := changed_answers([np.stack([each[key] for key in stored]) for each in (stored, anew)])):
        return None
    return Seen(
        "depends_on_others",
        f"{changed} of {len(stored)} files get another answer from the model loaded anew, {verdicts} of them another "
        "verdict, which counts",
    )
