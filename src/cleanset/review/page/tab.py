"""One tab: what each key does in it. No HTML, no network."""

from collections.abc import Callable, Collection

from cleanset.dataset.ilsvrc import class_indices
from cleanset.errors import CleansetError
from cleanset.images.boxes import Box
from cleanset.review.guidelines import own_guidelines, usual_guidelines
from cleanset.review.hints.text import can_read_text
from cleanset.review.page.guidelines import GuidelinesSection, guidelines_sections
from cleanset.review.page.keys import FILTERS, NO_SCREEN, VERDICTS, Notice, Screen
from cleanset.review.page.look_back import LookBack
from cleanset.review.page.session import Session
from cleanset.review.page.shown_class import Mode
from cleanset.review.page.verdict_keys import VerdictKeys


class Tab(VerdictKeys):
    """A tab: the shown class with its verdicts, what lies over it, and the ways to other classes.

    Everything that a reviewer does goes through `press`.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.back = LookBack(session)
        self.guidelines: list[GuidelinesSection] = []

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
        last_guess, self._last_guess = self._last_guess, None
        was_guess_lost, self._is_guess_lost = self._is_guess_lost, False
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
                self._reject_for_reason(last_guess, was_guess_lost, seen)
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
            "a": lambda: self._take_rest(seen), "m": self._toggle_every,
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

    def _toggle_zoom(self) -> None:
        self.zoomed = not self.zoomed and self.cursor.focus is not None and not self.ended
        self.close()

    def _leave_zoom(self) -> None:
        self.zoomed = False
        self.close()

    def _toggle_every(self) -> None:
        self.cursor.every = not self.cursor.every

    def _tell_lost(self, count: str | None) -> None:
        keys = f"{count} keys" if count != "1" else "1 key"
        self.notice = Notice(f"The connection was lost, and {keys} with it: look which verdicts are missing.", True)

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

    # From class to class

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
