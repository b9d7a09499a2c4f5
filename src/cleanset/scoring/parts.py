"""What the finished parts of a long computation have."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedPart:
    """What finished shards, groups or epochs of a computation have."""

    images: int = 0
    """Number of images in them."""
    seconds: float = 0.0
    """Seconds by the clock that they took, without those between interrupted runs; 0: not known."""


NOTHING = FinishedPart()
