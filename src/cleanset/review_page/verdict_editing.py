"""From a key to a verdict on disk: drafting, saving, notes, taking back, undoing."""

from collections.abc import Collection

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box
from cleanset.review.store import BOARD
from cleanset.review.verdicts import Review
from cleanset.review_page.drafts import Draft
from cleanset.review_page.keys import REASONS
from cleanset.review_page.tab_state import Notice, Step, TabState
from cleanset.saving import ChangedMeanwhileError

_SETTLED = {
    "settled": "is settled.",
    "short": "is short: nothing is left to ask.",
    "conflict": "waits for the board.",
    "open": "has all your verdicts, and waits for other reviewers.",
}
"""What is told of a class in which nothing is asked any more, by its state."""


class VerdictEditing(TabState):
    """A tab in which verdicts are made, one draft at a time."""

    def _begin(self, verdict: str, seen: Collection[str]) -> None:
        if self.status.broken:
            raise CleansetError(self.status.broken)
        if self.focus is None:
            return
        self._check_seen(seen)
        self.draft = Draft(verdict)
        if verdict in ("clean", "unsure"):
            self._save_draft()
        elif verdict == "reject":
            self.mode = "reason"
        else:
            self._draft_crop()

    def _check_seen(self, seen: Collection[str]) -> None:
        """Raise CleansetError unless the image in focus was there to be seen when the key was pressed."""
        assert self.focus is not None
        if self.focus in seen:
            return
        fault = self.session.library.photos.faults.get(self.focus)
        if fault is not None:
            raise CleansetError(f"{self.focus} cannot be shown. {fault}")
        raise CleansetError(f"{self.focus} was not shown yet when the key was pressed: look, and press it again")

    def _edit_draft(self, key: str, box: Box | None) -> None:
        assert self.draft is not None
        if key == "Escape":
            self.draft = None
            self.close()
        elif key in REASONS:
            self.draft.reason = REASONS[key]
            if self.mode == "reason":
                self._save_draft()
        elif self.mode == "crop" and key == "box":
            self.draft.change_box(box)
        elif self.mode == "crop" and key == "v":
            self.draft.toggle_visible(box)
        elif self.mode == "crop" and key == "Enter":
            self._save_crop(box)

    def _save_crop(self, box: Box | None) -> None:
        """Save the crop, or report what is missing; the box stays drawn meanwhile."""
        draft, image = self.draft, self.image()
        assert draft is not None
        assert image is not None
        draft.change_box(box)
        missing = draft.missing(box, image, self.session.library.params.review.min_crop_pixels)
        if missing or box is None:
            self.notice = Notice(f"Not saved yet: {'; '.join(missing)}.", is_error=True)
            return
        draft.box = box
        self._save_draft()

    def _save_draft(self) -> None:
        """Write the drafted verdict on the image in focus; the board's needs a note first."""
        draft, image, own = self.draft, self.image(), self.own()
        assert draft is not None
        assert image is not None
        left = self.class_index
        note = self.session.notes.get((left, image.image_id)) or (own.note if own else None)
        if self.session.reviewer == BOARD and not (note or "").strip():
            self.mode = "note"
            self.notice = Notice("A verdict of the board needs a note that gives the reason.")
            return
        self._write(draft.review(image, note))
        self.session.notes.pop((left, image.image_id), None)
        if self.class_index == left and self.focus == image.image_id:
            self.focus_next()
            self._ask_for_box()

    def _write(self, review: Review | None) -> None:
        """Write a verdict on the image in focus. Where the disk fails, the draft is kept."""
        assert self.focus is not None
        left, image_id, was = self.class_index, self.focus, self.status
        before = self.own()
        try:
            self.session.save_verdict(left, image_id, review, expected=self.shown.get(image_id))
        except CleansetError:
            self.draft = None
            self.close()
            raise
        self.draft = None
        self.close()
        if review != before:
            self.steps.append(Step(left, image_id, before, review))
        if was.questions and not self.status.questions:
            self._leave_settled()

    def _leave_settled(self) -> None:
        """Go on to the next class, with a word on the state of the one that is left."""
        left, state = self.class_index, self.status.state
        self.order.skipped.discard(left)
        self._go_on(left)
        self.notice = Notice(f"{self.session.library.names[left].name} {_SETTLED[state]}")

    def _take_back(self, seen: Collection[str]) -> None:
        if self.own() is not None and not self.ended:
            self._check_seen(seen)
            self._write(None)
            self.notice = Notice("Taken back.")

    def note(self) -> tuple[str, str]:
        """The title of the note's dialog, and the note so far."""
        own = self.own()
        title = "Why the board overrules" if self.draft and self.session.reviewer == BOARD else "A note"
        kept = self.session.notes.get((self.class_index, self.focus or ""))
        return f"{title}, on {self.focus}", kept or (own.note if own else None) or ""

    def leave_note(self, text: str | None) -> None:
        """Keep a note (None: leave it) on the image in focus: with its verdict, if there is one yet."""
        if self.mode != "note" or self.focus is None:
            return
        self.notice, draft, self.draft = None, self.draft, None
        self.close()
        if text is None:
            return
        key = self.class_index, self.focus
        self.session.notes[key] = text.strip()
        with self._reporting_errors():
            own = self.own()
            if draft is not None and text.strip():
                self.draft = draft
                self._save_draft()
            elif own is not None and (own.note or "") != text.strip():
                self._write(own.model_copy(update={"note": text.strip() or None}))
                self.session.notes.pop(key, None)
            elif own is None and text.strip():
                self.notice = Notice("The note is not saved yet: it is saved with a verdict.")
            else:
                self.session.notes.pop(key, None)

    def _undo(self) -> None:
        """Take back the last step of this tab.

        A step whose entry was changed since is forgotten; one that could only not be written is kept.
        """
        if not self.steps:
            self.notice = Notice("Nothing to undo in this tab; d takes a verdict back.")
            return
        step = self.steps[-1]
        try:
            self.session.save_verdict(step.class_index, step.image_id, step.before, expected=step.after)
        except ChangedMeanwhileError:
            self.steps.pop()
            raise
        self.steps.pop()
        self.open(step.class_index, step.image_id)
        undone = step.after.verdict if step.after else "taking it back"
        self.notice = Notice(f"Undone: {undone}.")
