"""Writing a tab's verdicts, each key as one step, so that it can be undone."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cleanset.plumbing.file_locks import ChangedMeanwhileError
from cleanset.review.page.session import Session
from cleanset.review.save import Step, VerdictChange
from cleanset.review.verdicts import Review
from cleanset.vocabulary import Seen


@dataclass
class History:
    """The only way in which a tab writes verdicts, so that each can be undone."""

    session: Session
    shown: dict[str, Review | None] = field(default_factory=dict)
    """This reviewer's verdicts as the tab shows them, by image id; only over these does it write another."""

    opened: set[tuple[int, str]] = field(default_factory=set)
    """The images that were opened by themselves in this tab, by class index and image id."""

    steps: list[Step] = field(default_factory=list)
    """The steps of the tab, the last one last."""

    def seen(self, class_index: int, image_id: str) -> Seen | None:
        """The mark of a verdict on one image: single where it was opened."""
        return "single" if (class_index, image_id) in self.opened else None

    def write(self, class_index: int, reviews: Mapping[str, Review | None]) -> None:
        """Write verdicts by image id (None: remove it), as one step.

        Raises CleansetError or OSError as `review.save.save_all` does.
        """
        before = {image_id: self.session.own(class_index, image_id) for image_id in reviews}
        # as the tab shows it, not as last read: nobody overwrites a verdict that was not on the screen
        changes = {image_id: VerdictChange(review, self.shown.get(image_id)) for image_id, review in reviews.items()}
        self.session.save_verdicts(class_index, changes)
        made = {
            image_id: VerdictChange(review, before[image_id])
            for image_id, review in reviews.items()
            if review != before[image_id]
        }
        if made:
            self.steps.append(Step(class_index, made))

    def is_last_replaced(self) -> bool:
        """Whether somebody has already put back, elsewhere, all that undoing the last step would put back."""
        if not self.steps:
            return False
        step = self.steps[-1]
        self.session.refresh_class(step.class_index)
        for image_id, change in step.changes.items():
            own = self.session.own(step.class_index, image_id)
            if own == change.review or not change.undone.is_made(own):
                return False
        return True

    def undo(self) -> Step | None:
        """Undo the last step, and return it; None without one. A note that it takes away is unsaved again.

        A step is dropped if an entry was changed since; one that could not be written stays, to be tried again.
        """
        if not self.steps:
            return None
        step = self.steps[-1]
        try:
            self.session.save_verdicts(step.class_index, {key: change.undone for key, change in step.changes.items()})
        except ChangedMeanwhileError:
            self.steps.pop()
            raise
        for image_id, note in step.notes_taken_away().items():
            self.session.state.notes.setdefault((step.class_index, image_id), note)
        return self.steps.pop()
