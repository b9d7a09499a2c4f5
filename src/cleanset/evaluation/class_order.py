"""The order of classes where a network meets labels: how it is stated, and what is reported where another fits better.

The class indices of your own images follow the sorted keys: "0", "1", "10", "11", "2". Loaders that compare numbers
within names as numbers, such as timm's ImageFolder, give "2" the index 2.
"""

from collections.abc import Sequence

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import first_names, shown
from cleanset.statistics.formats import percent
from cleanset.statistics.numbering import OtherNumbering, other_numbering

NATURAL = "natural"
"""The order of keys in which numbers within them are compared as numbers, by name."""
STATE_IT = (
    f'a callable returns the order of its outputs as a third value: the keys of the classes, or "{NATURAL}", as '
    "cleanset docs own_model describes"
)
SHOWN_KEYS = 5
"""Class keys that a message names."""
SHOWN_MOVES = 3
"""Moved classes that a message names."""
MIN_NATURAL = 0.5
"""The order is reported as natural if at least this share of the moved classes is where that order has them."""


def order_in_words(classes: ClassTable) -> str:
    """The order of the class indices, in words."""
    return "the order of the wnids" if classes.is_imagenet else "the order of classes.tsv"


def order_statement(classes: ClassTable) -> str:
    """A sentence on the order of classes, where the keys have numbers that are sorted as text; empty if not."""
    if classes.natural_order == tuple(range(len(classes))):
        return ""
    natural = [classes.keys[index] for index in classes.natural_order]
    return (
        f"Class indices and the outputs of networks follow the sorted names: {first_names(classes.keys, SHOWN_KEYS)}. "
        f"If a network's outputs follow the numbers, {first_names(natural, SHOWN_KEYS)}, {STATE_IT}"
    )


def places_of(order: object, classes: ClassTable, where: str) -> list[int]:
    """The output of a network for each class index, of the stated `order` of its outputs.

    Raises CleansetError, naming `where`, unless it is "natural" or every key once.
    """
    if isinstance(order, str) and order == NATURAL:
        keys: Sequence[object] = [classes.keys[index] for index in classes.natural_order]
    else:
        keys = list(order) if isinstance(order, list | tuple) else [order]
    place_of = {key: place for place, key in enumerate(keys) if isinstance(key, str)}
    if len(keys) != len(classes) or place_of.keys() != classes.indices.keys():
        others = [key for key in keys if not isinstance(key, str) or key not in classes.indices]
        found = f"{len(keys):,} keys" + (f", of them {shown(others[0])}" if others else "")
        raise CleansetError(
            f'{where}: returns {found} as the order of its outputs; expected "{NATURAL}", or each of the '
            f"{len(classes):,} classes once: {first_names(classes.keys, SHOWN_KEYS)}"
        )
    return [place_of[key] for key in classes.keys]


def in_other_order(found: OtherNumbering, classes: ClassTable) -> str:
    """What a numbering that explains predictions far better says of them, in words."""
    moved = found.moved
    natural = {label: place for place, label in enumerate(classes.natural_order)}
    if sum(natural[label] == place for label, place in moved.items()) > MIN_NATURAL * len(moved):
        how = f'in the order of the numbers ("{NATURAL}")'
    elif found.offset is not None:
        how = f"each by {found.offset:+d}"
    else:
        how = first_names(
            [f"{classes.keys[one]} as {classes.keys[other]}" for one, other in moved.items()], SHOWN_MOVES
        )
    return (
        f"its classes are probably numbered differently, or labels are swapped: {len(moved):,} of {len(classes):,} "
        f"renumbered to fit half of the images, {how}; {percent(found.correct / found.images)} of the others are then "
        f"correct, {percent(found.correct_before / found.images)} in {order_in_words(classes)}"
    )


def order_problem(labels: Sequence[int], predictions: Sequence[int], classes: ClassTable) -> str:
    """The order of classes that explains predictions far better than the one in use, in words; empty without one."""
    found = other_numbering(labels, predictions)
    return "" if found is None else f"{in_other_order(found, classes)}; {STATE_IT}, which is then believed"
