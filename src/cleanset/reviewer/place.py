"""Where a tab is: a class, the pictures of it that are shown, and the one in focus."""

from dataclasses import dataclass

from cleanset.review.verdicts import Review
from cleanset.reviewer.library import Picture
from cleanset.reviewer.room import Room, Stand


@dataclass
class Place:
    """`every`: all candidates of the class are shown. `focus` is None where nothing can be shown."""

    room: Room
    class_index: int = -1
    focus: str | None = None
    every: bool = False

    @property
    def stand(self) -> Stand:
        """How the class stands, as it was read last."""
        return self.room.stands[self.class_index]

    def pictures(self) -> list[str]:
        """The image ids that are shown: judged by this reviewer or asked for; with `every`, all candidates."""
        ids = list(self.room.library.candidates(self.class_index))
        if self.every:
            return ids
        asked = [question.image_id for question in self.stand.questions if question.certain]
        if not asked and self.stand.questions:
            asked = [self.stand.questions[0].image_id]
        own = {image_id for (_, image_id), votes in self.stand.votes.items() if self.room.reviewer in votes}
        wanted = own.union(asked, {self.focus} if self.focus else ())
        return [image_id for image_id in ids if image_id in wanted] or ids[:3]

    def picture(self) -> Picture | None:
        """The picture in focus."""
        return self.room.library.pictures[self.focus] if self.focus else None

    def own(self) -> Review | None:
        """What this reviewer said of the picture in focus."""
        return self.room.own(self.class_index, self.focus) if self.focus else None

    def asked(self) -> list[str]:
        """The image ids that this reviewer is asked for here, the likeliest first."""
        return [question.image_id for question in self.stand.questions]

    def place_at(self, class_index: int, focus: str | None = None) -> None:
        """Go to a class, and there to a picture, else to the first that is asked for."""
        self.class_index, self.every, self.focus = class_index, False, None
        asked, shown = self.asked(), self.pictures()
        self.focus = focus or next((each for each in shown if each in asked), shown[0] if shown else None)

    def move(self, by: int) -> None:
        """Focus a picture further on or back, round at the ends."""
        shown = self.pictures()
        if self.focus in shown:
            self.focus = shown[(shown.index(self.focus) + by) % len(shown)]

    def focus_card(self, card: str | None) -> None:
        """Focus a picture that is shown."""
        if card in self.pictures():
            self.focus = card

    def focus_next(self) -> None:
        """On to the next picture that is asked for, else to the next at all."""
        assert self.focus is not None
        asked, shown = self.asked(), self.pictures()
        place = shown.index(self.focus) if self.focus in shown else 0
        later = [image_id for image_id in shown[place + 1 :] if image_id in asked]
        earlier = [image_id for image_id in shown[:place] if image_id in asked]
        if later or earlier or asked:
            self.focus = (later or earlier or asked)[0]
        elif place + 1 < len(shown):
            self.focus = shown[place + 1]
