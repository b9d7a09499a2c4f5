"""Notices to the reviewer: one line on the page, and those that nobody can have read yet."""

import time
from dataclasses import dataclass, field

# time in which somebody notices that keys did nothing
READ_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Notice:
    """One line to the reviewer; an error stays until the next key, and means that nothing was saved."""

    text: str
    is_error: bool = False


@dataclass
class UnreadNotices:
    """The notices that nobody can have read yet, since all keys after them were typed ahead.

    Who types on and on has no time to read: keys that did nothing are counted until READ_SECONDS after the last one.
    """

    last: int = 0
    """The number of the key that gave the last notice."""

    not_shown: int = 0
    """Number of keys that did nothing, since their image was not shown, or only just, when they were pressed."""

    counted_at: float = 0.0
    """When the last of these was answered, by `time.monotonic`."""

    _texts: dict[str, bool] = field(default_factory=dict)

    def begin(self, answered: int | None) -> None:
        """Drop the notices that could be read when a key was pressed; `answered`: the last key answered then."""
        if answered is None or answered >= self.last:
            self._texts.clear()
            if time.monotonic() - self.counted_at >= READ_SECONDS:
                self.not_shown = 0

    def add(self, notice: Notice | None, number: int) -> Notice | None:
        """One notice of the one that key `number` gave, and all that are unread."""
        if notice is not None:
            self.last = number
            self._texts[notice.text] = notice.is_error
        return self._joined()

    def count_not_shown(self, number: int) -> Notice | None:
        """One notice of all that are unread, and of the number of keys that did nothing."""
        self.last = number
        self.counted_at = time.monotonic()
        self.not_shown += 1
        return self._joined()

    def _joined(self) -> Notice | None:
        texts = list(self._texts)[-2:]
        if self.not_shown:
            keys = "The key was"
            images = "image was"
            them = "it"
            if self.not_shown > 1:
                keys = f"{self.not_shown} keys were"
                images = "images were"
                them = "them"
            texts.append(
                f"Not saved. {keys} pressed before the {images} shown, or within half a second of it: look, and press "
                f"{them} again"
            )
        is_error = self.not_shown > 0 or any(self._texts.values())
        return Notice(" ".join(texts), is_error=is_error) if texts else None
