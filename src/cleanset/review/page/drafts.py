"""The draft of a verdict, from the first key for it until it is written."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, check_crop
from cleanset.review.page.library import IndexedImage
from cleanset.review.verdicts import Review
from cleanset.validation import first_problem
from cleanset.vocabulary import Seen, Verdict

if TYPE_CHECKING:  # it imports SciPy, which would delay the start
    from cleanset.review.hints.crop_proposal import CropProposal


@dataclass
class Draft:
    """The parts of a verdict that are decided so far."""

    verdict: Verdict
    reason: str | None = None
    correct_class: str | None = None
    """The key of the class that the image shows, if that is the reason."""

    box: Box | None = None
    """The box of an earlier crop, and in the end the one that is saved."""

    visible_in: Box | None = None
    """The only box for which the reviewer has stated that the object stays fully visible."""

    note: str = ""
    """The notes of the verdict that the board takes, to begin its own with."""

    proposal: "CropProposal | None" = None
    """A box to start from."""

    awaits_proposal: bool = False
    """Whether the image is still being measured for a proposal."""

    def propose(self, proposal: "CropProposal") -> None:
        """Offer a box, and its reason unless a better one is known."""
        self.proposal = proposal
        self.awaits_proposal = False
        if self.reason in (None, "other"):
            self.reason = proposal.reason

    def toggle_visible(self, drawn: Box | None, *, was_shown: bool = True) -> None:
        """State that the object stays fully visible in the box that is drawn, or take the statement back.

        `was_shown`: a box was on the screen when the key was pressed; a proposal is not accepted unseen.
        """
        if self.visible_in is not None:
            self.visible_in = None
        elif drawn is None:
            raise CleansetError("draw the box first: v states that the object stays fully visible in it")
        elif self.proposal is not None and drawn == self.proposal.box and not was_shown:
            raise CleansetError("the proposed box was not shown yet when v was pressed: look, and press it again")
        else:
            self.visible_in = drawn

    def change_box(self, drawn: Box | None) -> None:
        """Drop the statement that the object stays fully visible unless it was made for this box."""
        if drawn is None or drawn != self.visible_in:
            self.visible_in = None

    def missing(self, drawn: Box | None, image: IndexedImage, min_pixels: int) -> list[str]:
        """The remaining steps before a crop with this box can be saved, in words."""
        lacking = []
        if drawn is None:
            lacking.append("draw a box smaller than the image")
        else:
            width = drawn[2] - drawn[0]
            height = drawn[3] - drawn[1]
            if 0 < min(width, height) < min_pixels:
                lacking.append(
                    f"the box is {width} × {height} pixels, and no edge may be under {min_pixels}: draw a larger one, "
                    "or give another verdict"
                )
            else:
                try:
                    check_crop(drawn, image.width, image.height, min_pixels)
                except ValueError as error:
                    lacking.append(str(error))
        if self.reason is None:
            lacking.append("choose the reason, by its key")
        if self.visible_in is None:
            lacking.append("state that the object stays fully visible, by v")
        return lacking

    def review(self, image: IndexedImage, note: str | None, seen: Seen | None = None) -> Review:
        """The verdict to be written."""
        try:
            return Review(
                verdict=self.verdict,
                reason=self.reason,  # type: ignore[arg-type]  # checked right here
                correct_class=self.correct_class,
                crop=self.box,
                object_fully_visible=True if self.box else None,
                seen=seen,
                sha256=image.sha256,
                note=note,
            )
        except ValidationError as error:
            raise CleansetError(first_problem(error)) from None
