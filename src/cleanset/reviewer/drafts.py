"""A verdict that is being made, until nothing is missing any more."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from cleanset.boxes import Box
from cleanset.checked import first_problem
from cleanset.errors import CleansetError
from cleanset.review.verdicts import Review
from cleanset.reviewer.library import Picture


@dataclass
class Draft:
    """What is said so far. `visible`: it is stated that the object stays fully visible."""

    verdict: str
    reason: str | None = None
    box: Box | None = None
    visible: bool = False

    def missing(self, box: Sequence[int] | None, picture: Picture) -> list[str]:
        """What a crop with this box still lacks, in words."""
        lacking = []
        if box is None or list(box) == [0, 0, picture.width, picture.height]:
            lacking.append("draw a box smaller than the picture")
        if self.reason is None:
            lacking.append("choose the reason, by its key")
        if not self.visible:
            lacking.append("state that the object stays fully visible, by v")
        return lacking

    def take_box(self, box: Sequence[int], picture: Picture) -> None:
        """Take the box that is drawn. Raises CleansetError for one that is none, or not inside the picture."""
        left, top, right, bottom = (int(edge) for edge in box)
        if not (0 <= left < right <= picture.width and 0 <= top < bottom <= picture.height):
            raise CleansetError(f"crop {list(box)}: expected a box inside {picture.width} x {picture.height} pixels")
        self.box = (left, top, right, bottom)

    def review(self, picture: Picture, note: str | None) -> Review:
        """The verdict as it is to be written."""
        try:
            return Review(
                verdict=self.verdict,  # type: ignore[arg-type]  # checked right here
                reason=self.reason,  # type: ignore[arg-type]
                crop=list(self.box) if self.box else None,
                object_fully_visible=True if self.box else None,
                sha256=picture.sha256,
                note=note,
            )
        except ValidationError as error:
            raise CleansetError(first_problem(error)) from None
