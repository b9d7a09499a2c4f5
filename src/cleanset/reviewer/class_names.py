"""What the classes are called, from timm's tables of WordNet, and finding one by what a person types."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cleanset.ilsvrc import timm_info, wnids


@dataclass(frozen=True, slots=True)
class ClassName:
    """A class: `name` is the first of its lemmas, `others` the rest, `gloss` the synset's definition."""

    class_index: int
    wnid: str
    name: str
    others: str
    gloss: str

    @property
    def searched(self) -> str:
        """What a search looks at."""
        return f"{self.wnid} {self.name}, {self.others}".casefold()


def class_names() -> list[ClassName]:
    """The 1,000 classes, by class index."""
    lemmas, glosses = _table("imagenet_synset_to_lemma.txt"), _table("imagenet_synset_to_definition.txt")
    names = []
    for index, wnid in enumerate(wnids()):
        name, _, others = lemmas[wnid].partition(", ")
        names.append(ClassName(index, wnid, name, others, glosses[wnid]))
    return names


def found(names: Iterable[ClassName], typed: str, most: int = 12) -> list[ClassName]:
    """The classes in which every typed word occurs: as a word first, then as the beginning of one, then within."""
    words = typed.casefold().split()

    def place(each: ClassName) -> int:
        forms = (r"\b{}\b", r"\b{}", "{}")
        fits = (all(re.search(form.format(re.escape(word)), each.searched) for word in words) for form in forms)
        return next((place for place, fit in enumerate(fits) if fit), len(forms))

    hits = [each for each in names if all(word in each.searched for word in words)]
    return sorted(hits, key=lambda each: (place(each), each.class_index))[:most]


def _table(name: str) -> dict[str, str]:
    lines = timm_info(name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)
