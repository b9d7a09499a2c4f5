"""Folders whose names mean the splits of a dataset, in any spelling, case and separators, and not its classes.

A class may well be called `train`, `test tube` or `valley`. Splits come in pairs: `train` and `test`, `seg_train` and
`seg_test`, `fold1` and `fold2`; or with a word for data, such as `Training Data`. What is in the folders does not
matter: a split with a class more than another, or without class folders, is a split as well.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from cleanset.plumbing.validation import normal_text

_ROLES = {
    "train": ("train", "training", "trn", "trainval", "traindev", "训练", "训练集"),
    "test": ("test", "tests", "testing", "tst", "测试", "测试集"),
    "val": ("val", "valid", "validation", "validate", "dev", "devel", "eval", "evaluation", "验证", "验证集"),
    "holdout": ("holdout", "heldout"),
    "pred": ("pred", "predict", "prediction", "predictions"),
    "unlabeled": ("unlabeled", "unlabelled"),
    "fold": ("fold", "folds", "kfold", "split", "cv"),
    "query": ("query", "queries", "probe"),
    "gallery": ("gallery",),
    "support": ("support",),
}
_ROLE_OF = {word: role for role, words in _ROLES.items() for word in words}
_DATA = (
    "set", "sets", "data", "dataset", "datasets", "image", "images", "img", "imgs", "photo", "photos", "picture",
    "pictures", "pics", "pic", "sample", "samples", "split", "folder", "dir", "files", "subset", "partition",
)  # fmt: skip
"""Words for data, which may be next to that of a split, or end it: `trainset`."""
_ALONE = frozenset({"test", "testing", "validation", "holdout", "heldout"})
"""Words for a split next to any name: nobody calls a class `test`."""
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_GLUED = re.compile(rf"({'|'.join(sorted(_ROLE_OF, key=len, reverse=True))})({'|'.join(_DATA)})")
_APART = re.compile(r"\b(hold|held)[\W_]*out")


@dataclass(frozen=True, slots=True)
class _Split:
    """A name that may mean a split."""

    name: str
    role: str
    numbers: tuple[str, ...]
    """Numbers, and letters by themselves: `fold_01` has 01, `trainA` has a."""

    others: tuple[str, ...]
    """The other words in it, but those for data: `seg_train` has seg."""

    is_certain: bool
    """Whether it means a split next to any other name."""


def split_names(names: Iterable[str]) -> list[str]:
    """Those of the names of folders in a folder that mean splits, sorted; empty if they can be classes."""
    by_others: dict[tuple[str, ...], list[_Split]] = defaultdict(list)
    for name in names:
        if (split := _parsed(name)) is not None:
            by_others[split.others].append(split)
    found: list[str] = []
    for alike in by_others.values():
        kinds = {(each.role, each.numbers) for each in alike}
        if len(kinds) > 1 or any(each.is_certain for each in alike):
            found += [each.name for each in alike]
    return sorted(found)


def _parsed(name: str) -> _Split | None:
    """The parts of a name that has exactly one word for a split."""
    text = _APART.sub(r"\1out", _CAMEL.sub(" ", normal_text(name)).lower())
    words: list[str] = []
    for word in _WORDS.findall(text):
        glued = _GLUED.fullmatch(word)
        words += glued.groups() if glued else [word]
    # in "train split" the word for a split is train
    roles = [word for word in words if word in _ROLE_OF]
    telling = [word for word in roles if word not in _DATA] or roles
    if len(telling) != 1:
        return None
    (word,) = telling
    rest = [each for each in words if each != word]
    numbers = tuple(each for each in rest if each.isdecimal() or (len(each) == 1 and each.isascii()))
    data = [each for each in rest if each in _DATA]
    others = tuple(each for each in rest if each not in numbers and each not in data)
    is_certain = not others and (word in _ALONE or (bool(data) and _ROLE_OF[word] in ("train", "test", "val")))
    return _Split(name=name, role=_ROLE_OF[word], numbers=numbers, others=others, is_certain=is_certain)
