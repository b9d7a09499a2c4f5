"""A key of any local page, as the browser sends it."""

from pydantic import BaseModel, ConfigDict, Field

from cleanset.web import MIN_SHOWN_SECONDS


class SentKey(BaseModel):
    """A key as the browser sends it, with what had been on the screen when it was pressed."""

    model_config = ConfigDict(frozen=True, strict=True)

    key: str
    number: int
    """Counts the keys of a tab."""

    subject: str | None = None
    """What the page showed or asked: a class, or a question on an image; None if that is not known."""

    shown: float | None = None
    """Seconds for which the subject had been there with all its images; None if that is not known."""

    seen: dict[str, float] = Field(default_factory=dict)
    """By image, and by other names of the page: the seconds for which it had been on the screen unchanged; 0: not."""

    def has_seen(self, name: str) -> bool:
        """Whether what has this name had been on the screen for long enough to be answered."""
        return self.seen.get(name, 0.0) >= MIN_SHOWN_SECONDS

    @property
    def is_subject_seen(self) -> bool:
        """Whether the subject had been on the screen for long enough to be answered, or that is not known."""
        return self.shown is None or self.shown >= MIN_SHOWN_SECONDS
