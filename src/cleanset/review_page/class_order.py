"""Which class comes next: by filter, the skipped ones last."""

from collections.abc import Callable
from dataclasses import dataclass, field

from cleanset.review_page.session import ClassStatus, Session


@dataclass
class ClassOrder:
    """The order in which one tab goes through the classes. `filter` is one of `keys.FILTERS`."""

    session: Session
    filter: str = "unsettled"
    skipped: set[int] = field(default_factory=set)

    def matching(self, name: str | None = None) -> list[int]:
        """The classes that match this filter, else the tab's own."""
        matches: dict[str, Callable[[ClassStatus], bool]] = {
            "all": lambda status: True,
            "unsettled": lambda status: bool(status.questions or status.broken),
            "short": lambda status: status.state == "short",
            "conflicts": lambda status: bool(status.conflicts or status.look_again),
            "mine": lambda status: any(self.session.reviewer in votes for votes in status.votes.values()),
        }
        match = matches[name or self.filter]
        return [index for index, status in self.session.statuses.items() if match(status)]

    def neighbour(self, of: int, direction: int = 1) -> int | None:
        """The matching class after this one (before it, if `direction` is -1); round at the ends."""
        others = [index for index in self.matching() if index != of]
        if not others:
            return None
        if direction > 0:
            return next((index for index in others if index > of), others[0])
        return next((index for index in reversed(others) if index < of), others[-1])

    def next_asked(self, after: int) -> int | None:
        """The next matching class in which something is asked, this one last; None: nothing is asked any more."""
        matching = set(self.matching())
        asked = [index for index in self.matching("unsettled") if index in matching]
        fresh = [index for index in asked if index not in self.skipped] or asked
        return next((index for index in fresh if index > after), fresh[0] if fresh else None)

    def upcoming(self, after: int) -> list[int]:
        """The classes that may well be shown next, to be loaded ahead."""
        first = self.next_asked(after)
        second = self.next_asked(first) if first is not None else None
        near = (first, self.neighbour(after), self.neighbour(after, -1), second)
        return [index for index in dict.fromkeys(near) if index is not None and index != after]
