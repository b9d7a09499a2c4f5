"""The rule for candidates, and the values of its options in params.yaml; it imports nothing, as params import it."""

from dataclasses import dataclass
from typing import Literal

Label = Literal["real", "both"]
"""Images that count as labelled: with one reassessed label (real), or with one that equals the ILSVRC label (both).

For images with several reassessed labels, which only tier relaxed takes: any of them, or only the ILSVRC label.
"""
Order = Literal["log_odds", "float32"]
"""Descending log-odds, which do not saturate, or descending confidence, as published. Ties: the lower image id."""
Pool = Literal["ensemble", "model"]
"""Images that tier top5 is taken from: those that all models classify correctly, or, as published, this model."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The choice and order of candidates; `count`: number of images of the pool in tier top5."""

    count: int = 5
    pool: Pool = "ensemble"
    order: Order = "log_odds"
    label: Label = "real"


DEFAULT = Rule()
