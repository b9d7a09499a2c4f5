"""The cursor of a tab (class and image), the order of the classes, and accepting the rest of a class as clean."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cleanset.review.page.library import IndexedImage
from cleanset.review.page.session import ReviewerClassStatus, Session
from cleanset.review.verdicts import Review


@dataclass
class Cursor:
    """A class, the images of it that are shown, and the one in focus.

    `every`: all candidates of the class are shown. `focus` is None where nothing can be shown. `first_count`: how many
    images were shown when the class was opened.
    """

    session: Session
    class_index: int = -1
    focus: str | None = None
    every: bool = False
    first_count: int = 0
    _places: list[str] = field(default_factory=list)

    @property
    def status(self) -> ReviewerClassStatus:
        """The status of the class, as last read."""
        return self.session.statuses[self.class_index]

    def images(self) -> list[str]:
        """Image ids shown: reviewed by this reviewer, asked for, or to be looked at again; with `every`, all."""
        return list(self.session.library.candidates(self.class_index)) if self.every else self._in_places()

    def keep_places(self) -> None:
        """Let the images that are shown now keep their places for as long as the class is open.

        Those that join, such as replacements, come last, and one that is no longer needed leaves only from the end.
        """
        self._places = self._in_places()

    def _in_places(self) -> list[str]:
        ids = list(self.session.library.candidates(self.class_index))
        asked = self._needed()
        wanted = {*self.status.own}.union(asked, self.status.look_again, {self.focus} if self.focus else ())
        # a class without questions and verdicts would otherwise be empty
        needed = [image_id for image_id in ids if image_id in wanted] or ids[:3]
        in_places = [*self._places, *(image_id for image_id in needed if image_id not in self._places)]
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
        boxes = [each.image_id for each in self.status.questions if each.box_unknown and each.certain]
        return [image_id for image_id in boxes if image_id in shown]

    def go_to(self, class_index: int, focus: str | None = None) -> None:
        """Go to a class, and in it to `focus` or else to the first image that is asked for."""
        if class_index != self.class_index:
            self._places = []
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
        """Focus the image `by` places further on; wraps around."""
        shown = self.images()
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


def lacks_box(status: ReviewerClassStatus) -> bool:
    """Whether an image of a class lacks only its crop box, and is certainly needed."""
    return any(each.box_unknown and each.certain for each in status.questions)


@dataclass
class ClassOrder:
    """The order of the classes in one tab.

    `filter` is one of `keys.FILTERS`, or such as "reason: watermark" and "hint: text" of `keys.BY_KEYS`: at first the
    classes with an image that lacks only its crop box, if any.
    """

    session: Session
    filter: str = "to review"
    skipped: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        # the quickest answers, and each brings an image into a set
        if self.matching("boxes to draw"):
            self.filter = "boxes to draw"

    def matching(self, name: str | None = None) -> list[int]:
        """The classes that match a filter; by default, the tab's own."""
        matches: dict[str, Callable[[ReviewerClassStatus], bool]] = {
            "all": lambda status: True,
            "to review": lambda status: bool(status.questions or status.broken),
            "boxes to draw": lacks_box,
            "short": lambda status: status.state == "short",
            "conflicts": lambda status: bool(status.conflicts or status.look_again),
            "with my verdicts": lambda status: bool(status.own),
        }
        name = name or self.filter
        kind, _, words = name.partition(": ")
        reason = words.replace(" ", "_")
        session = self.session
        matches["reason"] = lambda status: any(review.reason == reason for review in status.own.values())
        if kind == "hint":
            kinds = {index: session.kinds_of_hints(index).values() for index in session.statuses}
            return [index for index, of_images in kinds.items() if any(reason in each for each in of_images)]
        match = matches[kind]
        return [index for index, status in self.session.statuses.items() if match(status)]

    def neighbour(self, of: int, direction: int = 1) -> int | None:
        """The matching class after this one (before it, if `direction` is -1); wraps around."""
        others = [index for index in self.matching() if index != of]
        if not others:
            return None
        if direction > 0:
            return next((index for index in others if index > of), others[0])
        return next((index for index in reversed(others) if index < of), others[-1])

    def next_asked(self, after: int) -> int | None:
        """The next matching class with a question, this one last; None if nothing is asked any more."""
        matching = set(self.matching())
        asked = [index for index in self.matching("to review") if index in matching]
        fresh = [index for index in asked if index not in self.skipped] or asked
        return next((index for index in fresh if index > after), fresh[0] if fresh else None)

    def upcoming(self, after: int) -> list[int]:
        """The classes most likely to be shown next, whose images are loaded ahead."""
        first = self.next_asked(after)
        second = self.next_asked(first) if first is not None else None
        near = (first, self.neighbour(after), self.neighbour(after, -1), second)
        return [index for index in dict.fromkeys(near) if index is not None and index != after]


MIN_WIDTH = 160
MIN_HEIGHT = 120
"""CSS pixels, whose product is the area on the screen from which an image can be taken as clean with others."""

LEFT = {
    "judged": "to be decided on by itself.",
    "early": "a key for it came too early: decide on it, or press a again.",
    "unseen": f"not whole on the screen, or smaller there than {MIN_WIDTH} × {MIN_HEIGHT} pixels: look, and press a "
    "again, or Enter for a closer look and c.",
    "late": "shown only after the key was pressed: look, and press a again.",
}
"""Why one key for all the rest of a class leaves an image, and the remedy.

`judged`: somebody's verdict on it is not clean, or it is to be cropped. `early`: a key meant to reject it came too
early to count. `unseen`: it was not on the screen, whole and large enough, for as long as it must be. `late`: it was
not among the cards when the key was pressed.
"""


def rest_of_class(
    cursor: Cursor, seconds: Mapping[str, float], shown: Collection[str], early: Collection[str]
) -> dict[str, list[str]]:
    """The images of the queue in a class that has no verdict yet: `clean`, which one key takes, and by reason of LEFT.

    `seconds`: by image id, for how long the reviewer had an image before them. One that was never whole on the screen
    is not in it, so that it is left even where review.seconds_per_image is 0. `shown`: image ids of the cards when the
    key was pressed. `early`: image ids that a key came too early for.
    """
    min_seconds = cursor.session.library.params.review.seconds_per_image
    found: dict[str, list[str]] = {"clean": [], **{reason: [] for reason in LEFT}}
    for image_id in cursor.queued():
        votes = cursor.status.votes.get((cursor.class_index, image_id), {})
        if image_id in cursor.boxes_asked() or any(vote.review.verdict != "clean" for vote in votes.values()):
            found["judged"].append(image_id)
        elif image_id in early:
            found["early"].append(image_id)
        elif seconds.get(image_id, -1.0) >= min_seconds:
            found["clean"].append(image_id)
        else:
            found["unseen" if image_id in shown else "late"].append(image_id)
    return found


def rest_in_words(rest: Mapping[str, Sequence[str]], shown: Sequence[str]) -> str:
    """A notice on the images taken and left, by the numbers of the cards; `shown`: their image ids, in order."""
    count = len(rest["clean"])
    parts = [f"{count} {'image is' if count == 1 else 'images are'} clean."] if count else []
    for reason, text in LEFT.items():
        numbers = [str(shown.index(image_id) + 1) for image_id in rest[reason]]
        if numbers:
            parts.append(f"Left: {'card' if len(numbers) == 1 else 'cards'} {', '.join(numbers)}, {text}")
    return " ".join(parts)
