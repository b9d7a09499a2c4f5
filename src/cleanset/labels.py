"""The reassessed ("ReaL") labels of ImageNet (Beyer et al. 2020, arXiv:2006.07159)."""

import json

from cleanset.errors import CleansetError
from cleanset.ilsvrc import CLASSES


def read_reassessed(text: str | bytes, where: str) -> list[list[int]]:
    """The lists of class indices, picture 1 first, from a file in the format of `real.json`.

    A list may be empty. Labels come out sorted. Raises CleansetError, naming `where`, for anything
    that is not a list of lists of distinct class indices.
    """
    try:
        lists = json.loads(text)
    except json.JSONDecodeError as error:
        raise CleansetError(
            f"{where}, line {error.lineno}: not JSON ({error.msg}); expected a list of lists of class indices"
        ) from None
    except (ValueError, RecursionError) as error:
        raise CleansetError(f"{where}: not JSON ({error}); expected a list of lists of class indices") from None
    if not isinstance(lists, list):
        raise CleansetError(f"{where}: a {type(lists).__name__}; expected a list of lists of class indices")
    return [_checked(labels, number, where) for number, labels in enumerate(lists, start=1)]


def _checked(labels: object, number: int, where: str) -> list[int]:
    valid = (
        isinstance(labels, list)
        and all(type(label) is int and 0 <= label < CLASSES for label in labels)
        and len(set(labels)) == len(labels)
    )
    if not valid:
        raise CleansetError(
            f"{where}, picture {number}: {labels!r}; expected a list of distinct class indices 0 to {CLASSES - 1}"
        )
    assert isinstance(labels, list)
    return sorted(labels)
