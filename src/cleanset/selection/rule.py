"""The options of the rule by which candidates are chosen and ordered, without the tables that it is applied to."""

from dataclasses import dataclass
from typing import Literal

Label = str
"""Images that count as labelled: with one reassessed label (real), with one that equals the ILSVRC label (both), or,
by the name of a study, with one that is also the only class that the study names.

For images with several reassessed labels, which only tier relaxed takes: any of them, only the ILSVRC label, or those
that the study names, too.
"""
OWN_LABELS = ("real", "both")
"""The labels that no further study is needed for."""

Order = Literal["log_odds", "float32"]
"""Descending log-odds, which do not saturate, or descending confidence, as published. Ties: the lower image id."""
Pool = Literal["ensemble", "model"]
"""Images that tier top5 is taken from: those that all models classify correctly, or, as published, this model."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The choice and order of candidates; `count`: number of images of the pool in tier top5.

    `in_random_order`: of a set without a model, whose candidates are all images of a class; only `label` holds for it.
    """

    count: int = 5
    pool: Pool = "ensemble"
    order: Order = "log_odds"
    label: Label = "real"
    in_random_order: bool = False
