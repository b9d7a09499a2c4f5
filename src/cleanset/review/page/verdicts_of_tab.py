"""How a tab gives verdicts: from the first key until each is written, with reason, box and note; taken back, undone."""

from dataclasses import dataclass, replace

from cleanset.errors import CleansetError
from cleanset.images.boxes import UNKNOWN_BOX
from cleanset.plumbing.validation import shown
from cleanset.review.page.drafts import Draft
from cleanset.review.page.keys import ReviewKey
from cleanset.review.page.likeliest import LikeliestReasons
from cleanset.review.page.notices import Notice
from cleanset.review.page.rest_of_class import rest_in_words, rest_of_class
from cleanset.review.page.session import Session
from cleanset.review.page.shown_class import NotShownError, ShownClass
from cleanset.review.store import BOARD
from cleanset.review.verdicts import ImageKey, Rejected
from cleanset.vocabulary import VerdictKind

BOX_SEEN = "box"
"""Stands among the images seen if the box of a crop was on the screen."""


@dataclass(frozen=True, slots=True)
class Guess:
    """An image that was rejected, or was to be, for its likeliest reason: the next key may change the reason."""

    image: ImageKey | None
    """Class index and image id; None if the key came too early to count, so that nothing was saved."""


class VerdictsOfTab(ShownClass):
    """The verdicts of a tab on the shown class: begun, completed, saved, taken back and undone."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.likeliest = LikeliestReasons(session)
        self._guess: Guess | None = None
        self._early: set[str] = set()

    @property
    def _open_draft(self) -> Draft:
        """The verdict that is being given; there is one in the modes whose actions ask for it."""
        assert self.draft is not None
        return self.draft

    def _begin(self, kind: VerdictKind, sent: ReviewKey) -> None:
        self._check_open()
        if self.cursor.focus is None:
            return
        if kind == "clean":
            self._check_seen(sent)
        elif kind == "unsure":
            self._check_seen_or_leave(sent)
        else:
            # what answers the question is checked: without the question, the same letters would mean something else
            self._check_readable(sent)
        self.draft = Draft(kind)
        if kind in ("clean", "unsure"):
            self._save_draft()
        elif kind == "reject":
            self.over = "reason"
        else:
            self._draft_crop()

    def _ask_for_class(self, sent: ReviewKey) -> None:
        """Begin to reject the image in focus for its wrong class; the class that it shows is searched for."""
        self._begin("reject", sent)
        if self.draft is not None:
            self.draft.reason = "wrong_class"
            self.over = "search"

    def _take_option(self, number: int, sent: ReviewKey) -> None:
        """Begin the board's verdict with that of an option, unchanged; an unknown box has to be drawn."""
        self._check_open()
        self._check_seen(sent)
        chosen = next((option for option in self.options() if option.number == number), None)
        if chosen is None:
            self._tell_nothing(str(number))
            return
        self.draft = Draft.of(chosen.review, note="; ".join(chosen.notes.values()))
        if chosen.review.box is UNKNOWN_BOX:
            self.over = "crop"
        else:
            self._save_draft()

    def _choose_reason(self, sent: ReviewKey) -> None:
        """Take a reason; where only that was asked for, the verdict is complete."""
        if self.mode == "reason":
            self._check_seen_or_leave(sent)
        reason = self.session.library.reason_keys.get(sent.key)
        if reason is None:
            self._tell_nothing(sent.key)
            return
        self._open_draft.reason = reason
        if self.mode == "reason":
            self._save_draft()

    def _change_box(self, sent: ReviewKey) -> None:
        self._open_draft.change_box(sent.box)

    def _state_visible(self, sent: ReviewKey) -> None:
        self._open_draft.toggle_visible(sent.box, was_shown=sent.has_seen(BOX_SEEN))

    def _save_crop(self, sent: ReviewKey) -> None:
        """Save the crop, or report what is missing; the box stays drawn meanwhile."""
        draft = self._open_draft
        image = self.cursor.image()
        box = sent.box
        assert image is not None
        draft.change_box(box)
        missing = draft.missing(box, image, self.session.library.params.review.min_crop_pixels)
        if missing:
            self.notice = Notice(f"Not saved yet: {'; '.join(missing)}.", is_error=True)
            return
        draft.box = box
        self.base = "class"  # to the cards, where the others can be judged too
        self._save_draft()

    def _save_draft(self) -> None:
        """Write the draft as the verdict on the image in focus, and continue; the board must give a note first."""
        draft = self._open_draft
        image = self.cursor.image()
        own = self.cursor.own()
        assert image is not None
        left = self.cursor.class_index
        written = self.session.state.notes.get((left, image.image_id))
        # the note of an earlier decision gives the reason for that one
        if self.session.reviewer == BOARD and not (written or "").strip():
            self.over = "note"
            self.notice = Notice("A board verdict needs a note that gives the reason.")
            return
        note = written or (own.note if own else None)
        self._write({image.image_id: draft.review(image, note, self.history.seen(left, image.image_id))})
        self.session.state.notes.pop((left, image.image_id), None)
        if self.cursor.class_index == left and self.cursor.focus == image.image_id:
            self.cursor.focus_next()
            self._ask_for_box()

    def _reject_by_guess(self, sent: ReviewKey) -> None:
        """Reject an image for its likeliest reason, which its card shows; the next key can change the reason."""
        self._leave_question()
        self._check_open()
        self._guess = Guess(image=None)
        self._check_class(sent)
        if sent.card not in self.cursor.images():
            raise NotShownError
        before = self.cursor.focus
        self.cursor.focus_card(sent.card)
        assert self.cursor.focus is not None
        try:
            self._check_seen_or_leave(sent)
        except NotShownError:
            self.cursor.focus = before
            raise
        self._guess = None
        left = self.cursor.class_index
        focus = self.cursor.focus
        reason = sent.reason or self.likeliest.of(left, [focus])[focus]
        known = self.session.library.reasons
        if reason not in known:
            raise CleansetError(f"unknown reason {shown(reason)}; expected one of {', '.join(known)}")
        self.draft = Draft("reject", reason)
        self._save_draft()
        if self.cursor.class_index == left and self.mode == "class" and before in self.cursor.asked():
            self.cursor.focus = before  # a replacement would be scrolled to
        if self.mode != "note":
            self._guess = Guess(image=(left, focus))
            said = f"{self.notice.text} " if self.notice else ""
            self.notice = Notice(
                f"{said}Rejected for {reason_in_words(reason)}. To change the reason, press Shift and its key."
            )

    def _check_seen_or_leave(self, sent: ReviewKey) -> None:
        """`_check_seen` for a verdict other than clean: the next key for all the rest leaves an image not seen yet."""
        try:
            self._check_seen(sent)
        except NotShownError:
            if sent.subject == self.wnid and self.cursor.focus is not None:
                self._early.add(self.cursor.focus)
            raise

    def _reject_for_reason(self, sent: ReviewKey, guess: Guess | None) -> None:
        """Change the reason of the guess that the key before made, or else reject the image in focus for a reason."""
        reason = self.session.library.reason_keys.get(sent.reason or "")
        if reason is None:
            raise CleansetError("that is not the key of a reason: press ? to see them")
        image = guess.image if guess else None
        own = self.session.own(*image) if image else None
        if image is not None and own is not None and isinstance(own.verdict, Rejected):
            self._guess = guess
            class_index, image_id = image
            self.history.shown[image_id] = own  # the last notice reported it
            self.history.write(class_index, {image_id: replace(own, verdict=Rejected(reason))})
            self.notice = Notice(
                f"{self.session.library.classes.names[class_index].name}: the reason is now {reason_in_words(reason)}."
            )
        elif guess is not None and guess.image is None:
            # the reason was meant for the image of that guess
            raise NotShownError
        elif not self.ended:
            self._check_open()
            if self.cursor.focus is not None:
                self._check_seen_or_leave(sent)
            self._begin("reject", sent)
            if self.draft is not None:
                self.draft.reason = reason
                self._save_draft()

    def _take_rest(self, sent: ReviewKey) -> None:
        """Take as clean, at once, all images of the queue that are on the screen and that nobody has rejected."""
        self._check_open()
        self._check_class(sent)
        if not sent.is_subject_seen:
            raise NotShownError
        if self.session.reviewer == BOARD:
            raise CleansetError("a board verdict needs a note; decide on each image separately.")
        if self.base == "zoom":
            self.notice = Notice("a works on the images side by side: press Esc to go back to them.")
            return
        if not self.cursor.status.questions:
            self._leave_settled()  # somebody else, or another tab, has settled it
            return
        left = self.cursor.class_index
        shown = self.cursor.images()
        rest = rest_of_class(self.cursor, sent.seconds, sent.seen, self._early)
        self._early.clear()  # this notice names them
        if rest["clean"]:
            images = self.session.library.images
            notes = self.session.state.notes
            self._write(
                {
                    image_id: Draft("clean").review(
                        images[image_id], notes.get((left, image_id)), self.history.seen(left, image_id) or "grid"
                    )
                    for image_id in rest["clean"]
                }
            )
            for image_id in rest["clean"]:
                notes.pop((left, image_id), None)
        settled = f" {self.notice.text}" if self.notice else ""
        self.notice = Notice(rest_in_words(rest, shown) + settled, is_error=not rest["clean"])
        to_look_at = rest["early"] + rest["unseen"] + rest["late"]
        if self.cursor.class_index == left and to_look_at:
            self.cursor.focus = to_look_at[0]
            self.scrolled_at = self.pressed
        elif self.cursor.class_index == left and self.cursor.focus in rest["clean"]:
            self.cursor.focus_next()
            self._ask_for_box()

    def _take_back(self, sent: ReviewKey) -> None:
        if self.cursor.own() is not None:
            assert self.cursor.focus is not None
            self._check_seen(sent)
            self._write({self.cursor.focus: None})
            self.notice = Notice("Verdict withdrawn.")
        else:
            self.notice = Notice("Nothing to withdraw: you have no verdict on this image.")

    def _undo(self, _: ReviewKey) -> None:
        is_replaced = self.history.is_last_replaced()
        step = self.history.undo()
        if step is None:
            self.notice = Notice("Nothing to undo in this tab; d withdraws a verdict.")
            return
        self.open(step.class_index, step.image_id)
        if is_replaced:
            own = self.cursor.own()
            stays = f"{own.verdict.kind} stays" if own else "no verdict is left"
            self.notice = Notice(f"Nothing to undo: {step.in_words} has been replaced elsewhere since; {stays}.")
        else:
            self.notice = Notice(f"Undone: {step.in_words}.")

    def note(self) -> tuple[str, str]:
        """The title of the note's dialog, and the note so far."""
        own = self.cursor.own()
        focus = self.cursor.focus
        title = "Why the board overrules" if self.draft and self.session.reviewer == BOARD else "A note"
        kept = self.session.state.notes.get((self.cursor.class_index, focus or ""))
        taken = self.draft.note if self.draft else ""
        number = self.cursor.images().index(focus) + 1 if focus in self.cursor.images() else 0
        return f"{title}, on card {number} ({focus})", kept or taken or (own.note if own else None) or ""

    def leave_note(self, text: str | None) -> None:
        """Keep a note on the image in focus (None: discard it), and save it with an existing verdict."""
        if self.mode != "note" or self.cursor.focus is None:
            return
        draft = self.draft
        self.notice = None
        self.draft = None
        self.unread.begin(None)  # what was reported before the dialog could be read in it
        self.close()
        if text is None:
            return
        key = self.cursor.class_index, self.cursor.focus
        self.session.state.notes[key] = text.strip()
        with self._reporting_errors():
            own = self.cursor.own()
            if draft is not None:
                self._save_with_note(draft, text.strip())
            elif own is not None and (own.note or "") != text.strip():
                self._write({self.cursor.focus: replace(own, note=text.strip() or None)})
                self.session.state.notes.pop(key, None)
            elif own is None and text.strip():
                self.notice = Notice("The note will be saved together with a verdict.")
            else:
                self.session.state.notes.pop(key, None)

    def _save_with_note(self, draft: Draft, text: str) -> None:
        """Save the verdict for which the board was asked to give a note."""
        if not text:
            self.session.state.notes.pop((self.cursor.class_index, self.cursor.focus or ""), None)
            self.notice = Notice("Not saved: a board verdict needs a note.", is_error=True)
            return
        self.draft = draft
        self._save_draft()


def reason_in_words(reason: str) -> str:
    """The name of a reason as people read it."""
    return reason.replace("_", " ")
