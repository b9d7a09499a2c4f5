"""What a tab shows: a class or the end, what is over it, and where it goes once a verdict is written."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from cleanset.edition.locks import dvc_at_work
from cleanset.errors import CleansetError
from cleanset.images.boxes import UNKNOWN_BOX
from cleanset.review.page.actions import ASKING_FILTER, Base, Mode, Overlay
from cleanset.review.page.class_order import ClassOrder, lacks_box
from cleanset.review.page.cursor import Cursor
from cleanset.review.page.drafts import Draft
from cleanset.review.page.history import History
from cleanset.review.page.keys import ReviewKey
from cleanset.review.page.notices import Notice, UnreadNotices
from cleanset.review.page.options import VerdictOption, verdict_options
from cleanset.review.page.session import Session
from cleanset.review.store import BOARD
from cleanset.review.verdicts import Cropped, Review
from cleanset.vocabulary import Reason

_STATE_LEFT = {
    "settled": "is done.",
    "short": "is short: {lacking}, and no candidates are left.",
    "conflict": "is waiting for the board.",
    "open": "has all your verdicts and is waiting for other reviewers.",
}
"""The notice about a class without further questions, by its state."""

_NOTHING: Mapping[Mode, str] = MappingProxyType(
    {
        "class": "does nothing here; ? shows the keys.",
        "zoom": "does nothing here; ? shows the keys.",
        "end": "does nothing here, as no class is shown; / or n goes to one.",
        "reason": "is not the key of a reason; Esc leaves the image unchanged.",
        "crop": "does nothing while you draw a crop; Enter saves it, Esc cancels.",
        "filter": "is not the key of a filter.",
        "filter_by_reason": "is not the key of a filter.",
        "filter_by_hint": "is not the key of a filter.",
        "back": "does nothing in the list of your verdicts; Esc closes it.",
    }
)
"""What the page says of a key without an action, by mode; in the help and the guidelines every key has one."""


class NotShownError(CleansetError):
    """A verdict on an image that had not been on the screen for long enough when its key was pressed."""


class ShownClass:
    """The place of a tab in the classes, the draft of a verdict, and the history of verdicts.

    A small state machine: `base` is what is beneath, `over` what is over it, and the key of an action leads from
    one to the other.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.cursor = Cursor(session)
        self.order = ClassOrder(session)
        self.history = History(session)
        self.base: Base = "class"
        """The class, its image in focus alone (whatever is asked about it meanwhile), or the end."""
        self.over: Overlay | None = None
        """The question, dialog or text that is open."""
        self.draft: Draft | None = None
        """The verdict that is being given."""
        self.notice: Notice | None = None
        self.unread = UnreadNotices()
        self.pressed = 0
        """The number of the last key answered."""
        self.scrolled_at = 0
        """The number of the last key that left images off the screen: the page scrolls to the one in focus."""

    @property
    def mode(self) -> Mode:
        """What is on the screen, and so what a key means."""
        return self.over or self.base

    @property
    def ended(self) -> bool:
        """Whether nothing is asked any more, and no class is shown."""
        return self.base == "end"

    @property
    def wnid(self) -> str:
        """The class on the screen; empty at the end."""
        return "" if self.ended else self.session.library.classes.keys[self.cursor.class_index]

    def open(self, class_index: int, focus: str | None = None) -> None:
        """Show a class."""
        self.draft = None
        self.base = "class"
        self.session.refresh_class(class_index)
        self.session.state.recent.open_class(class_index, time.monotonic())
        self.cursor.go_to(class_index, focus)
        self.close()
        self._ask_for_box()

    def close(self) -> None:
        """Return from the help, a question or a dialog to what is beneath."""
        self.over = None

    def _tell_nothing(self, key: str, why: str | None = None) -> None:
        """Tell that a key does nothing: by default, that its mode has no action for it. A filter's question ends so."""
        why = why or _NOTHING[self.mode]
        self.notice = Notice(f"{'Space' if key == ' ' else key} {why}")
        if self.mode in ASKING_FILTER:
            self.close()

    def _leave_question(self) -> None:
        """Leave the question for a reason or a filter, if one is open."""
        self.draft = None
        self.close()

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        """Report on the page what could not be saved; the verdict on disk stays unchanged."""
        is_not_shown = False
        try:
            yield
        except NotShownError:
            is_not_shown = True
        except CleansetError as error:
            self.notice = Notice(f"Not saved: {error}", is_error=True)
        except OSError as error:
            self.notice = Notice(f"Not saved: {error.filename or 'writing'}: {error.strerror or error}", is_error=True)
        finally:
            unread = self.unread
            number = self.pressed
            self.notice = unread.count_not_shown(number) if is_not_shown else unread.add(self.notice, number)
            if self.mode not in ("reason", "crop", "note", "search"):
                self.draft = None  # else the next note would save it, for whatever is in focus then

    def _go_on(self, after: int) -> None:
        """Show the next class in which something is asked, else the end."""
        following = self.order.next_asked(after)
        if following is None and self.order.filter == "boxes to draw":
            self.order.filter = "to review"
            following = self.order.next_asked(after)
        if following is None:
            self.base = "end"
            self.close()
        else:
            self.open(following)

    def _ask_for_box(self) -> None:
        """Start cropping the image in focus if only its box is asked for."""
        focus = self.cursor.focus
        if self.mode == "class" and focus is not None and self.cursor.is_box_asked():
            self.history.shown[focus] = self.cursor.own()  # the crop shows it, though its card is hidden
            self._draft_crop()

    def _draft_crop(self) -> None:
        """Begin a crop of the image in focus, with this reviewer's earlier box and reason.

        The board begins with the first of the boxes in conflict.
        """
        own = self.cursor.own()
        crops = [own] if own is not None and isinstance(own.verdict, Cropped) else []
        crops += [option.review for option in self.options() if option.drawn_box]
        self.draft = Draft.of(crops[0]) if crops else Draft("crop", self._reason_of_asked_box())
        self.over = "crop"
        self.propose_box()

    def _reason_of_asked_box(self) -> Reason | None:
        """The reason of the verdict on the image in focus that lacks only its box."""
        votes = self.cursor.status.votes.get((self.cursor.class_index, self.cursor.focus or ""), {})
        reasons = [vote.review.reason for _, vote in sorted(votes.items()) if vote.review.box is UNKNOWN_BOX]
        return reasons[0] if reasons and self.cursor.is_box_asked() else None

    @property
    def is_proposal_awaited(self) -> bool:
        """Whether a box may still be proposed for the crop that is open."""
        return self.mode == "crop" and self.draft is not None and self.draft.awaits_proposal

    def follow_changes(self) -> None:
        """Leave the end once others' verdicts ask for something, and propose a box once its image is measured."""
        if self.mode == "end" and self.order.next_asked(-1) is not None:
            self._go_on(-1)
        self.propose_box()

    def propose_box(self) -> None:
        """Propose a box for the crop that is open, once its image is measured, unless it has one from before."""
        draft = self.draft
        focus = self.cursor.focus
        if self.mode != "crop" or focus is None or draft is None or draft.box or draft.proposal:
            return
        hints = self.session.hints
        hints.request([focus])
        # asked first: what ends in between is found the next time
        draft.awaits_proposal = hints.is_measuring(focus)
        proposal = hints.crop_proposal(focus, self.session.library.params.review.min_crop_pixels)
        if proposal is not None:
            draft.propose(proposal)

    def options(self) -> list[VerdictOption]:
        """The verdicts that the board decides between on the image in focus; empty for others, and where all agree.

        With `every`, the board sees the class as others do.
        """
        focus = self.cursor.focus
        if self.session.reviewer != BOARD or self.ended or self.cursor.every or focus is None:
            return []
        found = verdict_options(self.cursor.status.votes.get((self.cursor.class_index, focus), {}))
        return found if len(found) > 1 else []

    def _check_seen(self, sent: ReviewKey) -> None:
        """Raise CleansetError unless the image in focus had been on the screen for long enough."""
        focus = self.cursor.focus
        assert focus is not None
        self._check_readable(sent)
        if not sent.has_seen(focus):
            raise NotShownError

    def _check_readable(self, sent: ReviewKey) -> None:
        """Raise CleansetError if another class was on the screen, or the image in focus cannot be shown."""
        focus = self.cursor.focus
        assert focus is not None
        self._check_class(sent)
        fault = self.session.library.photos.faults.get(focus)
        if fault is not None and not sent.seen.get(focus):
            raise CleansetError(f"{focus} cannot be shown. {fault}")

    def _check_open(self) -> None:
        """Raise CleansetError at the end, and if nothing can be saved."""
        if self.ended or self.cursor.status.broken:
            raise CleansetError(self.cursor.status.broken or "nothing is shown here")

    def _check_class(self, sent: ReviewKey) -> None:
        """Raise NotShownError if another class was on the screen when the key was pressed."""
        if sent.subject not in (None, self.wnid):
            raise NotShownError

    def _write(self, reviews: Mapping[str, Review | None]) -> None:
        """Write verdicts on images of the class, by image id. If the disk fails, the draft is kept."""
        was = self.cursor.status
        try:
            self.history.write(self.cursor.class_index, reviews)
        except CleansetError:
            self.draft = None
            self.close()
            raise
        self.draft = None
        self.close()
        self._tell_of_dvc()
        if was.questions and not self.cursor.status.questions:
            self._leave_settled()
        elif self.order.filter == "boxes to draw" and lacks_box(was) and not lacks_box(self.cursor.status):
            if self.order.matching():
                self._go_on(self.cursor.class_index)
            else:
                self.order.filter = "to review"

    def _tell_of_dvc(self) -> None:
        """Tell once of a `dvc repro` that is running, as it may have read the reviews before this verdict."""
        state = self.session.state
        is_at_work = bool(dvc_at_work(self.session.stored.folder.parent))
        if is_at_work and not state.told_about_dvc:
            self.notice = Notice(
                "dvc repro is running, and may have read the reviews already: run it again at its end."
            )
        state.told_about_dvc = is_at_work

    def _leave_settled(self) -> None:
        """Continue to the next class, with a notice about the one that is left."""
        left = self.cursor.class_index
        state = self.cursor.status.state
        self.order.skipped.discard(left)
        self._go_on(left)
        count = self.session.library.params.export.images_per_class
        of_count = "" if count == "all" else f" of {count} images"
        said = _STATE_LEFT[state].format(lacking=self.session.lacking_in_words(left) + of_count)
        told = f" {self.notice.text}" if self.notice else ""
        self.notice = Notice(f"{self.session.library.classes.names[left].name} {said}{told}")
