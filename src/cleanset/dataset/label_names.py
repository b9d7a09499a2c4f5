"""A name of its own for each class, as tables and lists of labels need it."""

from collections import Counter
from functools import cache

from cleanset.dataset.class_names import class_names


@cache
def label_names() -> tuple[str, ...]:
    """The names of the 1,000 classes, by class index, each once.

    The usual name; where two classes share it (crane, maillot), each with its wnid: "crane (n02012849)".
    """
    shared = Counter(each.name for each in class_names())
    return tuple(each.name if shared[each.name] == 1 else f"{each.name} ({each.wnid})" for each in class_names())
