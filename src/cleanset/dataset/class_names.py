"""The names of the classes, from WordNet, and the search for classes by name."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from cleanset.dataset.ilsvrc import class_table


@dataclass(frozen=True, slots=True)
class ClassName:
    """A class: `names` are its synonyms, the usual one first; `gloss` is the definition."""

    class_index: int
    wnid: str
    names: str
    gloss: str

    @property
    def name(self) -> str:
        """The usual name."""
        return self.names.partition(", ")[0]

    @property
    def others(self) -> str:
        """The other names."""
        return self.names.partition(", ")[2]

    @property
    def searched(self) -> str:
        """The text that a search looks at."""
        return f"{self.wnid} {self.names}".casefold()


@cache
def class_names() -> tuple[ClassName, ...]:
    """The 1,000 classes, by class index."""
    return tuple(ClassName(index, row.wnid, row.names, row.gloss) for index, row in enumerate(class_table()))


@cache
def label_names() -> tuple[str, ...]:
    """The names of the 1,000 classes by class index, each once, as tables and lists of labels need them.

    The usual name; where two classes share it (crane, maillot), each with its wnid: "crane (n02012849)".
    """
    shared = Counter(each.name for each in class_names())
    return tuple(each.name if shared[each.name] == 1 else f"{each.name} ({each.wnid})" for each in class_names())


def search_classes(names: Iterable[ClassName], typed: str, most: int = 12) -> list[ClassName]:
    """The classes in which every typed word occurs: as a word first, then as the beginning of one, then within."""
    words = typed.casefold().split()

    def place(each: ClassName) -> int:
        forms = (r"\b{}\b", r"\b{}", "{}")
        fits = (all(re.search(form.format(re.escape(word)), each.searched) for word in words) for form in forms)
        return next((place for place, fit in enumerate(fits) if fit), len(forms))

    hits = [each for each in names if all(word in each.searched for word in words)]
    return sorted(hits, key=lambda each: (place(each), each.class_index))[:most]
