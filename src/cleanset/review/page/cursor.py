"""The cursor of a tab: a class, its images that are shown, and the one in focus."""

from dataclasses import dataclass, field

from cleanset.review.page.library import IndexedImage
from cleanset.review.page.session import ReviewerClassStatus, Session
from cleanset.review.verdicts import Review

MAX_CARDS = 60
"""Images of a class that are shown together; with more, BATCH at a time, as each key draws all of them again."""

BATCH = 24


@dataclass
class Cursor:
    """A class, the images of it that are shown, and the one in focus.

    `class_index` is -1 until a class is opened.
    """

    session: Session
    class_index: int = -1
    focus: str | None = None
    """Image id; None if nothing can be shown."""

    every: bool = False
    """Whether all candidates of the class are shown."""

    first_count: int = 0
    """Number of images shown when the class was opened."""

    _places: list[str] = field(default_factory=list)
    _kept_batch: range | None = None

    @property
    def status(self) -> ReviewerClassStatus:
        """The status of the class, as last read."""
        return self.session.statuses[self.class_index]

    def images(self) -> list[str]:
        """Image ids shown: reviewed by this reviewer, asked for, or to be looked at again; with `every`, all.

        With more than MAX_CARDS, those of the batch that the focus is in.
        """
        if not self.every:
            return self._in_places()
        candidates = self._candidates()
        return candidates if (batch := self.batch()) is None else candidates[batch.start : batch.stop]

    def batch(self) -> range | None:
        """The places, from 0, of the candidates that are shown together; None if all that could be are shown."""
        candidates = self._candidates()
        wanted = candidates if self.every else self._wanted()
        if len(wanted) <= MAX_CARDS:
            return None
        asked = self._needed()
        first = self.focus if self.focus in candidates else next((each for each in wanted if each in asked), wanted[0])
        start = candidates.index(first) // BATCH * BATCH
        return range(start, min(start + BATCH, len(candidates)))

    def next_batch(self) -> list[str]:
        """Image ids of the batch after the one that is shown; empty at the end, and where all are shown."""
        batch = self.batch()
        return [] if batch is None else self._candidates()[batch.stop : batch.stop + BATCH]

    def _candidates(self) -> list[str]:
        return list(self.session.library.candidates(self.class_index))

    def keep_places(self) -> None:
        """Let the images that are shown now keep their places for as long as the class is open.

        Those that join, such as replacements, come last, and one that is no longer needed leaves only from the end.
        """
        batch = self.batch()
        self._places = self._in_places()
        if batch != self._kept_batch:
            self._kept_batch = batch
            self.first_count = len(self._places)

    def _wanted(self) -> list[str]:
        """Image ids that are to be shown, in the order of the candidates, whether or not they fit on one page."""
        ids = self._candidates()
        wanted = {*self.status.own}.union(self._needed(), self.status.look_again, {self.focus} if self.focus else ())
        # a class without questions and verdicts would otherwise be empty
        return [image_id for image_id in ids if image_id in wanted] or ids[:3]

    def _in_places(self) -> list[str]:
        batch = self.batch()
        together = None if batch is None else {*self._candidates()[batch.start : batch.stop]}
        needed, places = (
            [image_id for image_id in each if together is None or image_id in together]
            for each in (self._wanted(), self._places)
        )
        in_places = [*places, *(image_id for image_id in needed if image_id not in places)]
        while in_places and in_places[-1] not in needed:
            in_places.pop()
        return in_places

    def image(self) -> IndexedImage | None:
        """The image in focus."""
        return self.session.library.images[self.focus] if self.focus else None

    def own(self) -> Review | None:
        """This reviewer's verdict on the image in focus."""
        return self.session.own(self.class_index, self.focus) if self.focus else None

    def asked(self) -> list[str]:
        """Image ids that this reviewer is asked for in this class, the most likely first."""
        return [question.image_id for question in self.status.questions]

    def queued(self) -> list[str]:
        """Image ids asked for that are needed whatever the verdicts on the others will be, in the order of the cards.

        Without one, the first one asked for.
        """
        needed = self._needed()
        return [image_id for image_id in self.images() if image_id in needed]

    def _needed(self) -> list[str]:
        certain = [question.image_id for question in self.status.questions if question.certain]
        return certain or self.asked()[:1]

    def is_box_asked(self) -> bool:
        """Whether only the crop box of the image in focus is asked for."""
        return self.focus in self.boxes_asked()

    def boxes_asked(self) -> list[str]:
        """Image ids that are shown and certainly needed, and lack only a crop box."""
        shown = self.images()
        boxes = [each.image_id for each in self.status.questions if each.only_box and each.certain]
        return [image_id for image_id in boxes if image_id in shown]

    def go_to(self, class_index: int, focus: str | None = None) -> None:
        """Go to a class, and in it to `focus` or else to the first image that is asked for."""
        if class_index != self.class_index:
            self._places = []
            self._kept_batch = None
            self.first_count = 0
        self.class_index = class_index
        self.every = False
        self.focus = None
        asked = self.asked()
        shown = self.images()
        self.first_count = self.first_count or len(shown)
        self.keep_places()
        first = [*self.boxes_asked(), *(each for each in shown if each in asked), *shown]
        self.focus = focus or (first[0] if first else None)

    def move(self, by: int) -> None:
        """Focus the image `by` places further on, in the next batch if there is one; wraps around."""
        of_all = self._candidates() if self.every else self._wanted()
        shown = self.images() if self.batch() is None else of_all
        if self.focus in shown:
            self.focus = shown[(shown.index(self.focus) + by) % len(shown)]

    def focus_card(self, card: str | None) -> None:
        """Focus an image that is shown."""
        if card in self.images():
            self.focus = card

    def focus_next(self) -> None:
        """Focus the next image that is asked for, else the next one shown."""
        assert self.focus is not None
        asked = self.asked()
        shown = self.images()
        position = shown.index(self.focus) if self.focus in shown else 0
        later = [image_id for image_id in shown[position + 1 :] if image_id in asked]
        earlier = [image_id for image_id in shown[:position] if image_id in asked]
        if asked:
            self.focus = (self.boxes_asked() or later or earlier or asked)[0]
        elif position + 1 < len(shown):
            self.focus = shown[position + 1]
