"""The reassessed ("ReaL") labels of ImageNet (Beyer et al. 2020, arXiv:2006.07159)."""

from cleanset.dataset.ilsvrc import CLASSES, timm_info
from cleanset.errors import CleansetError
from cleanset.parsing import parse_json
from cleanset.validation import shown


def read_reassessed(text: str | bytes, where: str) -> list[list[int]]:
    """The lists of class indices, image 1 first, from a file in the format of `real.json`.

    A list may be empty. Labels come out sorted. Raises CleansetError, naming `where`, for anything
    that is not a list of lists of distinct class indices.
    """
    lists = parse_json(text, where, "a list of lists of class indices")
    if not isinstance(lists, list):
        raise CleansetError(f"{where}: a {type(lists).__name__}; expected a list of lists of class indices")
    return [_checked(labels, number, where) for number, labels in enumerate(lists, start=1)]


def timm_reassessed() -> list[list[int]]:
    """The lists inside timm, of the 50,000 validation images."""
    return read_reassessed(timm_info("imagenet_real_labels.json").read_text(encoding="utf-8"), "timm")


def _checked(labels: object, number: int, where: str) -> list[int]:
    valid = (
        isinstance(labels, list)
        and all(type(label) is int and 0 <= label < CLASSES for label in labels)
        and len(set(labels)) == len(labels)
    )
    if not valid:
        raise CleansetError(
            f"{where}, image {number}: {shown(labels)}; expected a list of distinct class indices 0 to {CLASSES - 1}"
        )
    assert isinstance(labels, list)
    return sorted(labels)
