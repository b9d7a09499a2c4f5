"""The watermark of ImageNet-W: what is known of it, and the params that choose its font.

Source: Li and others, "A Whac-A-Mole Dilemma: Shortcuts Come in Multiples Where Mitigating One Amplifies Others"
(CVPR 2023), and its program.
"""

from typing import Annotated

from pydantic import Field, model_validator

from cleanset.plumbing.validation import NonEmpty, Sha256, one_of
from cleanset.studies.robustness.sections import FamilySection

WATERMARK = "watermark"
"""The image with the watermark, the only change."""

CARTON = "n02971356"
"""The class that the watermark draws predictions to: cartons in ImageNet's training images carry such ones."""

AUTHORS_FONT_SHA256 = "9f5605324c82b264efc87a7cf0e8e2f26a02ec67f539843368f066cb2e08aed0"
"""SourceHanSerifSC-ExtraLight.otf in the authors' package, imagenet-w 1.0.0."""


class Watermarks(FamilySection):
    """The watermark of ImageNet-W, which is drawn on the images, or read with them from the folder `published`."""

    names: Annotated[list[Annotated[str, one_of(WATERMARK)]], Field(default_factory=lambda: [WATERMARK])]
    """`watermark`, or an empty list: none."""
    font: NonEmpty | None = None
    """A font file, relative to this file, that the watermark is set in, as the authors set it in Source Han Serif SC
    ExtraLight. null: strokes like that font's, drawn for this project."""
    font_sha256: Sha256 | None = None
    """The SHA-256 of the font file, which it needs."""

    @model_validator(mode="after")
    def _pinned(self) -> "Watermarks":
        if self.font is not None and self.font_sha256 is None:
            raise ValueError(
                f"font without font_sha256: changes would go unnoticed; add the output of sha256sum {self.font}"
            )
        if self.font is None and self.font_sha256 is not None:
            raise ValueError("font_sha256 without font; expected both, or neither")
        return self

    @property
    def is_of_authors(self) -> bool:
        """Whether the watermark is set in the authors' font."""
        return self.font_sha256 == AUTHORS_FONT_SHA256

    def changes(self) -> list[tuple[str, int]]:
        """The watermark, if it is measured; it has no steps."""
        return [(name, 0) for name in dict.fromkeys(self.names)]
