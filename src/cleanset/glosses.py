"""The name and the gloss of each class, as WordNet gives them."""

from dataclasses import dataclass
from functools import cache

from cleanset.ilsvrc import timm_info, wnids


@dataclass(frozen=True, slots=True)
class Gloss:
    """`names` are a class's synonyms, the usual one first: "bald eagle, American eagle, Haliaeetus leucocephalus"."""

    names: str
    definition: str

    @property
    def name(self) -> str:
        """The usual one."""
        return self.names.split(",")[0]


@cache
def glosses() -> dict[str, Gloss]:
    """Names and definition of each of the 1,000 classes, by wnid (from timm's tables)."""
    names, definitions = (
        dict(
            line.split("\t", 1) for line in timm_info(f"imagenet_synset_to_{what}.txt").read_text("utf-8").splitlines()
        )
        for what in ("lemma", "definition")
    )
    return {wnid: Gloss(names[wnid], definitions[wnid]) for wnid in wnids()}
