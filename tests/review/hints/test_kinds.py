"""The classes of hints: each says what a hint has to say, and its values have names of their own."""

from dataclasses import fields
from datetime import date
from typing import ClassVar

import pytest

from cleanset.review.hints.kinds import (
    MEASURED_HINTS,
    Blur,
    Bright,
    Dark,
    FewPixels,
    HintKind,
    KnownHint,
    hint_keys,
    registered,
)


def test_each_hint_has_a_key() -> None:
    """That of the reason that it speaks for, or its own."""
    known = {
        "b": "border", "o": "collage", "u": "dark", "x": "bright", "a": "artificial_background", "f": "filter",
        "l": "blur", "n": "noise", "p": "few_pixels", "t": "text", "k": "duplicate",
    }  # fmt: skip
    assert known.items() <= hint_keys().items()


class Silent(KnownHint):
    """Says less than a hint has to."""

    kind: ClassVar[HintKind] = "noise"


class Keyless(KnownHint):
    """Speaks for no reason, and has no key."""

    kind: ClassVar[HintKind] = "dark"
    docs: ClassVar[str] = "dark"
    rules_of: ClassVar[date] = date(2026, 11, 30)


@pytest.mark.parametrize(
    ("hints", "message"),
    [
        ((Blur, Silent), "Silent: without docs, rules_of; expected of every hint"),
        ((Blur, Keyless), "Keyless: without key; expected of every hint"),
        ((FewPixels, FewPixels), "FewPixels: with the key p, as FewPixels; expected another"),
        ((Bright, Dark), "Bright: before dark; expected it after"),
    ],
)
def test_what_a_hint_leaves_out(hints: tuple[type[KnownHint], ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        registered(*hints)


def test_values_of_hints_have_different_names() -> None:
    names = [field.name for hint in MEASURED_HINTS for field in fields(hint)]  # type: ignore[arg-type]
    assert len(names) == len(set(names))
