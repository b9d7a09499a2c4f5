"""The verdicts in conflict that the board decides between: each distinct one, with the reviewers who gave it."""

from collections.abc import Mapping
from dataclasses import dataclass

from cleanset.images.boxes import UNKNOWN_BOX, Box, known_box
from cleanset.review.page.library import IndexedImage
from cleanset.review.store import BOARD
from cleanset.review.verdicts import Rejected, Review, Verdict, Vote, crop_box, reason_of
from cleanset.vocabulary import VERDICTS


@dataclass(frozen=True, slots=True)
class VerdictOption:
    """A verdict that one or more reviewers gave; `number`: the key that takes it; `reviews`: by reviewer, sorted."""

    number: int
    reviews: Mapping[str, Review]

    @property
    def review(self) -> Review:
        """One of the reviews, which differ in their notes only."""
        return next(iter(self.reviews.values()))

    @property
    def drawn_box(self) -> Box | None:
        """The box of a crop that somebody has drawn; None of any other verdict."""
        return known_box(self.review.box)

    @property
    def notes(self) -> dict[str, str]:
        """The notes by reviewer."""
        return {name: review.note for name, review in self.reviews.items() if review.note}

    def kept(self, image: IndexedImage) -> float:
        """The share of the image that the crop keeps; 1 without a box."""
        if self.drawn_box is None:
            return 1.0
        left, top, right, bottom = self.drawn_box
        return (right - left) * (bottom - top) / (image.width * image.height)


def verdict_options(votes: Mapping[str, Vote]) -> list[VerdictOption]:
    """The distinct verdicts on an image, by `votes` of reviewers; the board's own is left out.

    Verdicts are distinct if verdict, reason, box or correct class differ. Verdicts of most reviewers come first, then
    in the order of VERDICTS, of the reasons' names, of the boxes, and of the classes.
    """
    found: dict[Verdict, dict[str, Review]] = {}
    for reviewer, vote in sorted(votes.items()):
        if reviewer != BOARD:
            found.setdefault(vote.review.verdict, {})[reviewer] = vote.review
    order = sorted(found, key=lambda verdict: (-len(found[verdict]), *_order(verdict)))
    return [VerdictOption(number, found[verdict]) for number, verdict in enumerate(order, start=1)]


def _order(verdict: Verdict) -> tuple[int, str, bool, tuple[int, ...], str]:
    """The sort key of a verdict among those of as many reviewers; an unknown box comes after the others."""
    box = crop_box(verdict)
    correct_class = verdict.correct_class if isinstance(verdict, Rejected) else None
    return (
        VERDICTS.index(verdict.kind),
        reason_of(verdict) or "",
        box is UNKNOWN_BOX,
        known_box(box) or (),
        correct_class or "",
    )
