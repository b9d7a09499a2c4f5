"""One tab: what each key does in it. No HTML, no network."""

from collections.abc import Callable, Collection

from cleanset.dataset.ilsvrc import class_indices
from cleanset.images.boxes import Box
from cleanset.review_page.keys import VERDICTS
from cleanset.review_page.tab_state import Mode
from cleanset.review_page.verdict_editing import VerdictEditing


class Tab(VerdictEditing):
    """One tab; `press` is everything a reviewer can do, by key. `pressed`: the number of the last key answered."""

    pressed: int = 0

    def press(self, key: str, seen: Collection[str], box: Box | None = None, card: str | None = None) -> None:
        """Do what a key means now. `seen`: image ids that were shown when it was pressed; `box`: the crop drawn.

        Beside the keys of a keyboard: `focus`, on an image (`card`); `visit`, to a class (`card`, its
        wnid); `box`, the crop that is drawn was changed.
        """
        self.pressed += 1
        if self.mode in ("search", "note"):
            return  # what is typed there is no command
        self.notice = None
        with self._reporting_errors():
            if key == "visit":
                self._visit(card)
            elif self.mode in ("reason", "crop"):
                self._edit_draft(key, box)
            elif self.mode == "filter":
                self._choose_filter(key)
            elif self.mode == "help":
                self.close()
            elif key == "focus":
                self.focus_card(card)
            else:
                self._press_in_class(key, seen)

    def _press_in_class(self, key: str, seen: Collection[str]) -> None:
        actions: dict[str, Callable[[], None]] = {
            "n": lambda: self._go_to_neighbour(1), "PageDown": lambda: self._go_to_neighbour(1),
            "p": lambda: self._go_to_neighbour(-1), "PageUp": lambda: self._go_to_neighbour(-1),
            "s": self._skip, "z": self._undo, "Backspace": self._undo, "d": lambda: self._take_back(seen),
            "m": self._toggle_every, "f": lambda: self._switch("filter"), "/": lambda: self._switch("search"),
            "?": lambda: self._switch("help"), "e": lambda: self._switch("note"),
            "Enter": self._toggle_zoom, " ": self._toggle_zoom, "Escape": self._leave_zoom,
            "ArrowRight": lambda: self.move(1), "ArrowDown": lambda: self.move(1),
            "ArrowLeft": lambda: self.move(-1), "ArrowUp": lambda: self.move(-1),
        }  # fmt: skip
        if key in VERDICTS:
            if not self.ended:
                self._begin(VERDICTS[key], seen)
        elif key in actions:
            actions[key]()
        elif key.isdecimal() and self.mode == "class" and 1 <= int(key) <= len(self.images()):
            self.focus = self.images()[int(key) - 1]

    def _switch(self, mode: Mode) -> None:
        if mode != "note" or (self.focus is not None and not self.ended):
            self.mode = mode

    def _toggle_zoom(self) -> None:
        self.zoomed = not self.zoomed and self.focus is not None and not self.ended
        self.close()

    def _leave_zoom(self) -> None:
        self.zoomed = False
        self.close()

    def _toggle_every(self) -> None:
        self.every = not self.every

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
