"""One tab: what each key does in it. No HTML, no network."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from cleanset.dataset.ilsvrc import class_indices, wnids
from cleanset.errors import CleansetError
from cleanset.hints.text import can_read_text
from cleanset.images.boxes import Box
from cleanset.review.guidelines import own_guidelines, usual_guidelines
from cleanset.review.store import BOARD
from cleanset.review.verdicts import Review
from cleanset.review_page.board import VerdictOption, verdict_options
from cleanset.review_page.cursor import ClassOrder, Cursor, lacks_box
from cleanset.review_page.drafts import Draft, History
from cleanset.review_page.guidelines import GuidelinesSection, guidelines_sections
from cleanset.review_page.keys import FILTERS, NO_SCREEN, REASONS, VERDICTS, Screen
from cleanset.review_page.likeliest import LikeliestReasons
from cleanset.review_page.look_back import LookBack
from cleanset.review_page.notices import Notice, UnreadNotices
from cleanset.review_page.rest_of_class import rest_in_words, rest_of_class
from cleanset.review_page.session import Session

Mode = Literal["class", "reason", "crop", "zoom", "filter", "help", "note", "search", "end", "back", "guidelines"]

BOX_SEEN = "box"
"""Stands among the images seen if the box of a crop was on the screen."""

_STATE_LEFT = {
    "settled": "is settled.",
    "short": "is short: nothing is left to ask.",
    "conflict": "waits for the board.",
    "open": "has all your verdicts, and waits for other reviewers.",
}
"""The notice about a class in which nothing is asked any more, by its state."""


class NotShownError(CleansetError):
    """A verdict on an image that was not on the screen when its key was pressed."""


class Tab:
    """A tab: its place in the classes, the draft of a verdict, and the history of verdicts.

    Everything that a reviewer does goes through `press`. `ended`: nothing is asked any more, and no class is shown.
    `zoomed`: the image in focus is shown alone, whatever is asked about it meanwhile. `pressed`: the number of the last
    key answered.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.cursor = Cursor(session)
        self.order = ClassOrder(session)
        self.history = History(session)
        self.back = LookBack(session)
        self.guidelines: list[GuidelinesSection] = []
        self.draft: Draft | None = None
        self.notice: Notice | None = None
        self.unread = UnreadNotices()
        self.likeliest = LikeliestReasons(session)
        self.mode: Mode = "class"
        self.ended = self.zoomed = False
        self.pressed = 0
        self._screen = NO_SCREEN
        self._left_by_guess: tuple[int, str] | None = None

    @property
    def wnid(self) -> str:
        """The class on the screen; empty at the end."""
        return "" if self.ended else wnids()[self.cursor.class_index]

    # What is shown

    def start(self, class_index: int | None = None) -> None:
        """Show this class, else the first in which something is asked, else the end."""
        classes = self.session.library.classes
        if class_index is not None and class_index in classes:
            self.open(class_index)
        else:
            self.cursor.class_index = next(iter(classes))
            self._go_on(-1)
        if not can_read_text() and not self.session.told_about_text:
            self.session.told_about_text = True
            self.notice = self.notice or Notice("Hints do not look for text: pip install 'cleanset[text]' adds that.")

    def open(self, class_index: int, focus: str | None = None) -> None:
        """Show a class."""
        self.draft, self.ended, self.zoomed = None, False, False
        self.session.refresh_class(class_index)
        self.session.recent.open_class(class_index, time.monotonic())
        self.cursor.go_to(class_index, focus)
        self.mode = "class"
        self._ask_for_box()

    def close(self) -> None:
        """Return from the help, a question or a dialog to what lies beneath: the image alone, the class or the end."""
        self.mode = "end" if self.ended else "zoom" if self.zoomed else "class"

    # Keys

    def press(
        self,
        key: str,
        seen: Collection[str],
        box: Box | None = None,
        card: str | None = None,
        screen: Screen = NO_SCREEN,
    ) -> None:
        """Carry out a key. `seen`: image ids that were on the screen when it was pressed; `box`: the box drawn.

        Beside the keys of the keyboard: `focus` an image (`card`), `visit` a class (`card` is its wnid), `box`: the box
        drawn has changed, `guess`: reject an image (`card`) for the reason that it shows (`screen.reason`), `reason`:
        reject the image in focus for that reason, `lost`: keys (`card`: how many) were lost with the connection.
        """
        self.pressed += 1
        if self.mode in ("search", "note"):
            return  # typed text, not a command
        self.notice, self._screen = None, screen
        self.unread.begin(screen.answered)
        left_by_guess, self._left_by_guess = self._left_by_guess, None
        with self._reporting_errors():
            if key == "visit":
                self._visit(card)
            elif key == "lost":
                self._tell_lost(card)
            elif self.mode in ("reason", "crop"):
                self._edit_draft(key, seen, box)
            elif self.mode == "filter":
                self._choose_filter(key)
            elif self.mode in ("help", "guidelines", "back"):
                self._press_in_overlay(key, card)
            elif key == "focus":
                self.cursor.focus_card(card)
            elif key == "guess":
                self._reject_by_guess(card, seen)
            elif key == "reason":
                self._reject_for_reason(left_by_guess, seen)
            else:
                self._press_in_class(key, seen)

    def _press_in_overlay(self, key: str, card: str | None) -> None:
        if self.mode == "back":
            self._press_in_look_back(key, card)
        elif self.mode == "help" or key in ("Escape", "Enter", "h"):
            self.close()

    def _press_in_class(self, key: str, seen: Collection[str]) -> None:
        move = self.cursor.move
        actions: dict[str, Callable[[], None]] = {
            "n": lambda: self._go_to_neighbour(1), "PageDown": lambda: self._go_to_neighbour(1),
            "p": lambda: self._go_to_neighbour(-1), "PageUp": lambda: self._go_to_neighbour(-1),
            "s": self._skip, "z": self._undo, "Backspace": self._undo, "d": lambda: self._take_back(seen),
            "a": self._take_rest, "m": self._toggle_every,
            "f": lambda: self._switch("filter"), "/": lambda: self._switch("search"),
            "?": lambda: self._switch("help"), "h": self._show_guidelines, "b": self._look_back,
            "e": lambda: self._switch("note"),
            "Enter": self._toggle_zoom, " ": self._toggle_zoom, "Escape": self._leave_zoom,
            "ArrowRight": lambda: move(1), "ArrowDown": lambda: move(1),
            "ArrowLeft": lambda: move(-1), "ArrowUp": lambda: move(-1),
        }  # fmt: skip
        images = self.cursor.images()
        if key in VERDICTS:
            if not self.ended:
                self._begin(VERDICTS[key], seen)
        elif key in actions:
            actions[key]()
        elif key.isdecimal() and self.mode == "class" and self.options():
            self._take_option(int(key), seen)
        elif key.isdecimal() and self.mode == "class" and 1 <= int(key) <= len(images):
            self.cursor.focus = images[int(key) - 1]

    def _switch(self, mode: Mode) -> None:
        if mode != "note" or (self.cursor.focus is not None and not self.ended):
            self.mode = mode

    def _show_guidelines(self) -> None:
        try:
            text = own_guidelines(self.session.stored.folder) or usual_guidelines()
        except (CleansetError, OSError) as error:
            self.notice = Notice(str(error), is_error=True)
            return
        # read at each press: the file may be edited meanwhile
        self.guidelines = guidelines_sections(self.session, text)
        self.mode = "guidelines"

    def _look_back(self) -> None:
        self.back.refresh()
        self.mode = "back"

    def _press_in_look_back(self, key: str, card: str | None) -> None:
        """Carry out a key among one's own verdicts. `card`: of a tile class index and image id, or a filter's name."""
        if key in ("Escape", "b"):
            self.close()
        elif key == "focus" and card:
            class_index, _, image_id = card.partition("/")
            if class_index.isdecimal():
                self.back.focus_on((int(class_index), image_id))
        elif key == "choose":
            self.back.choose(card)
        elif key in ("n", "p", "PageDown", "PageUp"):
            self.back.step(1 if key in ("n", "PageDown") else -1)
        elif key == "m":
            self.back.show_more()
        elif key in ("Enter", " ") and self.back.focus is not None:
            self.open(*self.back.focus)

    def _toggle_zoom(self) -> None:
        self.zoomed = not self.zoomed and self.cursor.focus is not None and not self.ended
        self.close()

    def _leave_zoom(self) -> None:
        self.zoomed = False
        self.close()

    def _toggle_every(self) -> None:
        self.cursor.every = not self.cursor.every

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        """Report on the page what could not be saved; the verdict on disk stays unchanged."""
        is_not_shown = False
        try:
            yield
        except NotShownError:
            is_not_shown = True
        except CleansetError as error:
            self.notice = Notice(f"Not saved. {error}", is_error=True)
        except OSError as error:
            self.notice = Notice(f"Not saved. {error.filename or 'writing'}: {error.strerror or error}", is_error=True)
        finally:
            unread, number = self.unread, self.pressed
            self.notice = unread.count_not_shown(number) if is_not_shown else unread.add(self.notice, number)
            if self.mode not in ("reason", "crop", "note"):
                self.draft = None  # else the next note would save it, for whatever is in focus then

    # From class to class

    def _go_on(self, after: int) -> None:
        """Show the next class in which something is asked, else the end."""
        following = self.order.next_asked(after)
        if following is None and self.order.filter == "boxes":
            self.order.filter = "unsettled"
            following = self.order.next_asked(after)
        if following is None:
            self.mode, self.ended, self.zoomed = "end", True, False
        else:
            self.open(following)

    def _go_to_neighbour(self, direction: int) -> None:
        following = self.order.neighbour(self.cursor.class_index, direction)
        if following is None:
            self.notice = Notice(f"No other class here: {self.order.filter}. f chooses which classes.")
        else:
            self.open(following)

    def _skip(self) -> None:
        self.order.skipped.add(self.cursor.class_index)
        self._go_on(self.cursor.class_index)

    def _choose_filter(self, key: str) -> None:
        self.close()
        if key not in FILTERS:
            return
        if not self.order.matching(FILTERS[key]):
            self.notice = Notice(f"No class here: {FILTERS[key]}.")
            return
        self.order.filter = FILTERS[key]
        if self.cursor.class_index not in self.order.matching():
            self._go_to_neighbour(1)

    def _visit(self, wnid: str | None) -> None:
        class_index = class_indices().get(wnid or "")
        if class_index is not None and class_index in self.session.library.classes:
            self.draft = None
            self.open(class_index)

    def leave_search(self, class_index: int | None) -> None:
        """Go to the class that was found (None: stay)."""
        if class_index is not None:
            self.notice = None
            self.open(class_index)
        elif self.mode == "search":
            self.close()

    def _tell_lost(self, count: str | None) -> None:
        keys = f"{count} keys" if count != "1" else "1 key"
        self.notice = Notice(f"The connection was lost, and {keys} with it: look which verdicts are missing.", True)

    # Verdicts, one draft at a time

    def _begin(self, verdict: str, seen: Collection[str]) -> None:
        if self.cursor.status.broken:
            raise CleansetError(self.cursor.status.broken)
        if self.cursor.focus is None:
            return
        self._check_seen(seen)
        self.draft = Draft(verdict)
        if verdict in ("clean", "unsure"):
            self._save_draft()
        elif verdict == "reject":
            self.mode = "reason"
        else:
            self._draft_crop()

    def options(self) -> list[VerdictOption]:
        """The verdicts that the board decides between on the image in focus; empty for others, and where all agree.

        With `every`, the board sees the class as others do.
        """
        focus = self.cursor.focus
        if self.session.reviewer != BOARD or self.ended or self.cursor.every or focus is None:
            return []
        found = verdict_options(self.cursor.status.votes.get((self.cursor.class_index, focus), {}))
        return found if len(found) > 1 else []

    def _take_option(self, number: int, seen: Collection[str]) -> None:
        """Begin the board's verdict with that of an option, unchanged; an unknown box has to be drawn."""
        if self.cursor.status.broken:
            raise CleansetError(self.cursor.status.broken)
        self._check_seen(seen)
        chosen = next((option for option in self.options() if option.number == number), None)
        if chosen is None:
            return
        notes = "; ".join(chosen.notes.values())
        self.draft = Draft(chosen.review.verdict, chosen.review.reason, chosen.box, note=notes)
        if chosen.review.box_unknown:
            self.mode = "crop"
        else:
            self._save_draft()

    def _check_seen(self, seen: Collection[str]) -> None:
        """Raise CleansetError unless the image in focus was on the screen when the key was pressed."""
        focus = self.cursor.focus
        assert focus is not None
        self._check_class()
        if focus in seen:
            return
        fault = self.session.library.photos.faults.get(focus)
        if fault is not None:
            raise CleansetError(f"{focus} cannot be shown. {fault}")
        raise NotShownError

    def _check_class(self) -> None:
        """Raise NotShownError if another class was on the screen when the key was pressed."""
        if self._screen.wnid not in (None, self.wnid):
            raise NotShownError

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
        crops = [own] if own is not None and own.verdict == "crop" else []
        crops += [option.review for option in self.options() if option.box]
        if crops:
            self.draft = Draft("crop", crops[0].reason, crops[0].box)
        else:
            self.draft = Draft("crop", self._reason_of_asked_box())
        self.mode = "crop"
        self.propose_box()

    def _reason_of_asked_box(self) -> str | None:
        """The reason of the verdict on the image in focus that lacks only its box."""
        votes = self.cursor.status.votes.get((self.cursor.class_index, self.cursor.focus or ""), {})
        reasons = [vote.review.reason for _, vote in sorted(votes.items()) if vote.review.box_unknown]
        return reasons[0] if reasons and self.cursor.is_box_asked() else None

    @property
    def is_proposal_awaited(self) -> bool:
        """Whether a box may still be proposed for the crop that is open."""
        return self.mode == "crop" and self.draft is not None and self.draft.awaits_proposal

    def propose_box(self) -> None:
        """Propose a box for the crop that is open, once its image is measured, unless it has one from before."""
        draft, focus = self.draft, self.cursor.focus
        if self.mode != "crop" or focus is None or draft is None or draft.box or draft.proposal:
            return
        hints = self.session.hints
        hints.request([focus])
        # asked first: what ends in between is found the next time
        draft.awaits_proposal = hints.is_measuring(focus)
        proposal = hints.crop_proposal(focus, self.session.library.params.review.min_crop_pixels)
        if proposal is not None:
            draft.propose(proposal)

    def _edit_draft(self, key: str, seen: Collection[str], box: Box | None) -> None:
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
            self.draft.toggle_visible(box, BOX_SEEN in seen)
        elif self.mode == "crop" and key == "Enter":
            self._save_crop(box)
        elif self.mode == "reason" and len(key) == 1:
            self.notice = Notice(f"{key} is not the key of a reason; Esc leaves the image as it is.")

    def _save_crop(self, box: Box | None) -> None:
        """Save the crop, or report what is missing; the box stays drawn meanwhile."""
        draft, image = self.draft, self.cursor.image()
        assert draft is not None
        assert image is not None
        draft.change_box(box)
        missing = draft.missing(box, image, self.session.library.params.review.min_crop_pixels)
        if missing:
            self.notice = Notice(f"Not saved yet: {'; '.join(missing)}.", is_error=True)
            return
        draft.box = box
        self._save_draft()

    def _save_draft(self, go_on: bool = True) -> None:
        """Write the draft as the verdict on the image in focus; the board must give a note first.

        `go_on`: focus the next image that is asked for.
        """
        draft, image, own = self.draft, self.cursor.image(), self.cursor.own()
        assert draft is not None
        assert image is not None
        left = self.cursor.class_index
        note = self.session.notes.get((left, image.image_id)) or (own.note if own else None)
        if self.session.reviewer == BOARD and not (note or "").strip():
            self.mode = "note"
            self.notice = Notice("A verdict of the board needs a note that gives the reason.")
            return
        self._write({image.image_id: draft.review(image, note, self.history.seen(left, image.image_id))})
        self.session.notes.pop((left, image.image_id), None)
        if go_on and self.cursor.class_index == left and self.cursor.focus == image.image_id:
            self.cursor.focus_next()
            self._ask_for_box()

    def _reject_by_guess(self, card: str | None, seen: Collection[str]) -> None:
        """Reject an image for its likeliest reason, which its card shows; the focus stays, to change the reason."""
        if self.ended or self.cursor.status.broken:
            raise CleansetError(self.cursor.status.broken or "nothing is shown here")
        self._check_class()
        if card not in self.cursor.images():
            raise NotShownError
        self.cursor.focus_card(card)
        assert self.cursor.focus is not None
        self._check_seen(seen)
        left, focus = self.cursor.class_index, self.cursor.focus
        reason = self._screen.reason or self.likeliest.of(left, [focus])[focus]
        self.draft = Draft("reject", reason)
        self._save_draft(go_on=False)
        if self.mode != "note" and self.cursor.class_index != left:
            self._left_by_guess = left, focus
            said = f"{self.notice.text} " if self.notice else ""
            self.notice = Notice(f"{said}Rejected last: {_words(reason)}; Shift and a reason's key changes it.")

    def _reject_for_reason(self, left_by_guess: tuple[int, str] | None, seen: Collection[str]) -> None:
        """Reject the image in focus for a reason, or change the reason of the last guess if that left its class."""
        reason = REASONS.get(self._screen.reason or "")
        if reason is None:
            raise CleansetError("not the key of a reason: ? shows them")
        own = self.session.own(*left_by_guess) if left_by_guess else None
        if left_by_guess is not None and own is not None and own.verdict == "reject":
            class_index, image_id = left_by_guess
            self.history.shown[image_id] = own  # the last notice told it
            self.history.write(class_index, {image_id: own.model_copy(update={"reason": reason})})
            self.notice = Notice(f"{self.session.library.names[class_index].name}: rejected last: {_words(reason)}.")
        elif not self.ended:
            self._begin("reject", seen)
            if self.draft is not None:
                self.draft.reason = reason
                self._save_draft()

    def _take_rest(self) -> None:
        """Take as clean, at once, all images of the queue that are on the screen and that nobody has rejected."""
        if self.ended or self.cursor.status.broken:
            raise CleansetError(self.cursor.status.broken or "nothing is shown here")
        self._check_class()
        if self.session.reviewer == BOARD:
            raise CleansetError("the board gives a note with each verdict: decide on each image by itself")
        if self.zoomed:
            self.notice = Notice("a takes the images that are side by side: Esc goes back to them.")
            return
        left, shown = self.cursor.class_index, self.cursor.images()
        rest = rest_of_class(self.cursor, self._screen.seconds, self.session.library.params.review.seconds_per_image)
        if rest.clean:
            images, notes = self.session.library.images, self.session.notes
            self._write(
                {
                    image_id: Draft("clean").review(
                        images[image_id], notes.get((left, image_id)), self.history.seen(left, image_id) or "grid"
                    )
                    for image_id in rest.clean
                }
            )
            for image_id in rest.clean:
                notes.pop((left, image_id), None)
        settled = f" {self.notice.text}" if self.notice else ""
        self.notice = Notice(rest_in_words(rest, shown) + settled, is_error=not rest.clean)
        if self.cursor.class_index == left and self.cursor.focus in rest.clean:
            self.cursor.focus_next()
            self._ask_for_box()

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
        if was.questions and not self.cursor.status.questions:
            self._leave_settled()
        elif self.order.filter == "boxes" and lacks_box(was) and not lacks_box(self.cursor.status):
            if self.order.matching():
                self._go_on(self.cursor.class_index)
            else:
                self.order.filter = "unsettled"

    def _leave_settled(self) -> None:
        """Go on to the next class, with a notice about the one that is left."""
        left, state = self.cursor.class_index, self.cursor.status.state
        self.order.skipped.discard(left)
        self._go_on(left)
        self.notice = Notice(f"{self.session.library.names[left].name} {_STATE_LEFT[state]}")

    def _take_back(self, seen: Collection[str]) -> None:
        if self.cursor.own() is not None and not self.ended:
            assert self.cursor.focus is not None
            self._check_seen(seen)
            self._write({self.cursor.focus: None})
            self.notice = Notice("Taken back.")

    def _undo(self) -> None:
        step = self.history.undo()
        if step is None:
            self.notice = Notice("Nothing to undo in this tab; d takes a verdict back.")
            return
        self.open(step.class_index, step.image_id)
        self.notice = Notice(f"Undone: {step.in_words}.")

    # Notes

    def note(self) -> tuple[str, str]:
        """The title of the note's dialog, and the note so far."""
        own, focus = self.cursor.own(), self.cursor.focus
        title = "Why the board overrules" if self.draft and self.session.reviewer == BOARD else "A note"
        kept = self.session.notes.get((self.cursor.class_index, focus or ""))
        taken = self.draft.note if self.draft else ""
        return f"{title}, on {focus}", kept or taken or (own.note if own else None) or ""

    def leave_note(self, text: str | None) -> None:
        """Keep a note on the image in focus (None: discard it), and save it if there is a verdict already."""
        if self.mode != "note" or self.cursor.focus is None:
            return
        self.notice, draft, self.draft = None, self.draft, None
        self.close()
        if text is None:
            return
        key = self.cursor.class_index, self.cursor.focus
        self.session.notes[key] = text.strip()
        with self._reporting_errors():
            own = self.cursor.own()
            if draft is not None:
                self._save_with_note(draft, text.strip())
            elif own is not None and (own.note or "") != text.strip():
                self._write({self.cursor.focus: own.model_copy(update={"note": text.strip() or None})})
                self.session.notes.pop(key, None)
            elif own is None and text.strip():
                self.notice = Notice("The note is not saved yet: it is saved with a verdict.")
            else:
                self.session.notes.pop(key, None)

    def _save_with_note(self, draft: Draft, text: str) -> None:
        """Save the verdict for which the board was asked to give a note."""
        if not text:
            self.session.notes.pop((self.cursor.class_index, self.cursor.focus or ""), None)
            self.notice = Notice("Not saved: a verdict of the board needs a note.", is_error=True)
            return
        self.draft = draft
        self._save_draft()


def _words(reason: str) -> str:
    return reason.replace("_", " ")
