"""The draft of a verdict, and the likeliest reason to reject an image.

A key that gives no reason rejects the image for its likeliest one.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, check_crop
from cleanset.review.page.library import IndexedImage
from cleanset.review.page.session import ReviewerClassStatus, Session
from cleanset.review.verdicts import Review
from cleanset.validation import first_problem
from cleanset.vocabulary import REASONS, Seen

if TYPE_CHECKING:  # it imports SciPy, which would delay the start
    from cleanset.review.hints.crop_proposal import CropProposal


@dataclass
class Draft:
    """The parts of a verdict that are decided so far, from the first key for it until it is written.

    `visible_in`: the box, and the only one, for which the reviewer has stated that the object stays fully visible.
    `note`: the notes of the verdict that the board takes, to begin its own with.
    `proposal`: a box to start from; `awaits_proposal`: the image is still being measured for one.
    """

    verdict: str
    reason: str | None = None
    correct_class: str | None = None
    box: Box | None = None
    visible_in: Box | None = None
    note: str = ""
    proposal: "CropProposal | None" = None
    awaits_proposal: bool = False

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
                verdict=self.verdict,  # type: ignore[arg-type]  # checked right here
                reason=self.reason,  # type: ignore[arg-type]
                correct_class=self.correct_class,
                crop=self.box,
                object_fully_visible=True if self.box else None,
                seen=seen,
                sha256=image.sha256,
                note=note,
            )
        except ValidationError as error:
            raise CleansetError(first_problem(error)) from None


# further reasons that a kind of hint stands for: a line near an edge is read as text, and may be a watermark
ALSO_HINTED = {"text": ("watermark",)}


def likeliest_reason(hinted: Collection[str], in_class: Counter[str], overall: Counter[str]) -> str:
    """The most frequent of the reasons hinted at, else of those given in the class, else of all given so far.

    `hinted`: kinds of hints at the image; `in_class`, `overall`: how often each reason was given. Ties go to the one
    that is more frequent overall, then to the first of REASONS.
    """
    # few pixels are no reason: in an edition of small images they would hide all others
    known = {reason for kind in hinted for reason in (kind, *ALSO_HINTED.get(kind, ())) if reason in REASONS}
    among = known or in_class.keys() or REASONS
    return min(among, key=lambda reason: (-in_class[reason], -overall[reason], REASONS.index(reason)))


class LikeliestReasons:
    """The likeliest reasons for images, from the hints at them and the rejections of a session's reviewer."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._counted: dict[int, tuple[ReviewerClassStatus, Counter[str]]] = {}
        self._overall: Counter[str] = Counter()

    def of(self, class_index: int, image_ids: Collection[str]) -> dict[str, str]:
        """The likeliest reason by image id, for images of a class."""
        self._count()
        in_class = self._counted[class_index][1]
        hints = self._session.hints.of(image_ids)
        return {
            image_id: likeliest_reason({hint.kind for hint in hints.get(image_id, ())}, in_class, self._overall)
            for image_id in image_ids
        }

    def _count(self) -> None:
        """Count the reasons anew in the classes that have changed, for this is done at every step."""
        for index, status in self._session.statuses.items():
            before = self._counted.get(index)
            if before is None or before[0] is not status:
                counts = Counter(str(each.reason) for each in status.own.values() if each.verdict == "reject")
                self._overall.subtract(before[1] if before else ())
                self._overall.update(counts)
                self._counted[index] = status, counts
