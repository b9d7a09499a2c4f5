"""Human verdicts: the format of a review file. One file holds one reviewer's verdicts on one class."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, model_validator

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, parse_box
from cleanset.validation import first_problem
from cleanset.vocabulary import Basis, Reason, Verdict

OFFICIAL = "official"
"""In place of a SHA-256: the image of this id in the official archive, whose bytes the id names."""

UNKNOWN = "unknown"
"""In place of a crop box: the image is to be cropped, but the box is not known."""


def _crop(crop: object) -> Box | str | None:
    """Check a crop; as a union of types, every message would name the types instead of the key."""
    if crop is None:
        return None
    if isinstance(crop, str):
        if crop != UNKNOWN:
            raise ValueError(f"expected left, top, right, bottom in pixels, or {UNKNOWN}")
        return crop
    return parse_box(crop)


class Review(BaseModel):
    """One reviewer's verdict on one image, as in the file; without `basis` it is explicit."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    verdict: Verdict
    reason: Reason | None = None
    crop: Annotated[Box | Literal["unknown"] | None, PlainValidator(_crop)] = None
    object_fully_visible: bool | None = None
    basis: Basis | None = None
    sha256: Annotated[str, Field(pattern=rf"^([0-9a-f]{{64}}|{OFFICIAL})$")]
    note: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.verdict in ("crop", "reject") and self.reason is None:
            raise ValueError(f"verdict {self.verdict} without a reason")
        if self.verdict == "clean" and self.reason is not None:
            raise ValueError("verdict clean with a reason; a reason says what is wrong with the image")
        if (self.verdict == "crop") != (self.crop is not None):
            raise ValueError("a crop box is needed for verdict crop, and for no other")
        if self.crop is not None and self.object_fully_visible is not True:
            raise ValueError("a crop without object_fully_visible: true; the object must remain fully visible")
        return self

    @property
    def box(self) -> Box | None:
        """The crop box; None where there is none, or it is not known."""
        return self.crop if isinstance(self.crop, tuple) else None

    @property
    def box_unknown(self) -> bool:
        """Whether the image is to be cropped by a box that is not known."""
        return self.crop == UNKNOWN

    @property
    def is_official(self) -> bool:
        """Whether the image is named by its id in the official archive, not by its SHA-256."""
        return self.sha256 == OFFICIAL


@dataclass(frozen=True, slots=True)
class Vote:
    """A review and where it is, file and line, for error messages."""

    wnid: str
    image_id: str
    review: Review
    where: str


def parse_reviews(text: str, wnid: str, where: str) -> list[Vote]:
    """The verdicts in the text of a review file for class `wnid`.

    Raises CleansetError with `where` and the line for anything that is not exactly the format:
    a syntax error, a tag, two verdicts for one image, an unknown key, a missing or wrong value.
    """
    try:
        _refuse_deep(text, where)
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise CleansetError(f"{where}, line {line}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise CleansetError(f"{where}: not YAML: {' '.join(str(error).split())}") from None
    if root is None:
        return []
    top = _mapping(root, where, f"expected the wnid of the file, {wnid}:")
    if [key for key, _, _ in top] != [wnid]:
        keys = ", ".join(key for key, _, _ in top) or "nothing"
        raise CleansetError(
            f"{where}, line {top[0][1] if top else 1}: found {keys}; expected one entry, {wnid}, the file's name"
        )
    votes = []
    for image_id, line, node in _mapping(top[0][2], where, "expected image ids"):
        place = f"{where}, line {line}, {image_id}"
        fields = {key: _value(value, where) for key, _, value in _mapping(node, where, "expected verdict: …")}
        votes.append(Vote(wnid, image_id, _review(fields, place), place))
    return votes


def _review(fields: dict[str, Any], place: str) -> Review:
    unknown = [key for key in fields if key not in Review.model_fields]
    if unknown:
        raise CleansetError(f"{place}: unknown key {unknown[0]!r}; expected {', '.join(Review.model_fields)}")
    try:
        return Review.model_validate(fields)
    except ValidationError as error:
        raise CleansetError(f"{place}: {first_problem(error)}") from None


MAX_DEPTH = 4
"""The file, its class, an image, a crop box."""


def _refuse_deep(text: str, where: str) -> None:
    """Refuse what nests deeper than a review can; some 40,000 open brackets would crash `yaml.compose`."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise CleansetError(
                f"{where}, line {line}: a list or table too deep; a review has text, numbers, a crop box"
            )


def _mapping(node: yaml.Node, where: str, expected: str) -> list[tuple[str, int, yaml.Node]]:
    """Key, line and value of each entry; refuses doubled keys and tags."""
    _refuse_tag(node, where)
    if not isinstance(node, yaml.MappingNode):
        raise CleansetError(f"{where}, line {node.start_mark.line + 1}: found {_shown(node)}; {expected}")
    entries: dict[str, tuple[str, int, yaml.Node]] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        _refuse_tag(key, where)
        if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":  # such as !!bool <image id>
            raise CleansetError(f"{where}, line {line}: found {_shown(key)} as a key; {expected}")
        if key.value in entries:
            raise CleansetError(
                f"{where}, line {line}: {key.value} a second time, first in line "
                f"{entries[key.value][1]}; expected one entry: remove one of the two"
            )
        entries[key.value] = (key.value, line, value)
    return list(entries.values())


def _value(node: yaml.Node, where: str) -> Any:
    """A scalar, or a list of scalars; a review has no deeper structures."""
    if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
        _refuse_tag(node, where)
        return [_value(item, where) for item in node.value]
    _refuse_tag(node, where)
    try:
        if isinstance(node, yaml.ScalarNode):
            return yaml.constructor.SafeConstructor().construct_document(node)
    except (ValueError, LookupError, yaml.YAMLError):  # text under an explicit tag, as in !!bool maybe
        pass
    raise CleansetError(
        f"{where}, line {node.start_mark.line + 1}: found {_shown(node)}; expected text, a number or a list"
    )


_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "map", "seq")}


def _refuse_tag(node: yaml.Node, where: str) -> None:
    if node.tag not in _PLAIN_TAGS:
        raise CleansetError(
            f"{where}, line {node.start_mark.line + 1}: a value of type {node.tag}; "
            "expected text, numbers and lists: put it in quotes if it is meant as text"
        )


def _shown(node: yaml.Node) -> str:
    return repr(node.value) if isinstance(node, yaml.ScalarNode) else "a list or table"
