"""Closed lists: tiers, verdicts, reasons for leaving an image out, and the classes of the dataset."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator

from cleanset.errors import CleansetError
from cleanset.validation import hidden_character, shown

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

CLASSES_FILE = "classes.tsv"
CLASS_COLUMNS = ("class", "name", "index")
MIN_CLASSES, MAX_CLASSES = 2, 5000
"""Numbers of classes."""
MAX_KEY_BYTES = 100
_INNER, _LAST = "_ -.,()+&'", "_)+"
"""Characters of a key beside letters, digits and marks on letters: within it, and as its last."""
_DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])")
"""Names that Windows gives to devices."""
EXPECTED_KEY = (
    "expected letters, digits and inner blanks or any of _ - . , ( ) + & ', "
    f"at most {MAX_KEY_BYTES} bytes, as a folder can be called"
)


@dataclass(frozen=True, slots=True)
class ClassName:
    """A class by its usual name, which may contain commas; `others` are its synonyms, `gloss` is the definition.

    Only ImageNet's classes have others and a gloss.
    """

    class_index: int
    key: str
    name: str
    others: str = ""
    gloss: str = ""

    @property
    def names(self) -> str:
        """All names, the usual one first."""
        return f"{self.name}, {self.others}" if self.others else self.name

    @property
    def searched(self) -> str:
        """The text that a search looks at."""
        return f"{self.key} {self.names}".casefold()


class ClassTable:
    """The classes of a dataset by class index.

    `is_imagenet`: ILSVRC2012's classes, with wnids as keys and its image ids.
    """

    def __init__(self, names: Sequence[ClassName], *, is_imagenet: bool = False) -> None:
        self.names = tuple(names)
        self.is_imagenet = is_imagenet

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys by class index."""
        return tuple(each.key for each in self.names)

    @cached_property
    def indices(self) -> dict[str, int]:
        """Class index by key."""
        return {key: index for index, key in enumerate(self.keys)}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The names by class index, each once, as tables and lists of labels need them.

        The usual name; where two classes share it (crane, maillot), each with its key: "crane (n02012849)".
        """
        return self._labels([each.name for each in self.names])

    @cached_property
    def older_labels(self) -> tuple[str, ...]:
        """The same in sets of older versions, which ended a name at its first comma."""
        return self._labels([each.name.partition(", ")[0] for each in self.names])

    def _labels(self, names: Sequence[str]) -> tuple[str, ...]:
        shared = Counter(names)
        named = zip(self.keys, names, strict=True)
        return tuple(name if shared[name] == 1 else f"{name} ({key})" for key, name in named)

    @property
    def text(self) -> str:
        """The text of the file classes.tsv."""
        rows = (f"{each.key}\t{each.names}\t{each.class_index}\n" for each in self.names)
        return "\t".join(CLASS_COLUMNS) + "\n" + "".join(rows)


@cache
def imagenet() -> ClassTable:
    """The 1,000 classes of ILSVRC2012."""
    text = (files("cleanset.dataset") / "classes.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines())
    synonyms = ((wnid, *names.partition(", ")[::2], gloss) for wnid, _, names, gloss in rows)
    return ClassTable([ClassName(index, *each) for index, each in enumerate(synonyms)], is_imagenet=True)


def class_table(names: Iterable[tuple[str, str]], where: str) -> ClassTable:
    """The table of classes with these keys and names; in the order of the sorted keys.

    Raises CleansetError, naming `where`, for fewer than 2 or more than 5,000, for a key that is not a name for a
    folder, and for two keys that some file system takes for one.
    """
    # sorted, so that an index depends on no order of files
    rows = sorted(names)
    if not MIN_CLASSES <= len(rows) <= MAX_CLASSES:
        raise CleansetError(f"{where}: {len(rows):,} classes; expected {MIN_CLASSES} to {MAX_CLASSES:,}")
    seen: dict[str, str] = {}
    for key, name in rows:
        check_class_key(key, where)
        other = seen.setdefault(folded_name(key), key)
        if other is not key:
            raise CleansetError(
                f"{where}: classes {shown(other)} and {shown(key)}, which differ only by case or Unicode form; "
                "expected one class, or names that differ: rename one"
            )
        if not name or not name.isprintable():
            raise CleansetError(f"{where}: class {shown(key)} has the name {shown(name)}; expected printable text")
    return ClassTable([ClassName(index, key, name) for index, (key, name) in enumerate(rows)])


def check_class_key(key: str, where: str) -> None:
    """Raise CleansetError, naming `where`, unless every file system can call a folder by this key."""
    plain = all(each in _INNER or each.isalnum() or unicodedata.category(each)[0] == "M" for each in key)
    ends = bool(key) and (key[0].isalnum() or key[0] == "_") and key[-1] not in set(_INNER) - set(_LAST)
    # Windows takes con.png for the device con, too
    if not (plain and ends) or len(key.encode()) > MAX_KEY_BYTES or _DEVICE.fullmatch(key.partition(".")[0]):
        raise CleansetError(f"{where}: {shown(key)}{hidden_character(key)} as a class; {EXPECTED_KEY}: rename it")


def folded_name(name: str) -> str:
    """The form that makes names equal if a file system does: without case, in one Unicode form."""
    # once more, because folding may give another Unicode form
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def parse_class_table(text: str, where: str) -> ClassTable:
    """The table in the text of a classes.tsv, as `ClassTable.text` writes it. Raises CleansetError for any other."""
    lines = [line.split("\t") for line in text.splitlines()]
    found = class_table([(cells[0], cells[1]) for cells in lines[1:] if len(cells) == len(CLASS_COLUMNS)], where)
    if found.text != text:
        raise CleansetError(
            f"{where}: not a class table; expected the columns {', '.join(CLASS_COLUMNS)} with tabs between, sorted by "
            "class, with indices from 0: restore it"
        )
    return found


_in_use: list[ClassTable] = []


def use_classes(table: ClassTable) -> None:
    """Bring a class table into use, in this process."""
    _in_use[:] = [table]


def classes_in_use() -> ClassTable:
    """The class table of the edition or set that was opened last; ImageNet's until then.

    A process works on the images of one dataset; a set that has been loaded keeps the table of its own.
    """
    return _in_use[0] if _in_use else imagenet()


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


def _index_of(key: str) -> int:
    if key not in class_indices():
        raise ValueError(f"expected {known_classes()}")
    return class_indices()[key]


ClassOfKey = Annotated[int, BeforeValidator(_index_of)]
"""The class index of a cell with the key of a class in use."""


def class_names() -> tuple[ClassName, ...]:
    """The classes in use, by class index."""
    return classes_in_use().names


def label_names() -> tuple[str, ...]:
    """The names of the classes in use, each once."""
    return classes_in_use().labels


def search_classes(names: Iterable[ClassName], typed: str, most: int = 12) -> list[ClassName]:
    """The classes that contain every typed word: as a word first, then as the beginning of one, then within."""
    words = typed.casefold().split()

    # so that "cat" finds cats before the catamaran
    def place(each: ClassName) -> int:
        forms = (r"\b{}\b", r"\b{}", "{}")
        fits = (all(re.search(form.format(re.escape(word)), each.searched) for word in words) for form in forms)
        return next((place for place, fit in enumerate(fits) if fit), len(forms))

    hits = [each for each in names if all(word in each.searched for word in words)]
    return sorted(hits, key=lambda each: (place(each), each.class_index))[:most]
