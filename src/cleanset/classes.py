"""The classes of a dataset: the table that gives each its index, key and name, and the search for one by name.

A `ClassTable` belongs to what was opened: an edition, a finished set, a study, a result. It is handed to whatever
reads, checks or prints their classes, so that several datasets can be worked on in one process.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import check_columns, hidden_character, shown

WNID = re.compile("n[0-9]{8}")
"""The form of a key of ImageNet's classes."""
CLASSES_FILE = "classes.tsv"
CLASS_COLUMNS = ("class", "name", "index")
MIN_CLASSES = 2
MAX_CLASSES = 5000
MAX_KEY_BYTES = 100
_INNER = "_ -.,()+&'"
"""Characters within a key, other than letters, digits and marks on letters."""
_LAST = "_)+"
"""Those of them that may end a key."""
_OWN_COLUMNS = {"wnid": "class", "ilsvrc_class": "original_class", "real_classes": "classes"}
"""The names in files of columns that are called after ImageNet's labels, for other images."""
_DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])")
"""Names that Windows gives to devices."""
_NUMBER = re.compile(r"(\d+)")
_RANGE = re.compile(r"([0-9]{1,4})-([0-9]{1,4})")
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


@dataclass(frozen=True)
class ClassTable:
    """The classes of a dataset, and how files and messages call them."""

    names: tuple[ClassName, ...] = field(repr=False)
    """The classes by class index."""

    is_imagenet: bool = False
    """Whether they are ILSVRC2012's, with wnids as keys and its image ids."""

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
    def natural_order(self) -> tuple[int, ...]:
        """The class indices in the order of the keys in which numbers within them are compared as numbers."""
        return tuple(sorted(range(len(self)), key=lambda index: (_natural_key(self.keys[index]), self.keys[index])))

    @cached_property
    def keys_sha256(self) -> str:
        """SHA-256 of the keys in their order, which defines the class of each index."""
        return hashlib.sha256("\n".join(self.keys).encode()).hexdigest()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The names by class index, each once, as tables and lists of labels need them.

        The usual name; where two classes share it (crane, maillot), each with its key: "crane (n02012849)".
        """
        return self._labels([each.name for each in self.names])

    def _labels(self, names: Sequence[str]) -> tuple[str, ...]:
        shared = Counter(names)
        named = zip(self.keys, names, strict=True)
        return tuple(name if shared[name] == 1 else f"{name} ({key})" for key, name in named)

    @property
    def key_column(self) -> str:
        """The column of class keys in files that people exchange: `wnid` for ImageNet, else `class`."""
        return self.column("wnid")

    @property
    def has_top5(self) -> bool:
        """Whether there are at least five classes; with fewer, every class is among the top five."""
        return len(self) >= 5

    @property
    def expected_key(self) -> str:
        """The expected class key, in words for messages."""
        return "one of the 1,000 wnids" if self.is_imagenet else "a class of classes.tsv"

    @property
    def example_key(self) -> str:
        """A class key to show in messages."""
        return "n01440764" if self.is_imagenet else self.keys[0]

    @property
    def search_words(self) -> str:
        """What a class can be searched by, in words."""
        return "name or wnid" if self.is_imagenet else "name"

    def column(self, name: str) -> str:
        """The name in files of a column that is called `name` for ImageNet."""
        return name if self.is_imagenet else _OWN_COLUMNS.get(name, name)

    def index_of(self, key: str) -> int:
        """The class index of a key. Raises ValueError, as pydantic's validators do, for an unknown one."""
        if key not in self.indices:
            raise ValueError(f"expected {self.expected_key}")
        return self.indices[key]

    def require_imagenet(self, what: str, expected: str) -> None:
        """Raise CleansetError unless the images are ImageNet's; `what` needs them, `expected` does not."""
        if not self.is_imagenet:
            raise CleansetError(f"{what}: needs the images of ImageNet, which these are not; expected {expected}")

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
    names = []
    for index, (wnid, _, synonyms, gloss) in enumerate(rows):
        name, _, others = synonyms.partition(", ")
        names.append(ClassName(class_index=index, key=wnid, name=name, others=others, gloss=gloss))
    return ClassTable(tuple(names), is_imagenet=True)


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
    return ClassTable(tuple(ClassName(index, key, name) for index, (key, name) in enumerate(rows)))


def _natural_key(key: str) -> list[int | str]:
    """A key in parts that alternate between text and number; timm sorts folders so (`timm.utils.natural_key`)."""
    return [int(part) if place % 2 else part for place, part in enumerate(_NUMBER.split(key.lower()))]


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
    lines = [line.split("\t") for line in text.splitlines()] or [[]]
    check_columns(lines[0], CLASS_COLUMNS, where)
    found = class_table([(cells[0], cells[1]) for cells in lines[1:] if len(cells) == len(CLASS_COLUMNS)], where)
    if found.text != text:
        raise CleansetError(
            f"{where}: not a class table; expected the columns {', '.join(CLASS_COLUMNS)} with tabs between, sorted by "
            "class, with indices from 0: restore it"
        )
    return found


def context_classes(info: ValidationInfo) -> ClassTable:
    """The class table that was given to pydantic as its validation context."""
    if not isinstance(info.context, ClassTable):
        raise TypeError("validated without a class table; expected context=classes")
    return info.context


def _index_of_key(key: str, info: ValidationInfo) -> int:
    return context_classes(info).index_of(key)


ClassOfKey = Annotated[int, BeforeValidator(_index_of_key)]
"""The class index of a cell with a class key; the class table is the validation context."""


def parse_ranges(text: str) -> frozenset[int]:
    """The class indices of a text such as 0-499 or 0-99,300-399. Raises ValueError for any other text."""
    found: set[int] = set()
    for part in text.split(","):
        ends = _RANGE.fullmatch(part.strip())
        if ends is None or int(ends[1]) > int(ends[2]):
            raise ValueError(f"{shown(part)}: expected ranges of class indices such as 0-499 or 0-99,300-399")
        found.update(range(int(ends[1]), int(ends[2]) + 1))
    return frozenset(found)


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
