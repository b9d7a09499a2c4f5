"""A reviewer's verdict on an image: one of four classes, and the review that it is in.

`review/file_format.py` reads and writes them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from cleanset.images.boxes import Box, CropBox, Unknown
from cleanset.vocabulary import Basis, Reason, Seen

OFFICIAL = "official"
"""Value of `sha256` for an image of the official archive, where the id alone determines the bytes."""

ImageKey = tuple[int, str]
"""An image in a class: class index and image id."""


@dataclass(frozen=True, slots=True)
class Clean:
    """The image may be in the class unchanged."""

    kind: ClassVar[Literal["clean"]] = "clean"


@dataclass(frozen=True, slots=True)
class Cropped:
    """The image may be in the class once it is cropped; the object stays fully visible in the crop."""

    kind: ClassVar[Literal["crop"]] = "crop"

    reason: Reason
    """The flaw that the crop removes."""

    box: Box | Unknown
    """The part that is kept; UNKNOWN_BOX while nobody has drawn it."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The image may not be in the class. Raises ValueError for a correct class with another reason than wrong_class."""

    kind: ClassVar[Literal["reject"]] = "reject"

    reason: Reason
    correct_class: str | None = None
    """The key of the class that the image shows, where that is known; only with reason wrong_class."""

    def __post_init__(self) -> None:
        if self.correct_class is not None and self.reason != "wrong_class":
            raise ValueError(f"correct class {self.correct_class} with reason {self.reason}; expected wrong_class")


@dataclass(frozen=True, slots=True)
class Unsure:
    """The reviewer cannot decide."""

    kind: ClassVar[Literal["unsure"]] = "unsure"

    reason: Reason | None = None
    """The possible flaw, if there is one."""


Verdict = Clean | Cropped | Rejected | Unsure


def reason_of(verdict: Verdict) -> Reason | None:
    """The reason of a verdict, if it has one."""
    return None if isinstance(verdict, Clean) else verdict.reason


def crop_box(verdict: Verdict) -> CropBox:
    """The box that a verdict crops the image to; None for another verdict."""
    return verdict.box if isinstance(verdict, Cropped) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One reviewer's verdict on one image. Raises ValueError for another verdict than clean that was seen in a grid."""

    verdict: Verdict
    basis: Basis | None = None
    """None for a verdict that is explicit."""

    seen: Seen | None = None
    """grid where the verdict was given to all the rest of a class at once, single where the image had been opened by
    itself, None for a verdict on one image among others. It decides nothing."""

    sha256: str
    """SHA-256 of the bytes that were seen, in hexadecimal digits, or OFFICIAL."""

    note: str | None = None

    def __post_init__(self) -> None:
        if self.seen == "grid" and not isinstance(self.verdict, Clean):
            raise ValueError(
                f"seen grid with verdict {self.verdict.kind}; only clean is given to several images at once"
            )

    @property
    def reason(self) -> Reason | None:
        """The reason of the verdict, if it has one."""
        return reason_of(self.verdict)

    @property
    def box(self) -> CropBox:
        """The box that the image is cropped to; None for another verdict."""
        return crop_box(self.verdict)

    def is_same_verdict(self, other: "Review") -> bool:
        """Whether all but `seen` is equal."""
        return replace(self, seen=None) == replace(other, seen=None)

    @property
    def is_official(self) -> bool:
        """Whether the verdict refers to the image by its id in the official archive, not by its SHA-256."""
        return self.sha256 == OFFICIAL


@dataclass(frozen=True, slots=True)
class Vote:
    """A review, and its place (file and line) for error messages."""

    wnid: str
    image_id: str
    review: Review
    where: str


def votes_that(
    votes: Mapping[ImageKey, Mapping[str, Vote]], count: Callable[[ImageKey, str, Vote], bool]
) -> dict[ImageKey, dict[str, Vote]]:
    """The votes that count, by class index and image id, then by reviewer; images without such a vote are left out."""
    kept = {
        key: {name: vote for name, vote in by_reviewer.items() if count(key, name, vote)}
        for key, by_reviewer in votes.items()
    }
    return {key: by_reviewer for key, by_reviewer in kept.items() if by_reviewer}
