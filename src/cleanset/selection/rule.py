"""The names of what decides which images are candidates: the values that params.yaml may have."""

from dataclasses import dataclass
from typing import Literal

Label = Literal["real", "both"]
"""Which images have a label: those with one reassessed label (real), or those where it is the ILSVRC label too (both).

For images with several reassessed labels, which only tier relaxed takes: any of them, or only the ILSVRC label.
"""
Order = Literal["log_odds", "float32"]
"""By falling log-odds, which do not saturate; or by falling confidence, as published. Ties: the lower image id."""
Pool = Literal["ensemble", "model"]
"""Where tier top5 comes from: the images that all models classify correctly; or, as published, that this one does."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which images are candidates, and in what order. `count`: how many images of the pool make up tier top5."""

    count: int = 5
    pool: Pool = "ensemble"
    order: Order = "log_odds"
    label: Label = "real"


DEFAULT = Rule()
