"""Which class comes next: by filter, the skipped ones last."""

from collections.abc import Callable
from dataclasses import dataclass, field

from cleanset.reviewer.room import Room, Stand


@dataclass
class Tour:
    """One tab's way through the classes. `filter` is one of `keys.FILTERS`."""

    room: Room
    filter: str = "unsettled"
    skipped: set[int] = field(default_factory=set)

    def listed(self, name: str | None = None) -> list[int]:
        """The classes that this filter, else the tab's own, lets through."""
        lets_through: dict[str, Callable[[Stand], bool]] = {
            "all": lambda stand: True,
            "unsettled": lambda stand: bool(stand.questions or stand.broken),
            "short": lambda stand: stand.state == "short",
            "conflicts": lambda stand: bool(stand.conflicts),
            "mine": lambda stand: any(self.room.reviewer in votes for votes in stand.votes.values()),
        }
        keep = lets_through[name or self.filter]
        return [index for index, stand in self.room.stands.items() if keep(stand)]

    def turned(self, left: int, way: int = 1) -> int | None:
        """The class after (before, if `way` is -1) this one that the filter lets through; round at the ends."""
        listed = [index for index in self.listed() if index != left]
        if not listed:
            return None
        if way > 0:
            return next((index for index in listed if index > left), listed[0])
        return next((index for index in reversed(listed) if index < left), listed[-1])

    def following(self, left: int) -> int | None:
        """The next class in which something is asked, this one last; None: nothing is asked any more."""
        filtered = set(self.listed())
        asked = [index for index in self.listed("unsettled") if index in filtered]
        fresh = [index for index in asked if index not in self.skipped] or asked
        return next((index for index in fresh if index > left), fresh[0] if fresh else None)

    def ahead(self, left: int) -> list[int]:
        """The classes that may well be shown next, to be loaded ahead."""
        nearest = self.following(left)
        after = self.following(nearest) if nearest is not None else None
        near = (nearest, self.turned(left), self.turned(left, -1), after)
        return [index for index in dict.fromkeys(near) if index is not None and index != left]
