"""The lists of images, one for each person: balanced, seeded, the same on any machine.

No generator is used: names are ordered by digests of the seed and the name.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cleanset.errors import CleansetError
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.realness.ratings import KINDS, ImageKind

MAX_FAILED = 100
"""Failed searches for a swap, each through all lists, after which no more are tried."""


@dataclass(frozen=True, slots=True)
class StudyImage:
    """An image to be rated; `source`: the id of the image that it was made from, or its own ("": not known)."""

    kind: ImageKind
    name: str
    source: str


@dataclass(frozen=True, slots=True)
class ListSizes:
    """The number of people, and the numbers of images, checks and pairs that each is shown."""

    people: int
    real: int = 50
    modified: int = 50
    attention: int = 3
    pairs: int = 4


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


def separate_sources(
    real: Sequence[Sequence[str]], modified: Sequence[Sequence[str]], source_of: Mapping[tuple[ImageKind, str], str]
) -> list[list[str]]:
    """The lists of modified images, swapped between people so that nobody sees two images of one source.

    Only swaps of two images are tried; with few images some people still see both. The count of an image does not
    change.
    """
    swaps = _Swaps(real, modified, source_of)
    failed = 0
    for person in range(len(modified)):
        for place in range(len(modified[person])):
            failed += swaps.is_conflict(person, place) and not swaps.swap(person, place)
            # each failed search goes through all lists: with too few images they would take for ever
            if failed == MAX_FAILED:
                return swaps.lists
    return swaps.lists


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
        source, leaving = self.source[name], self.source[instead_of]
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


def rated_lists(images: Sequence[StudyImage], sizes: ListSizes, seed: int) -> list[list[StudyImage]]:
    """The images that each person rates, in the order in which they are shown: real and modified ones mixed."""
    of_kind = {kind: [each.name for each in images if each.kind == kind] for kind in KINDS}
    by_name = {(each.kind, each.name): each for each in images}
    source_of = {key: each.source for key, each in by_name.items()}
    real = balanced_lists(of_kind["real"], sizes.people, sizes.real, seed, "real")
    modified = balanced_lists(of_kind["modified"], sizes.people, sizes.modified, seed, "modified")
    modified = separate_sources(real, modified, source_of)
    lists = []
    for person, (some, others) in enumerate(zip(real, modified, strict=True)):
        names = [f"real {name}" for name in some] + [f"modified {name}" for name in others]
        keys = (name.split(" ", 1) for name in seeded_order(names, seed, "order", person))
        lists.append([by_name[kind, name] for kind, name in keys])  # type: ignore[index]
    return lists


def show_counts(
    lists: Sequence[Sequence[StudyImage]], images: Sequence[StudyImage]
) -> dict[ImageKind, tuple[int, int]]:
    """By kind, the smallest and the largest number of people who see an image."""
    counts = Counter((image.kind, image.name) for each in lists for image in each)
    of_kind = {kind: [counts[each.kind, each.name] for each in images if each.kind == kind] for kind in KINDS}
    return {kind: (min(found), max(found)) for kind, found in of_kind.items()}


def attention_places(images: int, checks: int, seed: int, person: int) -> list[int]:
    """Indices of the images before which attention checks come: one in each of `checks` equal parts of a list."""
    edges = [part * images // checks for part in range(checks + 1)] if checks else []
    return [
        start + int(seeded_order([str(place) for place in range(max(end - start, 1))], seed, "attention", person)[0])
        for start, end in pairwise(edges)
    ]
