"""One tab of the review page: what each key does, in the mode that the tab is in; its ways to texts and other classes.

`verdicts_of_tab` has the actions that give verdicts. No HTML, no network.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from cleanset.errors import CleansetError, install_command
from cleanset.review.guidelines import own_guidelines, usual_guidelines
from cleanset.review.hints.text import can_read_text
from cleanset.review.page.actions import (
    BY_KEYS,
    FILTERS,
    TYPING,
    Action,
    Overlay,
    action_of,
)
from cleanset.review.page.keys import ReviewKey
from cleanset.review.page.look_back import LookBack
from cleanset.review.page.notices import Notice
from cleanset.review.page.rules import GuidelinesSection, guidelines_sections
from cleanset.review.page.session import Session
from cleanset.review.page.verdicts_of_tab import VerdictsOfTab, reason_in_words
from cleanset.review.store import MAX_NOTE


class Tab(VerdictsOfTab):
    """A tab: the shown class with its verdicts, its overlays, and the ways to other classes.

    Everything that a reviewer does goes through `press`, but for what is typed in a dialog.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.back = LookBack(session)
        self.guidelines: list[GuidelinesSection] = []

    # Keys

    def press(self, sent: ReviewKey) -> None:
        """Carry out the action that a key has in this mode, or report that it has none."""
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
        self._tell_nothing(sent.key, "magnifies while it is held down with the mouse over an image.")

    def _toggle_every(self, _: ReviewKey) -> None:
        before = self.cursor.images()
        self.cursor.every = not self.cursor.every
        if self.cursor.images() == before:
            self.notice = Notice("This class has no other candidates.")

    def _tell_lost(self, sent: ReviewKey) -> None:
        keys = f"{sent.card} keys" if sent.card != "1" else "1 key"
        self.notice = Notice(f"Connection lost; {keys} not saved. Check for missing verdicts.", is_error=True)

    def resume(self, name: str) -> None:
        """Continue with the steps that the browser's tab of this name can undo, though the page was loaded again."""
        if name:
            self.history.steps = self.session.state.steps.setdefault(name, self.history.steps)

    def keep_note(self, image_id: str | None, text: str) -> None:
        """Take over a note without a verdict, which the browser has kept while the server was started again."""
        if image_id in self.cursor.images() and text.strip():
            self.session.state.notes.setdefault((self.cursor.class_index, image_id or ""), text.strip()[:MAX_NOTE])

    # Dialogs

    def leave_text(self) -> None:
        """Leave the dialog that is open, without what was typed there."""
        if self.mode == "note":
            self.leave_note(None)
        else:
            self.leave_search()

    # Over the class: guidelines, and the reviewer's verdicts

    def _show_guidelines(self, _: ReviewKey) -> None:
        try:
            text = own_guidelines(self.session.reviews) or usual_guidelines(self.session.library.reasons)
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
            self.notice = self.notice or Notice(f"Text detection is off; to turn it on: {install_command('text')}.")

    def _go_to_neighbour(self, direction: int) -> None:
        following = self.order.neighbour(self.cursor.class_index, direction)
        if following is None:
            self.notice = Notice(f"No other class with this filter: {self.order.filter}. Press f to choose another.")
        else:
            self.open(following)

    def _skip(self, _: ReviewKey) -> None:
        self.order.skipped.add(self.cursor.class_index)
        self._go_on(self.cursor.class_index)

    def _ask_filter_reason(self, sent: ReviewKey) -> None:
        self.over = "filter_by_reason" if BY_KEYS[sent.key] == "reason" else "filter_by_hint"

    def _choose_filter_reason(self, sent: ReviewKey) -> None:
        kind = self.mode.removeprefix("filter_by_")
        library = self.session.library
        chosen = (library.reason_keys if kind == "reason" else library.hint_keys).get(sent.key)
        if chosen:  # each edition has its own hints, and a key may be that of none
            self._choose_filter(f"{kind}: {reason_in_words(chosen)}")

    def _choose_filter(self, name: str) -> None:
        """Switch to the classes of a filter, if there are any."""
        self.close()
        kind, _, words = name.partition(": ")
        unknown = self._unknown_hints(words.replace(" ", "_")) if kind == "hint" else ""
        if not self.order.matching(name):
            self.notice = Notice(f"No class with this filter{' yet' if unknown else ''}: {name}.{unknown}")
            return
        if unknown:
            self.notice = Notice(f"Classes found so far: {len(self.order.matching(name)):,}.{unknown}")
        self.order.filter = name
        if self.cursor.class_index not in self.order.matching():
            self._go_to_neighbour(1)

    def _unknown_hints(self, kind: str) -> str:
        """What is not known yet of the hints of a kind, in a sentence after a blank; empty if all is known."""
        if kind == "text" and not self.session.hints.reads_text:
            return " Text detection is off."
        count = self.session.unmeasured(kind)
        images = "image is" if count == 1 else "images are"
        return f" {count:,} {images} not measured yet." if count else ""

    def _visit(self, sent: ReviewKey) -> None:
        class_index = self.session.library.classes.indices.get(sent.card or "")
        if class_index is not None and class_index in self.session.library.by_class:
            self.draft = None
            self.open(class_index)

    def leave_search(self) -> None:
        """Leave the search for a class, and what it was for."""
        if self.mode == "search":
            self.draft = None
            self.close()

    def choose_class(self, class_index: int, sent: ReviewKey) -> None:
        """Go to the class that was found, or save it as the one that the image in focus shows."""
        if self.mode != "search":
            return
        self.notice = None
        if self.draft is None:
            self.open(class_index)
            return
        self.unread.begin(None)
        with self._reporting_errors():
            self._check_seen(sent)
            self.close()
            if class_index == self.cursor.class_index:
                raise CleansetError("the image is in that class already; press i and choose another.")
            self.draft.correct_class = self.session.library.classes.keys[class_index]
            self._save_draft()


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
"""What carries out an action of the table, other than REJECT_FOR_REASON; the others are the browser's or a dialog's."""
