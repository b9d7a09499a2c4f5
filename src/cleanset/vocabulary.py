"""Closed lists: tiers, verdicts, and reasons for leaving an image out."""

from typing import Literal, get_args

from cleanset.classes import ClassName, classes_in_use
from cleanset.errors import CleansetError

Tier = Literal["top5", "reserve", "relaxed"]
TIERS: tuple[str, ...] = get_args(Tier)
"""The tiers, in the order of filling a class."""

Verdict = Literal["clean", "crop", "reject", "unsure"]
Reason = Literal[
    "watermark",
    "text",
    "border",
    "collage",
    "filter",
    "noise",
    "blur",
    "drawing",
    "too_small",
    "artificial_background",
    "modification",
    "wrong_class",
    "several_objects",
    "duplicate",
    "other",
]
Basis = Literal["explicit", "implied", "default"]
Seen = Literal["grid", "single"]
"""The way an image was seen: among those taken as clean together, or opened by itself."""

VERDICTS: tuple[str, ...] = get_args(Verdict)
REASONS: tuple[str, ...] = get_args(Reason)
"""A reviewer's reasons for verdict crop or reject; modification: a visible one that is not further specified."""

BASES: tuple[str, ...] = get_args(Basis)
"""The bases of a verdict: given on this very image, implied by one on several, or by default: nothing was found."""

WRONG_AFTER_CROP = "wrong_after_crop"
"""The reason of a candidate that the model misclassifies once it is cropped as the reviewers decided."""

SourceCheck = Literal["archive_md5", "image_sha256", "none"]
"""The check of an image's bytes: by the MD5 of its archive, by a table of digests, or by nothing from outside."""

BOX_UNKNOWN = "box_unknown"
"""The reason of a candidate that is to be cropped, by a box that nobody has drawn yet."""

EXCLUSION_REASONS = (
    *REASONS, "unsure", WRONG_AFTER_CROP, "conflict", "too_few_reviewers", BOX_UNKNOWN, "unreviewed", "not_needed",
)  # fmt: skip
"""The reasons why a candidate is not in the set."""


def require_imagenet(what: str, expected: str) -> None:
    """Raise CleansetError where the images are not ImageNet's; `what` needs them, `expected` does not."""
    if not classes_in_use().is_imagenet:
        raise CleansetError(f"{what}: needs the images of ImageNet, which these are not; expected {expected}")


def class_keys() -> tuple[str, ...]:
    """The keys of the classes in use, by class index; of ImageNet the 1,000 sorted wnids."""
    return classes_in_use().keys


_OWN_NAMES = {"wnid": "class", "ilsvrc_class": "original_class", "real_classes": "classes"}


def column_name(name: str) -> str:
    """The name in files of a column: of images that are not ImageNet's, without the names of its labels."""
    return name if classes_in_use().is_imagenet else _OWN_NAMES.get(name, name)


def known_classes() -> str:
    """The class keys in use, as the expected values in messages."""
    return "one of the 1,000 wnids" if classes_in_use().is_imagenet else "a class of classes.tsv"


def example_key() -> str:
    """A class key as messages show it."""
    return "n01440764" if classes_in_use().is_imagenet else class_keys()[0]


def has_top5() -> bool:
    """Whether the classes in use are at least five: of fewer, every prediction is among the top five."""
    return len(classes_in_use()) >= 5


def class_column() -> str:
    """The column of class keys in files that people exchange: `wnid` of ImageNet, else `class`."""
    return column_name("wnid")


def search_words() -> str:
    """The words for the search of a class: by its name, of ImageNet's by its wnid too."""
    return "name or wnid" if class_column() == "wnid" else "name"


def class_indices() -> dict[str, int]:
    """The class index of each key of the classes in use."""
    return classes_in_use().indices


def class_names() -> tuple[ClassName, ...]:
    """The classes in use, by class index."""
    return classes_in_use().names


def label_names() -> tuple[str, ...]:
    """The names of the classes in use, each once."""
    return classes_in_use().labels
