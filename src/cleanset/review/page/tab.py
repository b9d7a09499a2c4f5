"""One tab of the review page: the effect of each key. No HTML, no network."""

from collections.abc import Callable

from cleanset.errors import CleansetError, install_command
from cleanset.review.guidelines import own_guidelines, usual_guidelines
from cleanset.review.hints.text import can_read_text
from cleanset.review.page.cursor import rest_in_words, rest_of_class
from cleanset.review.page.drafts import Draft, LikeliestReasons
from cleanset.review.page.keys import BY_KEYS, FILTERS, REASON_KEYS, VERDICT_KEYS, Notice, ReviewKey
from cleanset.review.page.overlays import GuidelinesSection, LookBack, guidelines_sections
from cleanset.review.page.session import Session
from cleanset.review.page.shown_class import Mode, NotShownError, ShownClass
from cleanset.review.store import BOARD, MAX_NOTE

BOX_SEEN = "box"
"""Stands among the images seen if the box of a crop was on the screen."""

_KEYS_AT_THE_END = ("n", "PageDown", "p", "PageUp", "z", "Backspace", "f", "/", "?", "h", "b")
_NOT_OPEN = "does nothing here: nothing is open."


class Tab(ShownClass):
    """A tab: the shown class with its verdicts, its overlays, and the ways to other classes.

    Everything that a reviewer does goes through `press`.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.back = LookBack(session)
        self.guidelines: list[GuidelinesSection] = []
        self.likeliest = LikeliestReasons(session)
        self._last_guess: tuple[int, str] | None = None
        self._is_guess_lost = False
        self._early: set[str] = set()
        self.asked_filter: str | None = None

    # Keys

    def press(self, sent: ReviewKey) -> None:
        """Carry out a key."""
        self.pressed += 1
        if self.mode in ("search", "note"):
            return  # typed text, not a command
        key = sent.key
        self.notice = None
        self._sent = sent
        self.unread.begin(sent.answered)
        last_guess = self._last_guess
        self._last_guess = None
        was_guess_lost = self._is_guess_lost
        self._is_guess_lost = False
        with self._reporting_errors():
            if key == "visit":
                self._visit(sent.card)
            elif key == "lost":
                self._tell_lost(sent.card)
            elif self.mode in ("reason", "filter") and key in ("focus", "guess"):
                self._point_at(key)
            elif self.mode in ("reason", "crop"):
                self._edit_draft(key)
            elif self.mode in ("filter", "help", "guidelines", "back"):
                self._press_in_overlay(key)
            elif key == "reason":
                self._reject_for_reason(last_guess, was_guess_lost=was_guess_lost)
            elif key in ("focus", "guess"):
                self._point_at(key)
            else:
                self._press_in_class(key)

    def _press_in_overlay(self, key: str) -> None:
        if self.mode == "filter":
            self._choose_filter(key)
        elif self.mode == "back":
            self._press_in_look_back(key, self._sent.card)
        else:
            self.close()

    def _point_at(self, key: str) -> None:
        """Focus the card that is clicked, or reject it; the question of a filter ends, that of a reason goes there."""
        is_rejecting = self.draft is not None
        if self.mode in ("reason", "filter"):
            self.draft = self.asked_filter = None
            self.close()
        if key == "guess":
            self._reject_by_guess(self._sent.card)
        else:
            self.cursor.focus_card(self._sent.card)
            if is_rejecting:
                self._begin("reject")

    def _tell_nothing(self, key: str, why: str = "does nothing here; ? shows the keys.") -> None:
        self.notice = Notice(f"{'Space' if key == ' ' else key} {why}")

    def _press_in_class(self, key: str) -> None:
        move = self.cursor.move
        actions: dict[str, Callable[[], None]] = {
            "n": lambda: self._go_to_neighbour(1), "PageDown": lambda: self._go_to_neighbour(1),
            "p": lambda: self._go_to_neighbour(-1), "PageUp": lambda: self._go_to_neighbour(-1),
            "s": self._skip, "z": self._undo, "Backspace": self._undo, "d": self._take_back,
            "a": self._take_rest, "m": self._toggle_every,
            "f": lambda: self._switch("filter"), "/": lambda: self._switch("search"),
            "?": lambda: self._switch("help"), "h": self._show_guidelines, "b": self._look_back,
            "e": lambda: self._switch("note"), "i": self._ask_for_class,
            "Enter": self._toggle_zoom, " ": self._toggle_zoom, "Escape": self._leave_zoom,
            "ArrowRight": lambda: move(1), "ArrowDown": lambda: move(1),
            "ArrowLeft": lambda: move(-1), "ArrowUp": lambda: move(-1),
            "q": lambda: self._tell_nothing(key, "is held down with the mouse over an image: it magnifies there."),
        }  # fmt: skip
        images = self.cursor.images()
        before = (self.cursor.focus, self.mode)
        if self.ended and key not in _KEYS_AT_THE_END:
            self._tell_nothing(key, "does nothing here: no class is shown; / and n go to one.")
        elif key in VERDICT_KEYS:
            self._begin(VERDICT_KEYS[key])
        elif key in actions:
            actions[key]()
            if key.startswith(("Arrow", "Esc")) and (self.cursor.focus, self.mode) == before:
                self._tell_nothing(key, "does nothing here: there is no other image." if key[0] == "A" else _NOT_OPEN)
        elif key.isdecimal() and self.mode == "class" and self.options():
            self._take_option(int(key))
        elif key.isdecimal() and self.mode == "class" and 1 <= int(key) <= len(images):
            self.cursor.focus = images[int(key) - 1]
        else:
            self._tell_nothing(key)

    def _switch(self, mode: Mode) -> None:
        if mode != "note" or (self.cursor.focus is not None and not self.ended):
            self.mode = mode

    def _toggle_zoom(self) -> None:
        self.zoomed = not self.zoomed and self.cursor.focus is not None and not self.ended
        self.close()

    def _leave_zoom(self) -> None:
        self.zoomed = False
        self.close()

    def _toggle_every(self) -> None:
        before = self.cursor.images()
        self.cursor.every = not self.cursor.every
        if self.cursor.images() == before:
            self.notice = Notice("No other image of this class is a candidate.")

    def _tell_lost(self, count: str | None) -> None:
        keys = f"{count} keys" if count != "1" else "1 key"
        self.notice = Notice(f"The connection was lost, and {keys} with it: look which verdicts are missing.", True)

    def resume(self, name: str) -> None:
        """Go on with the steps that the browser's tab of this name can undo, though the page was loaded anew."""
        if name:
            self.history.steps = self.session.steps.setdefault(name, self.history.steps)

    def keep_note(self, image_id: str | None, text: str) -> None:
        """Take over a note without a verdict, which the browser has kept while the server was started anew."""
        if image_id in self.cursor.images() and text.strip():
            self.session.notes.setdefault((self.cursor.class_index, image_id or ""), text.strip()[:MAX_NOTE])

    # Verdicts

    def _begin(self, verdict: str) -> None:
        self._check_open()
        if self.cursor.focus is None:
            return
        self._check_seen()
        if verdict == "clean":
            self._check_not_meant_before()
        elif verdict == "unsure":
            self._check_not_too_early(self.cursor.focus)
        self.draft = Draft(verdict)
        if verdict in ("clean", "unsure"):
            self._save_draft()
        elif verdict == "reject":
            self.mode = "reason"
        else:
            self._draft_crop()

    def _ask_for_class(self) -> None:
        """Begin to reject the image in focus for its wrong class; the class that it shows is searched for."""
        self._begin("reject")
        if self.draft is not None:
            self.draft.reason = "wrong_class"
            self.mode = "search"

    def _take_option(self, number: int) -> None:
        """Begin the board's verdict with that of an option, unchanged; an unknown box has to be drawn."""
        self._check_open()
        self._check_seen()
        chosen = next((option for option in self.options() if option.number == number), None)
        if chosen is None:
            self._tell_nothing(str(number))
            return
        notes = "; ".join(chosen.notes.values())
        review = chosen.review
        self.draft = Draft(review.verdict, review.reason, review.correct_class, chosen.box, note=notes)
        if chosen.review.box_unknown:
            self.mode = "crop"
        else:
            self._save_draft()

    def _edit_draft(self, key: str) -> None:
        assert self.draft is not None
        if key == "Escape":
            self.draft = None
            self.close()
        elif key in REASON_KEYS:
            self.draft.reason = REASON_KEYS[key]
            if self.mode == "reason":
                self._save_draft()
        elif self.mode == "crop" and key == "box":
            self.draft.change_box(self._sent.box)
        elif self.mode == "crop" and key == "v":
            self.draft.toggle_visible(self._sent.box, was_shown=BOX_SEEN in self._sent.seen)
        elif self.mode == "crop" and key == "Enter":
            self._save_crop()
        elif self.mode == "reason":
            self._tell_nothing(key, "is not the key of a reason; Esc leaves the image as it is.")
        else:
            self._tell_nothing(key, "does nothing while a crop is drawn; Enter saves it, Esc leaves it.")

    def _save_crop(self) -> None:
        """Save the crop, or report what is missing; the box stays drawn meanwhile."""
        draft = self.draft
        image = self.cursor.image()
        box = self._sent.box
        assert draft is not None
        assert image is not None
        draft.change_box(box)
        missing = draft.missing(box, image, self.session.library.params.review.min_crop_pixels)
        if missing:
            self.notice = Notice(f"Not saved yet: {'; '.join(missing)}.", is_error=True)
            return
        draft.box = box
        self.zoomed = False  # to the cards, where the others can be judged too
        self._save_draft()

    def _save_draft(self) -> None:
        """Write the draft as the verdict on the image in focus, and go on; the board must give a note first."""
        draft = self.draft
        image = self.cursor.image()
        own = self.cursor.own()
        assert draft is not None
        assert image is not None
        left = self.cursor.class_index
        written = self.session.notes.get((left, image.image_id))
        # the note of an earlier decision gives the reason for that one
        if self.session.reviewer == BOARD and not (written or "").strip():
            self.mode = "note"
            self.notice = Notice("A verdict of the board needs a note that gives the reason.")
            return
        note = written or (own.note if own else None)
        self._write({image.image_id: draft.review(image, note, self.history.seen(left, image.image_id))})
        self.session.notes.pop((left, image.image_id), None)
        if self.cursor.class_index == left and self.cursor.focus == image.image_id:
            self.cursor.focus_next()
            self._ask_for_box()

    def _reject_by_guess(self, card: str | None) -> None:
        """Reject an image for its likeliest reason, which its card shows; the next key can change the reason."""
        self._check_open()
        self._is_guess_lost = True
        self._check_class()
        self._check_not_too_early(card)
        if card not in self.cursor.images():
            raise NotShownError
        before = self.cursor.focus
        self.cursor.focus_card(card)
        assert self.cursor.focus is not None
        self._check_seen()
        self._is_guess_lost = False
        left = self.cursor.class_index
        focus = self.cursor.focus
        reason = self._sent.reason or self.likeliest.of(left, [focus])[focus]
        self.draft = Draft("reject", reason)
        self._save_draft()
        if self.cursor.class_index == left and self.mode == "class" and before in self.cursor.asked():
            self.cursor.focus = before  # a replacement would be scrolled to
        if self.mode != "note":
            self._last_guess = left, focus
            said = f"{self.notice.text} " if self.notice else ""
            self.notice = Notice(f"{said}Rejected last: {_words(reason)}; Shift and a reason's key changes it.")

    def _check_not_too_early(self, image_id: str | None) -> None:
        """Raise NotShownError for a verdict as soon as the last one has brought another class; remember the image."""
        try:
            self._check_not_meant_before()
        except NotShownError:
            # not clean for the reviewer: the next key for all the rest must leave it
            self._early.update([image_id] if image_id else [])
            raise

    def _reject_for_reason(self, last_guess: tuple[int, str] | None, *, was_guess_lost: bool) -> None:
        """Change the reason of the guess that the key before made, or else reject the image in focus for a reason."""
        reason = REASON_KEYS.get(self._sent.reason or "")
        if reason is None:
            raise CleansetError("not the key of a reason: ? shows them")
        own = self.session.own(*last_guess) if last_guess else None
        if last_guess is not None and own is not None and own.verdict == "reject":
            self._last_guess = last_guess
            class_index, image_id = last_guess
            self.history.shown[image_id] = own  # the last notice told it
            self.history.write(
                class_index, {image_id: own.model_copy(update={"reason": reason, "correct_class": None})}
            )
            self.notice = Notice(
                f"{self.session.library.classes.names[class_index].name}: rejected last: {_words(reason)}."
            )
        elif was_guess_lost:
            # the reason was meant for the image of that guess
            raise NotShownError
        elif not self.ended:
            self._check_not_too_early(self.cursor.focus)
            self._begin("reject")
            if self.draft is not None:
                self.draft.reason = reason
                self._save_draft()

    def _take_rest(self) -> None:
        """Take as clean, at once, all images of the queue that are on the screen and that nobody has rejected."""
        self._check_open()
        self._check_class()
        self._check_shown()
        if self.session.reviewer == BOARD:
            raise CleansetError("A verdict of the board needs a note: decide on each image by itself.")
        if self.zoomed:
            self.notice = Notice("a takes the images that are side by side: Esc goes back to them.")
            return
        if not self.cursor.status.questions:
            self._leave_settled()  # somebody else, or another tab, has settled it
            return
        left = self.cursor.class_index
        shown = self.cursor.images()
        rest = rest_of_class(self.cursor, self._sent.seconds, self._sent.seen, self._early)
        self._early.clear()  # this notice names them
        if rest["clean"]:
            images = self.session.library.images
            notes = self.session.notes
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

    def _take_back(self) -> None:
        if self.cursor.own() is not None:
            assert self.cursor.focus is not None
            self._check_seen()
            self._write({self.cursor.focus: None})
            self.notice = Notice("Taken back.")
        else:
            self.notice = Notice("Nothing to take back: no verdict of yours on this image.")

    def _undo(self) -> None:
        is_replaced = self.history.is_last_replaced()
        step = self.history.undo()
        if step is None:
            self.notice = Notice("Nothing to undo in this tab; d takes a verdict back.")
            return
        self.open(step.class_index, step.image_id)
        if is_replaced:
            own = self.cursor.own()
            stays = f"{own.verdict} stays" if own else "no verdict is left"
            self.notice = Notice(f"Nothing to undo: {step.in_words} was replaced elsewhere meanwhile; {stays}.")
        else:
            self.notice = Notice(f"Undone: {step.in_words}.")

    def note(self) -> tuple[str, str]:
        """The title of the note's dialog, and the note so far."""
        own = self.cursor.own()
        focus = self.cursor.focus
        title = "Why the board overrules" if self.draft and self.session.reviewer == BOARD else "A note"
        kept = self.session.notes.get((self.cursor.class_index, focus or ""))
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
        self.unread.begin(None)  # what was told before the dialog could be read in it
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

    # Over the class: guidelines, and one's own verdicts

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
        else:
            self._tell_nothing(key, "does nothing while you look back; Esc closes this.")

    # From class to class

    def start(self, class_index: int | None = None) -> None:
        """Show this class, else the first with a question, else the end."""
        classes = self.session.library.by_class
        if class_index is not None and class_index in classes:
            self.open(class_index)
        else:
            self.cursor.class_index = next(iter(classes))
            self._go_on(-1)
        if not can_read_text() and not self.session.told_about_text:
            self.session.told_about_text = True
            self.notice = self.notice or Notice(f"Hints do not look for text: {install_command('text')} adds that.")

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
        asked = self.asked_filter
        self.asked_filter = BY_KEYS.get(key) if self.asked_filter is None else None
        if self.asked_filter is not None:
            return  # for which reason?
        self.close()
        reasons = {each: f"{asked}: {_words(reason)}" for each, reason in REASON_KEYS.items()}
        filters = FILTERS if asked is None else reasons
        if key not in filters:
            if key != "Escape":
                self._tell_nothing(key, "is not the key of a filter.")
            return
        if not self.order.matching(filters[key]):
            self.notice = Notice(f"No class here: {filters[key]}.")
            return
        self.order.filter = filters[key]
        if self.cursor.class_index not in self.order.matching():
            self._go_to_neighbour(1)

    def _visit(self, wnid: str | None) -> None:
        class_index = self.session.library.classes.indices.get(wnid or "")
        if class_index is not None and class_index in self.session.library.by_class:
            self.draft = None
            self.open(class_index)

    def leave_search(self, class_index: int | None) -> None:
        """Go to the class that was found (None: stay), or save it as the one that the image in focus shows."""
        if class_index is not None and self.draft is not None and self.mode == "search":
            self.notice = None
            self.unread.begin(None)
            with self._reporting_errors():
                self.close()
                if class_index == self.cursor.class_index:
                    raise CleansetError("That is the class of the image already: i, and choose another.")
                self.draft.correct_class = self.session.library.classes.keys[class_index]
                self._save_draft()
        elif class_index is not None:
            self.notice = None
            self.open(class_index)
        elif self.mode == "search":
            self.draft = None
            self.close()


def _words(reason: str) -> str:
    return reason.replace("_", " ")
