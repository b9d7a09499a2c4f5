"""The measures of an image without a sign of a flaw, and changes of them."""

from dataclasses import fields, replace
from typing import Any

from cleanset.review.hints.hints import ImageMeasures
from cleanset.review.hints.kinds import (
    Blur,
    Border,
    Bright,
    Collage,
    Dark,
    FewPixels,
    Filter,
    Noise,
    PlainBackground,
)


def plain(size: tuple[int, int]) -> ImageMeasures:
    return ImageMeasures(
        size,
        (
            Border((0, 0, 0, 0)), Collage((0.5, 0.5), 1), Dark(230), Bright(20), PlainBackground(0.1),
            Filter((30, 80, 90), 0.2, 10), Blur(0.7), Noise(2), FewPixels(size),
        ),
    )  # fmt: skip


def changed(measures: ImageMeasures, **values: Any) -> ImageMeasures:
    """The measures with other values of the hints' fields, by their names, which are different in all hints."""
    hints = []
    for each in measures.hints:
        names = {field.name for field in fields(each)}  # type: ignore[arg-type]
        hints.append(replace(each, **{name: value for name, value in values.items() if name in names}))  # type: ignore[type-var]
    return ImageMeasures(values.get("size", measures.size), tuple(hints))
