"""One tab of the review page: what each action does, in the mode that the tab is in. No HTML, no network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from cleanset.errors import CleansetError, install_command
from cleanset.images.boxes import UNKNOWN_BOX
from cleanset.review.guidelines import own_guidelines, usual_guidelines
from cleanset.review.hints.text import can_read_text
from cleanset.review.page.actions import (
    ASKING_FILTER,
    BY_KEYS,
    FILTERS,
    REASON_KEYS,
    TYPING,
    Action,
    Mode,
    Overlay,
    action_of,
)
from cleanset.review.page.drafts import Draft
from cleanset.review.page.keys import ReviewKey
from cleanset.review.page.likeliest import LikeliestReasons
from cleanset.review.page.look_back import LookBack
from cleanset.review.page.notices import Notice
from cleanset.review.page.rest_of_class import rest_in_words, rest_of_class
from cleanset.review.page.rules import GuidelinesSection, guidelines_sections
from cleanset.review.page.session import Session
from cleanset.review.page.shown_class import NotShownError, ShownClass
from cleanset.review.store import BOARD, MAX_NOTE
from cleanset.review.verdicts import ImageKey, Rejected
from cleanset.validation import shown
from cleanset.vocabulary import REASONS, Reason, VerdictKind

BOX_SEEN = "box"
"""Stands among the images seen if the box of a crop was on the screen."""

_NOTHING: Mapping[Mode, str] = MappingProxyType(
    {
        "class": "does nothing here; ? shows the keys.",
        "zoom": "does nothing here; ? shows the keys.",
        "end": "does nothing here: no class is shown; / and n go to one.",
        "reason": "is not the key of a reason; Esc leaves the image as it is.",
        "crop": "does nothing while a crop is drawn; Enter saves it, Esc leaves it.",
        "filter": "is not the key of a filter.",
        "filter_by_reason": "is not the key of a filter.",
        "filter_by_hint": "is not the key of a filter.",
        "back": "does nothing while you look back; Esc closes this.",
    }
)
"""What the page says of a key without an action, by mode; in the help and the guidelines every key has one."""


@dataclass(frozen=True, slots=True)
class Guess:
    """An image that was rejected, or was to be, for its likeliest reason: the next key may change the reason."""

    image: ImageKey | None
    """Class index and image id; None if the key came too early to count, so that nothing was saved."""


class Tab(ShownClass):
    """A tab: the shown class with its verdicts, its overlays, and the ways to other classes.

    Everything that a reviewer does goes through `press`, but for what is typed in a dialog.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.back = LookBack(session)
        self.guidelines: list[GuidelinesSection] = []
        self.likeliest = LikeliestReasons(session)
        self._guess: Guess | None = None
        self._early: set[str] = set()

    # Keys

    def press(self, sent: ReviewKey) -> None:
        """Carry out the action that a key has in this mode, or tell that it has none."""
        self.pressed += 1
        if self.mode in TYPING:
            return  # typed text, not a command
        self.notice = None
        self.unread.begin(sent.answered)
        guess = self._guess
        self._guess = None
        action = action_of(self.mode, sent.key)
        with self._reporting_errors():
            if action is Action.REJECT_FOR_REASON:
                self._reject_for_reason(sent, guess)
            elif action is not None and action in HANDLERS:
                HANDLERS[action](self, sent)
            else:
                self._tell_nothing(sent.key)

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

    def _cancel(self, _: ReviewKey) -> None:
        self._leave_question()

    def _focus_card(self, sent: ReviewKey) -> None:
        """Focus the card that is clicked; the question for a reason goes there, that for a filter ends."""
        is_rejecting = self.mode == "reason"
        self._leave_question()
        self.cursor.focus_card(sent.card)
        if is_rejecting:
            self._begin("reject", sent)

    def _move_focus(self, sent: ReviewKey) -> None:
        before = self.cursor.focus
        self.cursor.move(1 if sent.key in ("ArrowRight", "ArrowDown") else -1)
        if self.cursor.focus == before:
            self._tell_nothing(sent.key, "does nothing here: there is no other image.")

    def _focus_number(self, sent: ReviewKey) -> None:
        """Focus the image with a number, or take the verdict that has it among those of the board."""
        number = int(sent.key)
        images = self.cursor.images()
        if self.options():
            self._take_option(number, sent)
        elif number <= len(images):
            self.cursor.focus = images[number - 1]
        else:
            self._tell_nothing(sent.key)

    def _open(self, over: Overlay) -> None:
        self.over = over

    def _open_note(self, _: ReviewKey) -> None:
        if self.cursor.focus is not None:
            self.over = "note"

    def _toggle_zoom(self, _: ReviewKey) -> None:
        self.base = "zoom" if self.base == "class" and self.cursor.focus is not None else "class"

    def _leave_zoom(self, sent: ReviewKey) -> None:
        if self.base != "zoom":
            self._tell_nothing(sent.key, "does nothing here: nothing is open.")
        self.base = "class"

    def _tell_magnifier(self, sent: ReviewKey) -> None:
        self._tell_nothing(sent.key, "is held down with the mouse over an image: it magnifies there.")

    def _toggle_every(self, _: ReviewKey) -> None:
        before = self.cursor.images()
        self.cursor.every = not self.cursor.every
        if self.cursor.images() == before:
            self.notice = Notice("No other image of this class is a candidate.")

    def _tell_lost(self, sent: ReviewKey) -> None:
        keys = f"{sent.card} keys" if sent.card != "1" else "1 key"
        self.notice = Notice(
            f"The connection was lost, and {keys} with it: look which verdicts are missing.", is_error=True
        )

    def resume(self, name: str) -> None:
        """Go on with the steps that the browser's tab of this name can undo, though the page was loaded anew."""
        if name:
            self.history.steps = self.session.state.steps.setdefault(name, self.history.steps)

    def keep_note(self, image_id: str | None, text: str) -> None:
        """Take over a note without a verdict, which the browser has kept while the server was started anew."""
        if image_id in self.cursor.images() and text.strip():
            self.session.state.notes.setdefault((self.cursor.class_index, image_id or ""), text.strip()[:MAX_NOTE])

    # Verdicts

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
        self._open_draft.reason = REASON_KEYS[sent.key]
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
        """Write the draft as the verdict on the image in focus, and go on; the board must give a note first."""
        draft = self._open_draft
        image = self.cursor.image()
        own = self.cursor.own()
        assert image is not None
        left = self.cursor.class_index
        written = self.session.state.notes.get((left, image.image_id))
        # the note of an earlier decision gives the reason for that one
        if self.session.reviewer == BOARD and not (written or "").strip():
            self.over = "note"
            self.notice = Notice("A verdict of the board needs a note that gives the reason.")
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
        reason = _reason_named(sent.reason) if sent.reason else self.likeliest.of(left, [focus])[focus]
        self.draft = Draft("reject", reason)
        self._save_draft()
        if self.cursor.class_index == left and self.mode == "class" and before in self.cursor.asked():
            self.cursor.focus = before  # a replacement would be scrolled to
        if self.mode != "note":
            self._guess = Guess(image=(left, focus))
            said = f"{self.notice.text} " if self.notice else ""
            self.notice = Notice(f"{said}Rejected last: {_words(reason)}; Shift and a reason's key changes it.")

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
        reason = REASON_KEYS.get(sent.reason or "")
        if reason is None:
            raise CleansetError("not the key of a reason: ? shows them")
        image = guess.image if guess else None
        own = self.session.own(*image) if image else None
        if image is not None and own is not None and isinstance(own.verdict, Rejected):
            self._guess = guess
            class_index, image_id = image
            self.history.shown[image_id] = own  # the last notice told it
            self.history.write(class_index, {image_id: replace(own, verdict=Rejected(reason))})
            self.notice = Notice(
                f"{self.session.library.classes.names[class_index].name}: rejected last: {_words(reason)}."
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
            raise CleansetError("A verdict of the board needs a note: decide on each image by itself.")
        if self.base == "zoom":
            self.notice = Notice("a takes the images that are side by side: Esc goes back to them.")
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
            self.notice = Notice("Taken back.")
        else:
            self.notice = Notice("Nothing to take back: no verdict of yours on this image.")

    def _undo(self, _: ReviewKey) -> None:
        is_replaced = self.history.is_last_replaced()
        step = self.history.undo()
        if step is None:
            self.notice = Notice("Nothing to undo in this tab; d takes a verdict back.")
            return
        self.open(step.class_index, step.image_id)
        if is_replaced:
            own = self.cursor.own()
            stays = f"{own.verdict.kind} stays" if own else "no verdict is left"
            self.notice = Notice(f"Nothing to undo: {step.in_words} was replaced elsewhere meanwhile; {stays}.")
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
        self.unread.begin(None)  # what was told before the dialog could be read in it
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
                self.notice = Notice("The note is not saved yet: it is saved with a verdict.")
            else:
                self.session.state.notes.pop(key, None)

    def leave_text(self) -> None:
        """Leave the dialog that is open, without what was typed there."""
        if self.mode == "note":
            self.leave_note(None)
        else:
            self.leave_search(None)

    def _save_with_note(self, draft: Draft, text: str) -> None:
        """Save the verdict for which the board was asked to give a note."""
        if not text:
            self.session.state.notes.pop((self.cursor.class_index, self.cursor.focus or ""), None)
            self.notice = Notice("Not saved: a verdict of the board needs a note.", is_error=True)
            return
        self.draft = draft
        self._save_draft()

    # Over the class: guidelines, and one's own verdicts

    def _show_guidelines(self, _: ReviewKey) -> None:
        try:
            text = own_guidelines(self.session.stored.folder) or usual_guidelines()
        except (CleansetError, OSError) as error:
            self.notice = Notice(str(error), is_error=True)
            return
        # read at each press: the file may be edited meanwhile
        self.guidelines = guidelines_sections(self.session, text)
        self.over = "guidelines"

    def _look_back(self, _: ReviewKey) -> None:
        self.back.refresh()
        self.over = "back"

    def _focus_tile(self, sent: ReviewKey) -> None:
        """Focus a tile, named by class index and image id."""
        class_index, _, image_id = (sent.card or "").partition("/")
        if not sent.card:
            self._tell_nothing(sent.key)
        elif class_index.isdecimal():
            self.back.focus_on((int(class_index), image_id))

    def _go_to_tile(self, sent: ReviewKey) -> None:
        if self.back.focus is not None:
            self.open(*self.back.focus)
        else:
            self._tell_nothing(sent.key)

    # From class to class

    def start(self, class_index: int | None = None) -> None:
        """Show this class, else the first with a question, else the end."""
        classes = self.session.library.by_class
        if class_index is not None and class_index in classes:
            self.open(class_index)
        else:
            self.cursor.class_index = next(iter(classes))
            self._go_on(-1)
        if not can_read_text() and not self.session.state.told_about_text:
            self.session.state.told_about_text = True
            self.notice = self.notice or Notice(f"Hints do not look for text: {install_command('text')} adds that.")

    def _go_to_neighbour(self, direction: int) -> None:
        following = self.order.neighbour(self.cursor.class_index, direction)
        if following is None:
            self.notice = Notice(f"No other class here: {self.order.filter}. f chooses which classes.")
        else:
            self.open(following)

    def _skip(self, _: ReviewKey) -> None:
        self.order.skipped.add(self.cursor.class_index)
        self._go_on(self.cursor.class_index)

    def _ask_filter_reason(self, sent: ReviewKey) -> None:
        self.over = "filter_by_reason" if BY_KEYS[sent.key] == "reason" else "filter_by_hint"

    def _choose_filter_reason(self, sent: ReviewKey) -> None:
        kind = self.mode.removeprefix("filter_by_")
        self._choose_filter(f"{kind}: {_words(REASON_KEYS[sent.key])}")

    def _choose_filter(self, name: str) -> None:
        """Go through the classes of a filter from now on, if there are any."""
        self.close()
        kind, _, words = name.partition(": ")
        unknown = self._unknown_hints(words.replace(" ", "_")) if kind == "hint" else ""
        if not self.order.matching(name):
            self.notice = Notice(f"No class here{' yet' if unknown else ''}: {name}.{unknown}")
            return
        if unknown:
            self.notice = Notice(f"Classes found so far: {len(self.order.matching(name)):,}.{unknown}")
        self.order.filter = name
        if self.cursor.class_index not in self.order.matching():
            self._go_to_neighbour(1)

    def _unknown_hints(self, kind: str) -> str:
        """What is not known yet of the hints of a kind, in a sentence after a blank; empty if all is known."""
        if kind == "text" and not self.session.hints.reads_text:
            return " Text is not looked for in this session."
        count = self.session.unmeasured(kind)
        images = "image is" if count == 1 else "images are"
        return f" {count:,} {images} not measured yet." if count else ""

    def _visit(self, sent: ReviewKey) -> None:
        class_index = self.session.library.classes.indices.get(sent.card or "")
        if class_index is not None and class_index in self.session.library.by_class:
            self.draft = None
            self.open(class_index)

    def leave_search(self, class_index: int | None, sent: ReviewKey | None = None) -> None:
        """Go to the class that was found (None: stay), or save it as the one that the image in focus shows.

        `sent`: the key, if it was one.
        """
        if class_index is not None and self.draft is not None and self.mode == "search":
            self.notice = None
            self.unread.begin(None)
            with self._reporting_errors():
                if sent is not None:
                    self._check_seen(sent)
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


def _reason_named(name: str) -> Reason:
    """The reason of this name, as a card shows it. Raises CleansetError for an unknown one."""
    for reason in REASONS:
        if reason == name:
            return reason
    raise CleansetError(f"unknown reason {shown(name)}; expected one of {', '.join(REASONS)}")


def _words(reason: str) -> str:
    return reason.replace("_", " ")


HANDLERS: Mapping[Action, Callable[[Tab, ReviewKey], None]] = MappingProxyType(
    {
        Action.TAKE_CLEAN: lambda tab, sent: tab._begin("clean", sent),
        Action.TAKE_REST: Tab._take_rest,
        Action.BEGIN_CROP: lambda tab, sent: tab._begin("crop", sent),
        Action.BEGIN_REJECTION: lambda tab, sent: tab._begin("reject", sent),
        Action.REJECT_BY_GUESS: Tab._reject_by_guess,
        Action.NAME_CLASS: Tab._ask_for_class,
        Action.BE_UNSURE: lambda tab, sent: tab._begin("unsure", sent),
        Action.TAKE_BACK: Tab._take_back,
        Action.WRITE_NOTE: Tab._open_note,
        Action.UNDO: Tab._undo,
        Action.MOVE_FOCUS: Tab._move_focus,
        Action.FOCUS_NUMBER: Tab._focus_number,
        Action.FOCUS_CARD: Tab._focus_card,
        Action.TOGGLE_ZOOM: Tab._toggle_zoom,
        Action.LEAVE_ZOOM: Tab._leave_zoom,
        Action.MAGNIFY: Tab._tell_magnifier,
        Action.TOGGLE_EVERY: Tab._toggle_every,
        Action.LOOK_BACK: Tab._look_back,
        Action.SHOW_GUIDELINES: Tab._show_guidelines,
        Action.NEXT_CLASS: lambda tab, _: tab._go_to_neighbour(1),
        Action.PREVIOUS_CLASS: lambda tab, _: tab._go_to_neighbour(-1),
        Action.SKIP_CLASS: Tab._skip,
        Action.SEARCH_CLASS: lambda tab, _: tab._open("search"),
        Action.CHOOSE_CLASSES: lambda tab, _: tab._open("filter"),
        Action.VISIT_CLASS: Tab._visit,
        Action.SHOW_HELP: lambda tab, _: tab._open("help"),
        Action.STATE_VISIBLE: Tab._state_visible,
        Action.SAVE_CROP: Tab._save_crop,
        Action.CANCEL: Tab._cancel,
        Action.CHOOSE_REASON: Tab._choose_reason,
        Action.CHANGE_BOX: Tab._change_box,
        Action.CHOOSE_FILTER: lambda tab, sent: tab._choose_filter(FILTERS[sent.key]),
        Action.ASK_FILTER_REASON: Tab._ask_filter_reason,
        Action.CHOOSE_FILTER_REASON: Tab._choose_filter_reason,
        Action.FOCUS_TILE: Tab._focus_tile,
        Action.GO_TO_TILE: Tab._go_to_tile,
        Action.STEP_VERDICTS: lambda tab, sent: tab.back.step(1 if sent.key in ("n", "PageDown") else -1),
        Action.CHOOSE_VERDICTS: lambda tab, sent: tab.back.choose(sent.card),
        Action.SHOW_MORE: lambda tab, _: tab.back.show_more(),
        Action.CLOSE: lambda tab, _: tab.close(),
        Action.SCROLL_TEXT: lambda tab, _: tab.close(),  # sent only where the browser finds no text
        Action.TELL_LOST: Tab._tell_lost,
    }
)
"""What carries out an action of the table, beside REJECT_FOR_REASON; the others are the browser's or a dialog's."""
