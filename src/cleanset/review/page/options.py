"""The verdicts in conflict that the board decides between: each distinct one, with the reviewers who gave it."""

from collections.abc import Mapping
from dataclasses import dataclass

from cleanset.images.boxes import Box
from cleanset.review.page.library import IndexedImage
from cleanset.review.store import BOARD
from cleanset.review.verdicts import Review, Vote
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
    def box(self) -> Box | None:
        """The crop box, if any."""
        return self.review.box

    @property
    def notes(self) -> dict[str, str]:
        """The notes by reviewer."""
        return {name: review.note for name, review in self.reviews.items() if review.note}

    def kept(self, image: IndexedImage) -> float:
        """The share of the image that the crop keeps; 1 without a box."""
        if self.box is None:
            return 1.0
        left, top, right, bottom = self.box
        return (right - left) * (bottom - top) / (image.width * image.height)


def verdict_options(votes: Mapping[str, Vote]) -> list[VerdictOption]:
    """The distinct verdicts on an image, by `votes` of reviewers; the board's own is left out.

    Verdicts are distinct if verdict, reason, box or correct class differ. Verdicts of most reviewers come first, then
    in the order of VERDICTS, of the reasons' names, of the boxes, and of the classes.
    """
    found: dict[tuple[str, ...], dict[str, Review]] = {}
    for reviewer, vote in sorted(votes.items()):
        if reviewer != BOARD:
            review = vote.review
            # edges padded, so that they sort as numbers
            crop = review.crop if isinstance(review.crop, str) else "".join(f"{edge:06d}" for edge in review.crop or ())
            key = review.verdict, review.reason or "", crop, review.correct_class or ""
            found.setdefault(key, {})[reviewer] = review
    order = sorted(found, key=lambda key: (-len(found[key]), VERDICTS.index(key[0]), *key[1:]))
    return [VerdictOption(number, found[key]) for number, key in enumerate(order, start=1)]
