"""The notices of a tab, which stay until a key is pressed with them on the screen."""

from dataclasses import dataclass, field


@dataclass
class Notice:
    """One line to the reviewer; an error stays until the next key, and means that nothing was saved."""

    text: str
    is_error: bool = False


@dataclass
class UnreadNotices:
    """The notices that nobody can have read yet, since all keys after them were typed ahead.

    `last`: the number of the key that gave the last one; `not_shown`: how many of the keys were about an image that was
    not shown, or only just, when they were pressed, and so did nothing.
    """

    last: int = 0
    not_shown: int = 0
    _texts: dict[str, bool] = field(default_factory=dict)

    def begin(self, answered: int | None) -> None:
        """Drop what could be read when a key was pressed; `answered`: number of the last key answered then."""
        if answered is None or answered >= self.last:
            self.not_shown = 0
            self._texts.clear()

    def add(self, notice: Notice | None, number: int) -> Notice | None:
        """One notice of the one that key `number` gave, and all that are unread."""
        if notice is not None:
            self.last = number
            self._texts[notice.text] = notice.is_error
        return self._joined()

    def count_not_shown(self, number: int) -> Notice | None:
        """One notice of all that are unread, and of the number of keys that did nothing."""
        self.last = number
        self.not_shown += 1
        return self._joined()

    def _joined(self) -> Notice | None:
        texts = list(self._texts)[-2:]
        if self.not_shown > 1:
            texts.append(
                f"Not saved. {self.not_shown} keys were pressed before the images were shown, or within half a second "
                "of it: look, and press them again"
            )
        elif self.not_shown:
            texts.append(
                "Not saved. The key was pressed before the image was shown, or within half a second of it: look, and "
                "press it again"
            )
        return Notice(" ".join(texts), self.not_shown > 0 or any(self._texts.values())) if texts else None
