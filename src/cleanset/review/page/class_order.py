"""The order in which a tab goes through the classes, and the filters of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from cleanset.review.page.session import ReviewerClassStatus, Session


def lacks_box(status: ReviewerClassStatus) -> bool:
    """Whether an image of a class lacks only its crop box, and is certainly needed."""
    return any(each.only_box and each.certain for each in status.questions)


@dataclass
class ClassOrder:
    """The order of the classes in one tab.

    It begins with the classes with an image that lacks only its crop box, if there are any.
    """

    session: Session
    filter: str = "to review"
    """One of `actions.FILTERS`, or a reason or hint of `actions.BY_KEYS`, such as "reason: watermark"."""

    skipped: set[int] = field(default_factory=set)
    """The classes that are to come last."""

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
        matches["reason"] = lambda status: any(review.reason == reason for review in status.own.values())
        if kind == "hint":
            return self.by_hint().get(reason, [])
        match = matches[kind]
        return [index for index, status in self.session.statuses.items() if match(status)]

    def by_hint(self) -> dict[str, list[int]]:
        """The classes with a hint of each kind, among the images that are measured."""
        found: dict[str, list[int]] = {}
        for index in self.session.statuses:
            for kind in set().union(*self.session.kinds_of_hints(index).values()):
                found.setdefault(kind, []).append(index)
        return found

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
