"""The plan of a study: its settings with their defaults, the stimuli, and the list of trials for each person.

The lists are balanced, seeded, and the same on any machine. No generator is used: names are ordered by digests of the
seed and the name.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import csv_text, parse_rows
from cleanset.plumbing.files import sha256
from cleanset.plumbing.validation import AtLeastOne
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.realness.equivalence import ALPHA, BOUND, Alpha, Bound
from cleanset.studies.realness.layout import ImageLayout
from cleanset.studies.realness.plates import DEFICIENCIES, PLATE_DIGITS, Deficiency
from cleanset.studies.realness.protocol import SCALE_LABELS, SHOWN_MILLISECONDS, Protocol, ScaleName
from cleanset.studies.realness.ratings import (
    IMAGE_KINDS,
    RESTORE_FILE,
    SCALE,
    SIDES,
    TRIAL_COLUMNS,
    ImageKind,
    key_columns,
)

MAX_FAILED = 100
"""Failed searches for a swap, each through all lists, after which no more are tried."""


class StudyImage(NamedTuple):
    """An image to be rated; `source`: the id of the image that it was made from, or its own ("": not known).

    `wnid`: the class of a real image.
    """

    kind: ImageKind
    name: str
    source: str
    wnid: str = ""


@dataclass(frozen=True, slots=True)
class PlanRequest(Protocol):
    """The organiser's settings: the parts of the protocol, the sizes of a list, and the test whose power is wanted.

    `people` None: as many as the bound needs. `effect`: the difference, modified minus real, that is assumed to be
    true. `width_mm`: the width of images on every screen, in millimetres; None: whole device pixels for each pixel.
    `texts`: the file of the page's texts; None for the usual ones.
    """

    people: int | None = None
    real: AtLeastOne = 50
    modified: AtLeastOne = 50
    bound: Bound = BOUND
    alpha: Alpha = ALPHA
    power: Annotated[float, Field(ge=0.01, le=0.999)] = 0.8
    effect: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    side: int | None = None
    width_mm: Annotated[float, Field(ge=5, le=500)] | None = None
    seed: int = 0
    texts: Path | None = None


def seeded_order(names: Sequence[str], seed: int, purpose: str, step: int = 0) -> list[str]:
    """Distinct names in an order that depends on the seed, the purpose and the step, and on no other name."""
    chosen = change_seed(seed, "study", purpose, step)
    return sorted(names, key=lambda name: (image_seed(chosen, name), name))


def balanced_lists(names: Sequence[str], people: int, each: int, seed: int, purpose: str) -> list[list[str]]:
    """A list of `each` different names for each of `people`; the counts of two names differ by at most 1.

    A shuffled deck of all names is dealt, then the next; a person who gets the end of one deck is given names from the
    next that are not in the list yet. Raises CleansetError for fewer names than a person is shown.
    """
    if len(names) < each:
        raise CleansetError(f"the plan: {len(names)} {purpose} images; expected at least the {each} of a person")
    deck: list[str] = []
    decks = 0
    lists = []
    for _ in range(people):
        chosen = deck[:each]
        deck = deck[each:]
        if len(chosen) < each:
            following = seeded_order(names, seed, purpose, decks)
            decks += 1
            taken = set(chosen)
            chosen += [name for name in following if name not in taken][: each - len(chosen)]
            # those that the person had already stay in the new deck, so that the counts stay equal
            deck = [name for name in following if name not in set(chosen) - taken]
        lists.append(chosen)
    return lists


class _Swaps:
    """Lists of modified images by person, and how often each person sees each source."""

    def __init__(
        self,
        real: Sequence[Sequence[str]],
        modified: Sequence[Sequence[str]],
        source_of: Mapping[tuple[ImageKind, str], str],
    ) -> None:
        self.lists = [list(each) for each in modified]
        self.source = {name: source for (kind, name), source in source_of.items() if kind == "modified"}
        self.seen = [
            Counter([source_of["real", name] for name in some] + [self.source[name] for name in others])
            for some, others in zip(real, modified, strict=True)
        ]

    def separated(self) -> list[list[str]]:
        """The lists, images swapped between people so that nobody sees two images of one source.

        Only swaps of two images are tried; with few images some people still see both. The count of an image does not
        change.
        """
        failed = 0
        for person, names in enumerate(self.lists):
            for place in range(len(names)):
                failed += self.is_conflict(person, place) and not self.swap(person, place)
                # each failed search goes through all lists: with too few images they would take for ever
                if failed == MAX_FAILED:
                    return self.lists
        return self.lists

    def is_conflict(self, person: int, place: int) -> bool:
        """Whether the person sees another image of the same source."""
        source = self.source[self.lists[person][place]]
        return source != "" and self.seen[person][source] > 1

    def swap(self, person: int, place: int) -> bool:
        """Swap an image with the first one in the following lists that suits both people; False if there is none."""
        name = self.lists[person][place]
        for distance in range(1, len(self.lists)):
            other = (person + distance) % len(self.lists)
            for at, candidate in enumerate(self.lists[other]):
                if self._suits(person, candidate, name) and self._suits(other, name, candidate):
                    self._put(person, place, candidate)
                    self._put(other, at, name)
                    return True
        return False

    def _suits(self, person: int, name: str, instead_of: str) -> bool:
        source = self.source[name]
        leaving = self.source[instead_of]
        others = self.seen[person][source] - (source == leaving) if source else 0
        return others == 0 and name not in self.lists[person]

    def _put(self, person: int, place: int, name: str) -> None:
        self.seen[person][self.source[self.lists[person][place]]] -= 1
        self.seen[person][self.source[name]] += 1
        self.lists[person][place] = name


def sources_twice(lists: Sequence[Sequence[StudyImage]]) -> int:
    """Number of people who see two images of one source."""
    counts = (Counter(image.source for image in each if image.source) for each in lists)
    return sum(max(count.values(), default=0) > 1 for count in counts)


def rated_lists(images: Sequence[StudyImage], wish: PlanRequest) -> list[list[StudyImage]]:
    """The images that each person rates, in display order: real and modified ones mixed."""
    of_kind = {kind: [each.name for each in images if each.kind == kind] for kind in IMAGE_KINDS}
    by_name = {f"{each.kind} {each.name}": each for each in images}
    source_of = {(each.kind, each.name): each.source for each in images}
    people = wish.people or 0
    seed = wish.seed
    real = balanced_lists(of_kind["real"], people, wish.real, seed=seed, purpose="real")
    modified = balanced_lists(of_kind["modified"], people, wish.modified, seed=seed, purpose="modified")
    modified = _Swaps(real, modified, source_of).separated()
    lists = []
    for person, (some, others) in enumerate(zip(real, modified, strict=True)):
        names = [f"real {name}" for name in some] + [f"modified {name}" for name in others]
        lists.append([by_name[name] for name in seeded_order(names, seed, "order", person)])
    return lists


def show_counts(
    lists: Sequence[Sequence[StudyImage]], images: Sequence[StudyImage]
) -> dict[ImageKind, tuple[int, int]]:
    """By kind, the smallest and the largest number of people who see an image."""
    counts = Counter((image.kind, image.name) for each in lists for image in each)
    of_kind = {kind: [counts[each.kind, each.name] for each in images if each.kind == kind] for kind in IMAGE_KINDS}
    return {kind: (min(found), max(found)) for kind, found in of_kind.items()}


def attention_places(images: int, checks: int, seed: int, person: int) -> list[int]:
    """Indices of the images before which attention checks come: one in each of `checks` equal parts of a list."""
    edges = [part * images // checks for part in range(checks + 1)] if checks else []
    return [
        start + int(seeded_order([str(place) for place in range(max(end - start, 1))], seed, "attention", person)[0])
        for start, end in pairwise(edges)
    ]


# 64 bits: among the thousands of stimuli of a study no two names are equal
NAME_DIGITS = 16
SCALE_TEXTS: Mapping[ScaleName, str] = {"surely": "scale", "definitely": "scale_definitely"}
"""The text of the page with the words of each scale."""
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
class Plate:
    """A plate of colour vision."""

    stimulus: str
    digit: str
    deficiency: Deficiency


@dataclass(frozen=True, slots=True)
class Trial:
    """One step of a list."""

    kind: str
    """image, attention, pair or plate; never reveals which image is real."""

    stimulus: str
    file: str = ""
    """The image or plate, or the left one of a pair; empty for an attention check."""

    file_right: str = ""
    """The right image of a pair."""

    choose: str = ""
    """The answer that an attention check asks for."""

    def data(self) -> dict[str, str]:
        """The trial, for the page, where an attention check has the answer's place in the scale."""
        content = {"kind": self.kind, "stimulus": self.stimulus}
        if self.kind == "pair":
            return content | {"left": self.file, "right": self.file_right}
        if self.kind == "attention":
            labels = next(each for each in SCALE_LABELS.values() if self.choose in each)
            return content | {"choose": str(labels.index(self.choose))}
        return content | {"file": self.file}


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """All stimuli and lists of a study. `shown`: by kind, the smallest and largest number of lists with an image."""

    images: tuple[StudyImage, ...]
    pairs: tuple[ComprehensionPair, ...]
    lists: tuple[tuple[Trial, ...], ...]
    shown: dict[ImageKind, tuple[int, int]]
    sources_twice: int
    seed: int
    plates: tuple[Plate, ...] = ()
    example: StudyImage | None = None
    """The real image whose edited copies explain "modified", if there are any."""

    def stimulus(self, image: StudyImage) -> str:
        """The name of an image's stimulus."""
        return stimulus_name(self.seed, image.kind, image.name)


def stimulus_name(seed: int, *parts: str) -> str:
    """The name of a stimulus: digits that reveal nothing without the seed."""
    return sha256("\n".join((str(seed), *parts)).encode())[:NAME_DIGITS]


def make_plan(images: Sequence[StudyImage], wish: PlanRequest) -> StudyPlan:
    """The plan for these images. Raises CleansetError for fewer images of a kind than a person is shown."""
    lists = rated_lists(images, wish)
    seed = wish.seed
    pairs = _pairs([each for each in images if each.kind == "real"], wish.pairs * PAIRS_FOR_EACH, seed)
    plates = _plates(wish.plates, seed)
    trials = tuple(
        (
            *_plate_trials(plates, seed, person),
            *_pair_trials(pairs, chosen, wish.pairs, seed=seed, person=person),
            *_mixed(chosen, wish, person),
        )
        for person, chosen in enumerate(lists)
    )
    return StudyPlan(
        images=tuple(images),
        pairs=tuple(pairs),
        plates=tuple(plates),
        lists=trials,
        shown=show_counts(lists, images),
        sources_twice=sources_twice(lists),
        seed=seed,
        example=_example(images, lists, pairs, seed) if wish.explanation == "examples" else None,
    )


def _example(
    images: Sequence[StudyImage],
    lists: Sequence[Sequence[StudyImage]],
    pairs: Sequence[ComprehensionPair],
    seed: int,
) -> StudyImage:
    """A real image for the examples: one that nobody rates, and that no pair has, if there is one."""
    real = {each.name: each for each in images if each.kind == "real"}
    rated = {each.name for chosen in lists for each in chosen if each.kind == "real"}
    paired = {each.image.name for each in pairs}
    order = seeded_order(list(real), seed, "example")
    return real[min(order, key=lambda name: (name in rated, name in paired))]


def example_file(seed: int, image: StudyImage, edit: str) -> str:
    """The file of the page with the copy of the example's image to which an edit was made; "" is the image itself."""
    return f"{stimulus_name(seed, 'example', image.name, edit)}.png"


def _plates(count: int, seed: int) -> list[Plate]:
    """Plates for both deficiencies in turn, with as many different digits as there are."""
    digits = seeded_order(PLATE_DIGITS, seed, "digits")
    chosen = [(digits[place % len(digits)], DEFICIENCIES[place % 2], str(place)) for place in range(count)]
    return [
        Plate(stimulus_name(seed, "plate", digit, deficiency, place), digit, deficiency)
        for digit, deficiency, place in chosen
    ]


def _plate_trials(plates: Sequence[Plate], seed: int, person: int) -> list[Trial]:
    names = [each.stimulus for each in plates]
    return [Trial("plate", name, f"{name}.png") for name in seeded_order(names, seed, "plates", person)]


def _pairs(real: Sequence[StudyImage], count: int, seed: int) -> list[ComprehensionPair]:
    by_name = {each.name: each for each in real}
    pairs = []
    sides = seeded_order(SIDES, seed, "side")
    for place, name in enumerate(seeded_order(list(by_name), seed, "pairs")[:count]):
        files = [f"{stimulus_name(seed, 'pair', name, part)}.png" for part in ("plain", "modified")]
        side = sides[place % 2]
        left, right = files if side == "right" else files[::-1]
        pairs.append(
            ComprehensionPair(
                stimulus=stimulus_name(seed, "pair", name), image=by_name[name], left=left, right=right, modified=side
            )
        )
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


def _mixed(chosen: Sequence[StudyImage], wish: PlanRequest, person: int) -> list[Trial]:
    """The images in their order, and the attention checks between them."""
    seed = wish.seed
    places = attention_places(len(chosen), wish.attention, seed, person)
    trials = []
    for place, image in enumerate(chosen):
        for check in (number for number, at in enumerate(places) if at == place):
            ends = seeded_order([str(SCALE[0]), str(SCALE[-1])], seed, "attention answer", person)
            # both ends in turn: whoever always gives the same answer fails a check
            trials.append(attention(seed, int(ends[check % 2]), wish.scale))
        name = stimulus_name(seed, image.kind, image.name)
        trials.append(Trial("image", name, f"{name}.png"))
    return trials


def attention(seed: int, rating: int, scale: ScaleName = "surely") -> Trial:
    """The attention check that asks for this rating, in the words of a scale."""
    label = SCALE_LABELS[scale][SCALE.index(rating)]
    return Trial("attention", stimulus_name(seed, "attention", str(rating)), choose=label)


def key_csv(plan: StudyPlan, sha256_of: dict[tuple[ImageKind, str], str], classes: ClassTable) -> str:
    """The key to the stimuli, with all correct answers; people who rate must not have it."""
    rows: list[tuple[str, ...]] = [
        (plan.stimulus(each), each.kind, each.name, "", each.wnid, sha256_of[each.kind, each.name])
        for each in plan.images
    ]
    rows += [(pair.stimulus, "pair", pair.image.name, pair.modified, "", "") for pair in plan.pairs]
    rows += [(plate.stimulus, "plate", "", plate.digit, "", "") for plate in plan.plates]
    rows += [(attention(plan.seed, end).stimulus, "attention", "", str(end), "", "") for end in (SCALE[0], SCALE[-1])]
    return csv_text(key_columns(classes.key_column), sorted(rows))


def read_trials(text: str, where: str) -> dict[int, list[Trial]]:
    """The trials of each list by its number, from a table of `trials_csv`. Raises CleansetError for anything else."""
    found: dict[int, list[Trial]] = {}
    for _, (number, trial) in parse_rows(text, TRIAL_COLUMNS, _listed, where, remedy=RESTORE_FILE, is_own=True):
        found.setdefault(number, []).append(trial)
    return found


def _listed(cells: Mapping[str, str]) -> tuple[int, Trial]:
    return int(cells["list"]), Trial(**{column: cells[column] for column in TRIAL_COLUMNS[2:]})


def trials_csv(plan: StudyPlan) -> str:
    """The lists as a table for survey tools: a line for each trial, nothing that reveals which image is real."""
    return csv_text(
        TRIAL_COLUMNS,
        [
            (number, position, each.kind, each.stimulus, each.file, each.file_right, each.choose)
            for number, trials in enumerate(plan.lists, start=1)
            for position, each in enumerate(trials, start=1)
        ],
    )


def page_data(
    texts: Mapping[str, object],
    layout: ImageLayout,
    protocol: Protocol,
    examples: Sequence[str] = (),
    shown_milliseconds: int = SHOWN_MILLISECONDS,
) -> dict[str, object]:
    """The data of every page: its texts, the ratings, the time before an answer, the layout, parts of the protocol.

    `examples`: the files of the explanation.
    """
    return {
        "texts": texts,
        "scale": SCALE,
        "shown_milliseconds": shown_milliseconds,
        **layout.data(),
        "protocol": {
            "scale": SCALE_TEXTS[protocol.scale],
            "revision": protocol.revision,
            "pairs": protocol.pairs,
            "plates": protocol.plates,
            "min_correct_pairs": protocol.min_correct_pairs,
        },
        "examples": list(examples),
    }
