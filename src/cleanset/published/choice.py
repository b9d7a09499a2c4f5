"""The choice of a published set: which model's, and what becomes of images without a verdict."""

from dataclasses import dataclass
from pathlib import Path

from cleanset.errors import CleansetError

PUBLISHED_SET = "scooter"
"""The name by which `cleanset.load` knows the published set."""
PUBLISHED_MODEL = "norm_robust"
"""The model that the published set was made for."""
MODELS = (PUBLISHED_MODEL, "standard", "corruption_robust")
"""The models with published lists."""


@dataclass(frozen=True, slots=True)
class PublishedChoice:
    """A model with published lists, the way with unreviewed images, and the folders of further reviews."""

    model: str = PUBLISHED_MODEL
    unreviewed: str = "pending"
    reviews: tuple[Path, ...] = ()

    def check(self) -> None:
        """Raise CleansetError for an unknown model or an unknown way with unreviewed images."""
        if self.model not in MODELS:
            raise CleansetError(f"unknown model {self.model!r}; expected one of {', '.join(MODELS)}")
        if self.unreviewed not in ("pending", "clean"):
            raise CleansetError(f"unreviewed {self.unreviewed!r}; expected pending or clean")
