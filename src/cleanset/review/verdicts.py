"""The format of a review file: one reviewer's verdicts on one class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError, cut
from cleanset.images.boxes import Box, parse_box
from cleanset.validation import MAX_VALUE, Section, shown, validate
from cleanset.vocabulary import Basis, Reason, Seen, Verdict
from cleanset.yaml_files import parse_remembered

OFFICIAL = "official"
"""Value of `sha256` for an image of the official archive, where the id alone determines the bytes."""

ImageKey = tuple[int, str]
"""An image in a class: class index and image id."""

UNKNOWN = "unknown"
"""Value of `crop` where the image is to be cropped, but the box is not known."""


def _crop(crop: object) -> Box | str | None:
    """Check a crop box."""
    # pydantic's own union of types would report every type that does not match, not the key
    if crop is None:
        return None
    if isinstance(crop, str):
        if crop != UNKNOWN:
            raise ValueError(f"expected left, top, right, bottom in pixels, or {UNKNOWN}")
        return crop
    return parse_box(crop)


class Review(Section):
    """One reviewer's verdict on one image, as in the file. Without `basis`, the verdict is explicit.

    `correct_class`: the key of the class that the image shows, if the reason is that it shows another than its label.
    `seen`: grid where it was given to all the rest of a class at once, single where the image had been opened by
    itself, None for a verdict on one image among others. It decides nothing.
    """

    verdict: Verdict
    reason: Reason | None = None
    correct_class: str | None = None
    # not PlainValidator, whose serializer warns that it gets a list for the tuple
    crop: Annotated[Box | Literal["unknown"] | None, BeforeValidator(_crop)] = None
    object_fully_visible: bool | None = None
    basis: Basis | None = None
    seen: Seen | None = None
    sha256: Annotated[str, Field(pattern=rf"^([0-9a-f]{{64}}|{OFFICIAL})$")]
    note: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.verdict in ("crop", "reject") and self.reason is None:
            raise ValueError(f"verdict {self.verdict} without a reason")
        if self.verdict == "clean" and self.reason is not None:
            raise ValueError("verdict clean with a reason; a reason names a flaw of the image")
        if self.correct_class is not None and (self.verdict, self.reason) != ("reject", "wrong_class"):
            raise ValueError("correct_class with another reason; expected verdict reject, reason wrong_class")
        if (self.verdict == "crop") != (self.crop is not None):
            raise ValueError("a crop box is needed for verdict crop, and for no other")
        if self.seen == "grid" and self.verdict != "clean":
            raise ValueError(f"seen grid with verdict {self.verdict}; only clean is given to several images at once")
        if self.crop is not None and self.object_fully_visible is not True:
            raise ValueError("a crop without object_fully_visible: true; the object must remain fully visible")
        return self

    @property
    def box(self) -> Box | None:
        """The crop box; None for another verdict, and where the box is not known."""
        return self.crop if isinstance(self.crop, tuple) else None

    @property
    def box_unknown(self) -> bool:
        """Whether the image is to be cropped by a box that is not known."""
        return self.crop == UNKNOWN

    def is_same_verdict(self, other: "Review") -> bool:
        """Whether all but `seen` is equal."""
        return self.model_copy(update={"seen": other.seen}) == other

    @property
    def is_official(self) -> bool:
        """Whether the image is named by its id in the official archive, not by its SHA-256."""
        return self.sha256 == OFFICIAL


@dataclass(frozen=True, slots=True)
class Vote:
    """A review, and its place (file and line) for error messages."""

    wnid: str
    image_id: str
    review: Review
    where: str


def parse_reviews(text: str, wnid: str, where: str, classes: ClassTable) -> list[Vote]:
    """The verdicts in the text of a review file for class `wnid`.

    Raises CleansetError with `where` and the line for anything that is not exactly the format: bad syntax, two
    verdicts on one image, an unknown key, a missing or wrong value, nothing at all, and whatever `parse_yaml` refuses.
    """
    content, lines, _ = parse_remembered(text, where)
    if content is None:
        # what a full disk, a crash or a failed merge leaves must not take the verdicts of a class away
        if "#" not in text:
            raise CleansetError(
                f"{where}: no verdicts; expected some, or a comment if there are none: put back the file's earlier "
                "version, or remove the file"
            )
        return []
    files = _table(content, f"{where}, line 1", f"expected the {classes.key_column} of the file, {wnid}:")
    if list(files) != [wnid]:
        line = min(lines.values(), default=1)
        raise CleansetError(
            f"{where}, line {line}: found {cut(', '.join(files), MAX_VALUE) or 'nothing'}; expected one entry, {wnid}, "
            "the file's name"
        )
    votes = []
    for image_id, entry in _table(files[wnid], f"{where}, line {lines[wnid,]}", "expected image ids").items():
        line = lines[wnid, image_id]
        fields = _table(entry, f"{where}, line {line}", "expected verdict: …")
        place = f"{where}, line {line}, {image_id}"
        review = validate(Review, fields, place)
        if review.correct_class is not None and review.correct_class not in classes.indices:
            raise CleansetError(
                f"{place}: correct_class {shown(review.correct_class)}; expected {classes.expected_key}"
            )
        if review.correct_class == wnid:
            raise CleansetError(f"{place}: correct_class {wnid}, the class of this file; expected another one")
        votes.append(Vote(wnid, image_id, review, place))
    return votes


def _table(value: object, place: str, expected: str) -> dict[str, object]:
    if not isinstance(value, dict):
        found = "a list" if isinstance(value, list) else "nothing" if value is None else shown(value)
        raise CleansetError(f"{place}: found {found}; {expected}")
    return value


def votes_that(
    votes: Mapping[ImageKey, Mapping[str, Vote]], count: Callable[[ImageKey, str, Vote], bool]
) -> dict[ImageKey, dict[str, Vote]]:
    """The votes that count, by class index and image id, then by reviewer; images without such a vote are left out."""
    kept = {
        key: {name: vote for name, vote in by_reviewer.items() if count(key, name, vote)}
        for key, by_reviewer in votes.items()
    }
    return {key: by_reviewer for key, by_reviewer in kept.items() if by_reviewer}
