"""What one tab shows, and going from class to class in it. No HTML, no network."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from cleanset.dataset.ilsvrc import wnids
from cleanset.errors import CleansetError
from cleanset.review.verdicts import Review
from cleanset.review_page.class_order import ClassOrder
from cleanset.review_page.cursor import Cursor
from cleanset.review_page.drafts import Draft
from cleanset.review_page.keys import FILTERS

Mode = Literal["class", "reason", "crop", "zoom", "filter", "help", "note", "search", "end"]


@dataclass
class Notice:
    """One line to the reviewer; an error stays until the next key, and means that nothing was saved."""

    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A verdict that was changed in this tab, so that it can be undone."""

    class_index: int
    image_id: str
    before: Review | None
    after: Review | None


@dataclass
class TabState(Cursor):
    """What one tab shows.

    `ended`: nothing is asked any more, and no class is shown. `zoomed`: the image in focus is shown
    alone, whatever is asked about it meanwhile. `shown`: this reviewer's verdicts as the tab shows
    them; only over these does it write another. `steps`: what can be undone here, the last one last.
    """

    mode: Mode = "class"
    ended: bool = False
    zoomed: bool = False
    draft: Draft | None = None
    notice: Notice | None = None
    shown: dict[str, Review | None] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.order = ClassOrder(self.session)

    @property
    def wnid(self) -> str:
        """The class on the screen; empty at the end, where none is."""
        return "" if self.ended else wnids()[self.class_index]

    def open(self, class_index: int, focus: str | None = None) -> None:
        """Show a class."""
        self.draft, self.ended, self.zoomed = None, False, False
        self.session.refresh_class(class_index)
        self.go_to(class_index, focus)
        self.mode = "class"
        self._ask_for_box()

    def _ask_for_box(self) -> None:
        """Open the crop of the image in focus, if only its box is asked for: that it is cropped is decided."""
        if self.mode == "class" and self.focus is not None and self.is_box_asked():
            self.shown[self.focus] = self.own()  # as the crop shows it, though no card is seen
            self._draft_crop()

    def _draft_crop(self) -> None:
        """Begin a crop of the image in focus, with what this reviewer has decided of it so far."""
        own = self.own()
        is_crop = own is not None and own.verdict == "crop"
        self.draft = Draft("crop", own.reason, own.box) if own is not None and is_crop else Draft("crop")
        self.mode = "crop"

    def start(self, class_index: int | None = None) -> None:
        """Show this class, or the first that is asked for, or the end."""
        classes = self.session.library.classes
        if class_index is not None and class_index in classes:
            self.open(class_index)
        else:
            self.class_index = next(iter(classes))
            self._go_on(-1)

    def close(self) -> None:
        """Return to what lies under the help, a question or a dialog: the image alone, the class or the end."""
        self.mode = "end" if self.ended else "zoom" if self.zoomed else "class"

    def _go_on(self, after: int) -> None:
        """Show the next class in which something is asked, else the end."""
        following = self.order.next_asked(after)
        if following is None:
            self.mode, self.ended, self.zoomed = "end", True, False
        else:
            self.open(following)

    def _go_to_neighbour(self, direction: int) -> None:
        following = self.order.neighbour(self.class_index, direction)
        if following is None:
            self.notice = Notice(f"No other class here: {self.order.filter}. f chooses which classes.")
        else:
            self.open(following)

    def _skip(self) -> None:
        self.order.skipped.add(self.class_index)
        self._go_on(self.class_index)

    def _choose_filter(self, key: str) -> None:
        self.close()
        if key not in FILTERS:
            return
        if not self.order.matching(FILTERS[key]):
            self.notice = Notice(f"No class here: {FILTERS[key]}.")
            return
        self.order.filter = FILTERS[key]
        if self.class_index not in self.order.matching():
            self._go_to_neighbour(1)

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        """Show what could not be saved as an error on the page; the verdict stays as it is on disk."""
        try:
            yield
        except CleansetError as error:
            self.notice = Notice(f"Not saved. {error}", is_error=True)
        except OSError as error:
            self.notice = Notice(f"Not saved. {error.filename or 'writing'}: {error.strerror or error}", is_error=True)
        finally:
            if self.mode not in ("reason", "crop", "note"):
                self.draft = None  # else the next note would save it, for whatever is in focus then
