"""The plan of a study: the stimuli, and the list of trials that each person is shown."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cleanset.files import sha256
from cleanset.studies.realness.lists import (
    ListSizes,
    StudyImage,
    attention_places,
    rated_lists,
    seeded_order,
    show_counts,
    sources_twice,
)
from cleanset.studies.realness.ratings import KEY_COLUMNS, LABELS, SCALE, SIDES, ImageKind

NAME_DIGITS = 16
TRIAL_COLUMNS = ("list", "position", "kind", "stimulus", "file", "file_right", "choose")
PAIRS_FOR_EACH = 3
"""Comprehension pairs made for each one in a list, so that most people get pairs of images that they do not rate."""


@dataclass(frozen=True, slots=True)
class ComprehensionPair:
    """A comprehension pair: an image and an obviously modified copy; `modified`: the side of the copy."""

    stimulus: str
    image: StudyImage
    left: str
    right: str
    modified: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One step of a list. `kind` is image, attention or pair, and never reveals what is real.

    `file`: the image, or the left one of a pair. `choose`: the answer that an attention check asks for.
    """

    kind: str
    stimulus: str
    file: str = ""
    file_right: str = ""
    choose: str = ""


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """All stimuli and lists of a study. `shown`: by kind, the smallest and largest number of lists with an image."""

    images: tuple[StudyImage, ...]
    pairs: tuple[ComprehensionPair, ...]
    lists: tuple[tuple[Trial, ...], ...]
    shown: dict[ImageKind, tuple[int, int]]
    sources_twice: int
    seed: int

    def stimulus(self, image: StudyImage) -> str:
        """The name of an image's stimulus."""
        return stimulus_name(self.seed, image.kind, image.name)


def stimulus_name(seed: int, *parts: str) -> str:
    """The name of a stimulus: digits that reveal nothing without the seed."""
    return sha256("\n".join((str(seed), *parts)).encode())[:NAME_DIGITS]


def make_plan(images: Sequence[StudyImage], sizes: ListSizes, seed: int) -> StudyPlan:
    """The plan for these images. Raises CleansetError for fewer images of a kind than a person is shown."""
    lists = rated_lists(images, sizes, seed)
    pairs = _pairs([each for each in images if each.kind == "real"], sizes.pairs * PAIRS_FOR_EACH, seed)
    trials = tuple(
        (*_pair_trials(pairs, chosen, sizes.pairs, seed, person), *_mixed(chosen, sizes.attention, seed, person))
        for person, chosen in enumerate(lists)
    )
    return StudyPlan(tuple(images), tuple(pairs), trials, show_counts(lists, images), sources_twice(lists), seed)


def _pairs(real: Sequence[StudyImage], count: int, seed: int) -> list[ComprehensionPair]:
    by_name = {each.name: each for each in real}
    pairs = []
    sides = seeded_order(SIDES, seed, "side")
    for place, name in enumerate(seeded_order(list(by_name), seed, "pairs")[:count]):
        files = [f"{stimulus_name(seed, 'pair', name, part)}.png" for part in ("plain", "modified")]
        side = sides[place % 2]
        left, right = files if side == "right" else files[::-1]
        pairs.append(ComprehensionPair(stimulus_name(seed, "pair", name), by_name[name], left, right, side))
    return pairs


def _pair_trials(
    pairs: Sequence[ComprehensionPair], chosen: Sequence[StudyImage], count: int, seed: int, person: int
) -> list[Trial]:
    """Pairs for one person, those of images that the person does not rate first, and both sides equally often.

    Whoever always chooses one side is then wrong in half of the pairs.
    """
    seen = {each.source for each in chosen if each.source} | {each.name for each in chosen if each.kind == "real"}
    by_name = {each.stimulus: each for each in pairs}
    order = [by_name[name] for name in seeded_order(list(by_name), seed, "pairs of a list", person)]
    # the person's first side has the odd pair
    sides = seeded_order(SIDES, seed, "first side", person)
    counts: Counter[tuple[bool, str]] = Counter()
    ranks = {}
    for pair in order:
        group = (pair.image.name in seen or pair.image.source in seen, pair.modified)
        ranks[pair.stimulus] = (group[0], counts[group], sides.index(pair.modified))
        counts[group] += 1
    best = set(sorted(ranks, key=ranks.__getitem__)[:count])
    # in the drawn order: in that of the ranks the sides would alternate
    return [Trial("pair", pair.stimulus, pair.left, pair.right) for pair in order if pair.stimulus in best]


def _mixed(chosen: Sequence[StudyImage], checks: int, seed: int, person: int) -> list[Trial]:
    """The images in their order, and the attention checks between them."""
    places = attention_places(len(chosen), checks, seed, person)
    trials = []
    for place, image in enumerate(chosen):
        for check in (number for number, at in enumerate(places) if at == place):
            ends = seeded_order([str(SCALE[0]), str(SCALE[-1])], seed, "attention answer", person)
            # both ends in turn: whoever always gives the same answer fails a check
            trials.append(attention(seed, int(ends[check % 2])))
        name = stimulus_name(seed, image.kind, image.name)
        trials.append(Trial("image", name, f"{name}.png"))
    return trials


def attention(seed: int, rating: int) -> Trial:
    """The attention check that asks for this rating."""
    return Trial("attention", stimulus_name(seed, "attention", str(rating)), choose=LABELS[SCALE.index(rating)])


def key_csv(
    plan: StudyPlan, wnid_of: dict[tuple[ImageKind, str], str], sha256_of: dict[tuple[ImageKind, str], str]
) -> str:
    """The key to the stimuli, with all correct answers; people who rate must not have it."""
    rows: list[tuple[str, ...]] = [
        (plan.stimulus(each), each.kind, each.name, "", wnid_of.get((each.kind, each.name), ""),
         sha256_of[each.kind, each.name])
        for each in plan.images
    ]  # fmt: skip
    rows += [(pair.stimulus, "pair", pair.image.name, pair.modified, "", "") for pair in plan.pairs]
    rows += [(attention(plan.seed, end).stimulus, "attention", "", str(end), "", "") for end in (SCALE[0], SCALE[-1])]
    return _csv(KEY_COLUMNS, sorted(rows))


def trials_csv(plan: StudyPlan) -> str:
    """The lists as a table for survey tools: a line for each trial, nothing that reveals what is real."""
    return _csv(
        TRIAL_COLUMNS,
        [
            (number, position, each.kind, each.stimulus, each.file, each.file_right, each.choose)
            for number, trials in enumerate(plan.lists, start=1)
            for position, each in enumerate(trials, start=1)
        ],
    )


def page_data(plan: StudyPlan) -> dict[str, Any]:
    """The data of the page: the scale, and the trials of each list."""
    return {
        "scale": [{"rating": rating, "label": label} for rating, label in zip(SCALE, LABELS, strict=True)],
        "lists": [[_trial(each) for each in trials] for trials in plan.lists],
    }


def _trial(trial: Trial) -> dict[str, str]:
    content = {"kind": trial.kind, "stimulus": trial.stimulus}
    if trial.kind == "pair":
        return content | {"left": trial.file, "right": trial.file_right}
    return content | ({"choose": trial.choose} if trial.kind == "attention" else {"file": trial.file})


def _csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
