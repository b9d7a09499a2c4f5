"""The draft of a verdict, from its first key until it is written, and what a crop still lacks to be saved."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, check_crop, known_box
from cleanset.review.page.library import IndexedImage
from cleanset.review.verdicts import Clean, Cropped, Rejected, Review, Unsure, Verdict
from cleanset.vocabulary import Reason, Seen, VerdictKind

if TYPE_CHECKING:  # it imports SciPy, which would delay the start
    from cleanset.review.hints.crop_proposal import CropProposal


@dataclass
class Draft:
    """The parts of a verdict that are decided so far."""

    kind: VerdictKind
    reason: Reason | None = None
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

    @classmethod
    def of(cls, review: Review, note: str = "") -> "Draft":
        """The parts of an earlier verdict; an unknown box has to be drawn."""
        verdict = review.verdict
        return cls(
            kind=verdict.kind,
            reason=review.reason,
            correct_class=verdict.correct_class if isinstance(verdict, Rejected) else None,
            box=known_box(review.box),
            note=note,
        )

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
            raise CleansetError("draw the box first: v confirms that the object is fully visible in it")
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
                    f"the box is {width} × {height} pixels, and each side needs at least {min_pixels}: draw a larger "
                    "one, or give another verdict"
                )
            else:
                try:
                    check_crop(drawn, image.width, image.height, min_pixels)
                except ValueError as error:
                    lacking.append(str(error))
        if self.reason is None:
            lacking.append("choose a reason by its key")
        if self.visible_in is None:
            lacking.append("confirm with v that the object is fully visible")
        return lacking

    def review(self, image: IndexedImage, note: str | None, seen: Seen | None = None) -> Review:
        """The verdict to be written. Raises CleansetError while a part is missing."""
        return Review(verdict=self._verdict(), seen=seen, sha256=image.sha256, note=note)

    def _verdict(self) -> Verdict:
        match self.kind:
            case "clean":
                return Clean()
            case "unsure":
                return Unsure(self.reason)
            case "crop" | "reject" if self.reason is None:
                raise CleansetError(f"verdict {self.kind} without a reason; choose one by its key")
            case "reject":
                return Rejected(self.reason, self.correct_class)
            case "crop" if self.box is None:
                raise CleansetError("verdict crop without a box; draw it")
            case "crop":
                return Cropped(self.reason, self.box)
