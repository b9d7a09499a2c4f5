"""A step of a review: the verdicts that one key changed, which can be undone together."""

from collections.abc import Mapping
from dataclasses import dataclass

from cleanset.review.save import VerdictChange


@dataclass(frozen=True, slots=True)
class Step:
    """The verdicts on images of a class that one key changed, by image id; `expected` is the one before."""

    class_index: int
    changes: Mapping[str, VerdictChange]

    @property
    def image_id(self) -> str:
        """The first image changed."""
        return next(iter(self.changes))

    @property
    def in_words(self) -> str:
        """The step in words, such as: clean, 3 images."""
        after = self.changes[self.image_id].review
        what = after.verdict.kind if after else "taking it back"
        return what if len(self.changes) == 1 else f"{what}, {len(self.changes)} images"

    def notes_taken_away(self) -> dict[str, str]:
        """By image id, the notes that were saved with a first verdict, and go with it when the step is undone."""
        return {
            image_id: change.review.note
            for image_id, change in self.changes.items()
            if change.expected is None and change.review is not None and change.review.note
        }
