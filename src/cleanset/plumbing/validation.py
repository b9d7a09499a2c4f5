"""The base class of everything read by pydantic, its shared types, and its problems as one short line.

Knows neither paths nor file formats, so that rules can be written over the values that were read.
"""

import re
import reprlib
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from cleanset.errors import CleansetError, InputError, cut, one_line, written_by_newer

MAX_VALUE = 80
"""Characters of a value in a message."""

MAX_LIST = 400
"""Characters of a message with a list of known names: all corruptions and their groups fit."""

_SHOULD = re.compile("^(Dictionary|List|Set|String|Tuple) should (have|match pattern)")
"""The beginning of pydantic's messages about sizes and texts."""

_BLANKS = re.compile(r"[^\S\n-\r\x1c-\x1f\x85\u2028\u2029]+")
"""Spaces of any kind and tabs, but no ends of lines."""

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 10 * MAX_VALUE
_repr.maxlist = _repr.maxtuple = _repr.maxdict = 10


def shown(value: object) -> str:
    """A value as Python writes it, on one line, cut in the middle where it is long."""
    if isinstance(value, str):
        return cut(repr(value), MAX_VALUE)
    return cut(one_line(_repr.repr(value)), MAX_VALUE)


def normal_text(text: str) -> str:
    """A text that is a key, normalised: NFC, trimmed, blanks collapsed."""
    return _BLANKS.sub(" ", unicodedata.normalize("NFC", text)).strip(" ")


def hidden_character(text: str) -> str:
    """The first character that is not printed, as " with the invisible ZERO WIDTH JOINER"; empty if all are."""
    hidden = next((each for each in text if not each.isprintable()), "")
    return hidden and f" with the invisible {unicodedata.name(hidden, ascii(hidden))}"


def expected_value(error: ErrorDetails) -> str:
    """The expected value in words, from pydantic's message or a validator's."""
    # pydantic puts "Value error, " before the text of a validator's ValueError
    what = error["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    what = what.replace("a valid integer", "an integer").replace("a valid ", "a ").replace(" after validation", "")
    return _SHOULD.sub(lambda found: "expected a match of" if "match" in found[0] else "expected", what)


def first_problem(error: ValidationError) -> str:
    """The first wrong key, the expected value and the value found."""
    first = error.errors()[0]
    key = cut(".".join(cut(one_line(str(part)), MAX_VALUE) for part in first["loc"]), MAX_VALUE)
    if first["type"] == "model_type":
        key = key or "the file"
        what = "expected keys and values"
    else:
        what = expected_value(first)
    # for a missing key, pydantic's input is the whole table around it; our own messages may have quoted the value
    is_named = isinstance(first["input"], dict) or (isinstance(first["input"], str) and shown(first["input"]) in what)
    found = "" if is_named else f"; found {shown(first['input'])}"
    # our own messages, and those on closed lists, name all that is known
    length = MAX_LIST if first["type"] in ("value_error", "literal_error") else 2 * MAX_VALUE
    return f"{key + ': ' if key else ''}{cut(one_line(what), length)}{found}"


def missing_keys(error: ValidationError) -> list[str]:
    """All missing keys, parts joined by dots; empty if the first problem is another."""
    errors = error.errors(include_url=False)
    if errors[0]["type"] != "missing":
        return []
    return [".".join(map(str, each["loc"])) for each in errors if each["type"] == "missing"]


def join_names(names: Iterable[str], length: int = MAX_LIST) -> str:
    """The names, or the first ones that fit into `length` characters and the number left out, commas between."""
    names = [cut(one_line(name), MAX_VALUE) for name in names]
    text = ", ".join(names)
    kept = len(names)
    while len(text) > length and kept > 1:
        kept -= 1
        text = f"{', '.join(names[:kept])} and {len(names) - kept} more"
    return text


def first_names(names: Sequence[str], most: int) -> str:
    """The first names with commas between, and the number beyond `most`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def check_not_newer(content: object, where: object, known: int = 1) -> None:
    """Raise CleansetError for a table whose key `format` has a number above `known`; without the key it is 1."""
    number = content.get("format") if isinstance(content, dict) else None
    if isinstance(number, int) and number > known:
        raise CleansetError(written_by_newer(where, f"format {number}", str(known)))


def check_columns(found: Sequence[str], known: Sequence[str], where: str) -> None:
    """Raise CleansetError for columns of a newer version of cleanset: all that are known, and further ones."""
    if len(found) > len(known) and list(found[: len(known)]) == list(known):
        further = f"columns {join_names(found[len(known) :], MAX_VALUE)}"
        raise CleansetError(written_by_newer(where, further, f"the columns up to {known[-1]}"))


Record = TypeVar("Record", bound=BaseModel)


def validate(kind: type[Record], content: object, where: object, after: str = "", *, context: object = None) -> Record:
    """The content as a `kind`. Raises CleansetError, from `where` to `after`, for the first problem in it.

    `context`: what validators need next to the value, such as the class table. Raises as `check_not_newer` does, too.
    """
    check_not_newer(content, where)
    try:
        return kind.model_validate(content, context=context)
    except ValidationError as error:
        raise CleansetError(f"{where}: {first_problem(error)}{after}") from None


def is_callable_name(name: str) -> bool:
    """Whether a name is MODULE:CALLABLE."""
    module, colon, function = name.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), function))


def check_known(what: str, name: str, known: Iterable[str]) -> None:
    """Raise InputError unless `name` is one of the known names of a `what`, which the message lists."""
    known = tuple(known)
    if name not in known:
        raise InputError(f"unknown {what} {shown(name)}; expected one of {', '.join(known)}")


def checked(
    is_valid: Callable[..., object],
    expected: str | Callable[[], str] = "another value",
    kind: type[AfterValidator | BeforeValidator] = AfterValidator,
) -> AfterValidator | BeforeValidator:
    """A validator that refuses other values; `expected` is in the message."""

    def check(value: object) -> object:
        if not is_valid(value):
            raise ValueError(f"expected {expected() if callable(expected) else expected}")
        return value

    return kind(check)


def one_of(*choices: str | None) -> AfterValidator | BeforeValidator:
    """A validator that refuses other texts; None stands for an empty cell."""
    return checked(choices.__contains__, f"one of {', '.join(each or 'nothing' for each in choices)}")


def matching(pattern: str, expected: str) -> AfterValidator | BeforeValidator:
    """A validator that refuses other texts than whole matches of a pattern."""
    return checked(re.compile(pattern).fullmatch, expected)


def numeric(kind: type[int | float], least: float, most: float, expected: str = "") -> AfterValidator | BeforeValidator:
    """A validator of a cell that refuses other texts than a plain number from `least` to `most`."""
    # int and float take digits of any script, underscores and blanks, and float nan and inf
    form = re.compile(r"[0-9]{1,20}" if kind is int else r"[0-9]{1,20}(\.[0-9]{1,40})?(e-?[0-9]{1,3})?")
    return checked(
        lambda text: form.fullmatch(text) and least <= kind(text) <= most,
        expected or f"a number from {least} to {most:,}",
        BeforeValidator,
    )


EmptyIsNone = BeforeValidator(lambda text: text or None)
"""Before the type of a cell that may be empty."""


def _each_once(names: list[str]) -> list[str]:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"{shown(name)} twice; expected each once")
    return names


EachOnce = AfterValidator(_each_once)
ROLE_FORM = re.compile("[a-z][a-z0-9_]*")
"""The form of a model's role."""

SHA256_FORM = re.compile("[0-9a-f]{64}")
"""The form of a SHA-256."""

AtLeastOne = Annotated[int, Field(ge=1)]
NonEmpty = Annotated[str, Field(min_length=1)]
Role = Annotated[str, Field(pattern=f"^{ROLE_FORM.pattern}$", max_length=64)]
Sha256 = Annotated[str, Field(pattern=f"^{SHA256_FORM.pattern}$")]
_DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,3})?")
DeviceText = Annotated[str, checked(_DEVICE.fullmatch, "auto, cpu, cuda or cuda:N")]
"""The devices that params name: auto, cpu, cuda or cuda:N."""


class Section(BaseModel):
    """A section of a params file: an unknown key, or a value of another type, is refused."""

    # strict: by default pydantic would take the text "yes" for true
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, section: object) -> object:
        fields = cls.__pydantic_fields__
        if isinstance(section, dict) and not section.keys() <= fields.keys():
            unknown = next(key for key in section if key not in fields)
            raise ValueError(f"unknown key {shown(unknown)}; expected {', '.join(fields)}")
        return section
