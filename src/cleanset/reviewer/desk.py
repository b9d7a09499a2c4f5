"""One tab: the class it shows, the picture in focus, what the next key means. No HTML, no network."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from cleanset.errors import CleansetError
from cleanset.ilsvrc import wnids
from cleanset.review.folder import BOARD
from cleanset.review.verdicts import Review
from cleanset.reviewer.drafts import Draft
from cleanset.reviewer.keys import FILTERS, REASONS, VERDICTS
from cleanset.reviewer.place import Place
from cleanset.reviewer.tour import Tour

Mode = Literal["class", "reason", "crop", "zoom", "filter", "help", "note", "search", "end"]


@dataclass
class Notice:
    """One line to the reviewer; an error stays until the next key, and means that nothing was said."""

    text: str
    is_error: bool = False


@dataclass
class Desk(Place):
    """What one tab shows; `press` is everything a reviewer can do, by key.

    `ended`: nothing is asked any more, and no class is shown. `pressed` counts the keys that were
    answered. `notes`: written, without a verdict yet, by class index and image id. `shown`: this
    reviewer's verdicts as the tab shows them; only over these does it write another.
    """

    mode: Mode = "class"
    ended: bool = False
    pressed: int = 0
    draft: Draft | None = None
    notice: Notice | None = None
    notes: dict[tuple[int, str], str] = field(default_factory=dict)
    shown: dict[str, Review | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tour = Tour(self.room)

    @property
    def wnid(self) -> str:
        """The class on the screen; empty at the end, where none is."""
        return "" if self.ended else wnids()[self.class_index]

    def open(self, class_index: int, focus: str | None = None) -> None:
        """Show a class."""
        self.mode, self.draft, self.ended = "class", None, False
        self.room.look_at(class_index)
        self.place_at(class_index, focus)

    def start(self, class_index: int | None = None) -> None:
        """Show this class, or the first that is asked for, or the end."""
        classes = self.room.library.classes
        if class_index in classes:
            assert class_index is not None
            self.open(class_index)
        else:
            self.class_index = next(iter(classes))
            self._go_on(-1)

    # keys

    def press(self, key: str, seen: Collection[str], box: Sequence[int] | None = None, card: str | None = None) -> None:
        """Do what a key means now. `seen`: image ids that the tab showed, `box`: the crop that is drawn."""
        self.pressed += 1
        if self.mode in ("search", "note"):
            return  # what is typed there is no command
        self.notice = None
        with self._telling():
            if key == "focus":
                if self.mode == "class":
                    self.focus_card(card)
            elif self.mode in ("reason", "crop"):
                self._drafting(key, box)
            elif self.mode == "filter":
                self._filter(key)
            elif self.mode == "help":
                self.mode = self._resting()
            else:
                self._class_key(key, seen)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """What could not be said becomes an error on the page, and the verdict stays as it is on disk."""
        try:
            yield
        except CleansetError as error:
            self.notice = Notice(f"Not said. {error}", is_error=True)
        except OSError as error:
            self.notice = Notice(f"Not said. {error.filename or 'writing'}: {error.strerror or error}", is_error=True)
        finally:
            if self.mode not in ("reason", "crop", "note"):
                self.draft = None  # else the next note would say it, of whatever is in focus then

    def _resting(self) -> Mode:
        return "end" if self.ended else "class"

    def _class_key(self, key: str, seen: Collection[str]) -> None:
        steps: dict[str, Callable[[], None]] = {
            "n": lambda: self._turn(1), "PageDown": lambda: self._turn(1),
            "p": lambda: self._turn(-1), "PageUp": lambda: self._turn(-1),
            "s": self._skip, "z": self._undo, "Backspace": self._undo, "d": self._take_back,
            "m": self._toggle_every, "f": lambda: self._switch("filter"), "/": lambda: self._switch("search"),
            "?": lambda: self._switch("help"), "e": lambda: self._switch("note"),
            "Enter": lambda: self._switch("zoom"), " ": lambda: self._switch("zoom"),
            "ArrowRight": lambda: self.move(1), "ArrowDown": lambda: self.move(1),
            "ArrowLeft": lambda: self.move(-1), "ArrowUp": lambda: self.move(-1),
        }  # fmt: skip
        if key == "Escape":
            self.mode = self._resting()
        elif key in VERDICTS:
            self._begin(VERDICTS[key], seen)
        elif key in steps:
            steps[key]()
        elif key.isdecimal() and self.mode == "class" and 1 <= int(key) <= len(self.pictures()):
            self.focus = self.pictures()[int(key) - 1]

    def _switch(self, mode: Mode) -> None:
        if mode in ("zoom", "note") and self.focus is None:
            return
        self.mode = self._resting() if self.mode == mode else mode

    # saying

    def _begin(self, verdict: str, seen: Collection[str]) -> None:
        if self.stand.broken:
            raise CleansetError(self.stand.broken)
        if self.focus is None:
            return
        if self.focus not in seen:
            raise CleansetError(f"{self.focus}: not shown yet; look at it first")
        self.draft = Draft(verdict)
        if verdict in ("clean", "unsure"):
            self._say()
        elif verdict == "reject":
            self.mode = "reason"
        else:
            own = self.own()
            if own is not None and own.box is not None:
                self.draft = Draft("crop", own.reason, own.box, visible=True)
            self.mode = "crop"

    def _drafting(self, key: str, box: Sequence[int] | None) -> None:
        assert self.draft is not None
        if key == "Escape":
            self.mode, self.draft = "class", None
        elif key in REASONS:
            self.draft.reason = REASONS[key]
            if self.mode == "reason":
                self._say()
        elif self.mode == "crop" and key == "v":
            self.draft.visible = not self.draft.visible
        elif self.mode == "crop" and key == "Enter":
            self._save_crop(box)

    def _save_crop(self, box: Sequence[int] | None) -> None:
        """Say the crop, or what is missing; the box stays drawn meanwhile."""
        draft, picture = self.draft, self.picture()
        assert draft is not None
        assert picture is not None
        missing = draft.missing(box, picture)
        if missing or box is None:
            self.notice = Notice(f"Not said yet: {'; '.join(missing)}.", is_error=True)
            return
        draft.take_box(box, picture)
        self._say()

    def _say(self) -> None:
        """Write the drafted verdict on the picture in focus; the board's needs a note first."""
        draft, picture, own = self.draft, self.picture(), self.own()
        assert draft is not None
        assert picture is not None
        left = self.class_index
        note = self.notes.get((left, picture.image_id)) or (own.note if own else None)
        if self.room.reviewer == BOARD and not (note or "").strip():
            self.mode = "note"
            self.notice = Notice("The board's verdict needs a note that says why.")
            return
        self._write(draft.review(picture, note))
        self.notes.pop((left, picture.image_id), None)
        if self.class_index == left and self.focus == picture.image_id:
            self.focus_next()

    def _write(self, review: Review | None) -> None:
        """Write what is said of the picture in focus. Where the disk fails, what was drafted is kept."""
        assert self.focus is not None
        was, looking = self.stand, self.mode == "zoom"
        try:
            self.room.say(self.class_index, self.focus, review, expected=self.shown.get(self.focus))
        except CleansetError:
            self.mode, self.draft = "class", None
            raise
        self.mode, self.draft = "zoom" if looking else "class", None
        if was.questions and not self.stand.questions:
            self._settled()

    def _settled(self) -> None:
        """The class has its verdicts: on to the next, with a word on the one that is left."""
        left = self.class_index
        self.tour.skipped.discard(left)
        state = self.stand.state
        self._go_on(left)
        name = self.room.library.names[left].name
        said = {"short": "is short: nothing is left to ask", "conflict": "waits for the board"}.get(state, "is settled")
        self.notice = Notice(f"{name} {said}.")

    def _take_back(self) -> None:
        if self.own() is not None:
            self._write(None)
            self.notice = Notice("Taken back.")

    def note(self) -> tuple[str, str]:
        """What the note is about, and what it says so far."""
        own = self.own()
        about = "Why the board overrules" if self.draft and self.room.reviewer == BOARD else "A note"
        kept = self.notes.get((self.class_index, self.focus or ""))
        return f"{about}, on {self.focus}", kept or (own.note if own else None) or ""

    def leave_note(self, text: str | None) -> None:
        """Keep a note (None: leave it) for the picture in focus: with its verdict, if there is one yet."""
        if self.mode != "note" or self.focus is None:
            return
        self.mode, self.notice, draft = "class", None, self.draft
        self.draft = None
        if text is None:
            return
        key = self.class_index, self.focus
        self.notes[key] = text.strip()
        with self._telling():
            own = self.own()
            if draft is not None and text.strip():
                self.draft = draft
                self._say()
            elif own is not None and (own.note or "") != text.strip():
                self._write(own.model_copy(update={"note": text.strip() or None}))
                self.notes.pop(key, None)

    def leave_search(self, class_index: int | None) -> None:
        """Go to the class that was found (None: stay)."""
        if class_index is not None:
            self.notice = None
            self.open(class_index)
        elif self.mode == "search":
            self.mode = self._resting()

    def _undo(self) -> None:
        step = self.room.undo()
        if step is None:
            self.notice = Notice("Nothing to undo since the server started; d takes a verdict back.")
            return
        self.open(step.class_index, step.image_id)
        was = step.after.verdict if step.after else "taking it back"
        self.notice = Notice(f"Undone: {was}.")

    # going about

    def _go_on(self, left: int) -> None:
        following = self.tour.following(left)
        if following is None:
            self.mode, self.focus, self.draft, self.ended = "end", None, None, True
        else:
            self.open(following)

    def _turn(self, way: int) -> None:
        following = self.tour.turned(self.class_index, way)
        if following is None:
            self.notice = Notice(f"No other class here: {self.tour.filter}. f chooses which classes.")
        else:
            self.open(following)

    def _skip(self) -> None:
        self.tour.skipped.add(self.class_index)
        self._go_on(self.class_index)

    def _toggle_every(self) -> None:
        self.every = not self.every

    def _filter(self, key: str) -> None:
        self.mode = self._resting()
        if key not in FILTERS:
            return
        if not self.tour.listed(FILTERS[key]):
            self.notice = Notice(f"No class here: {FILTERS[key]}.")
            return
        self.tour.filter = FILTERS[key]
        if self.class_index not in self.tour.listed():
            self._turn(1)
