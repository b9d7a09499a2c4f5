"""The entries of the reasons: one for each, in order, with a key of its own."""

from importlib.resources import files
from typing import Any

import pytest

from cleanset.errors import CleansetError
from cleanset.review.page.rules import EXAMPLES
from cleanset.review.reasons import REASON_ENTRIES, reason_entries
from cleanset.vocabulary import Reason

EVERY: dict[str, Any] = {name: entry.model_dump() for name, entry in REASON_ENTRIES.items()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"blur": None}, "reasons.yaml: watermark, .*noise, drawing.*; expected watermark, .*noise, blur, drawing"),
        ({"blur": {"key": "l", "rule": "Blurred."}}, "reasons.yaml: blur: has_example: Field required"),
        ({"blur": EVERY["blur"] | {"key": "v"}}, "reasons.yaml: blur: key: .*expected"),
        ({"blur": EVERY["blur"] | {"key": "n"}}, "reasons.yaml: noise and blur with one key; expected a key for each"),
    ],
)
def test_what_an_entry_leaves_out(changes: dict[str, Any], message: str) -> None:
    content = {name: entry for name, entry in (EVERY | changes).items() if entry is not None}
    with pytest.raises((ValueError, CleansetError), match=message):
        reason_entries(content)


@pytest.mark.parametrize("reason", REASON_ENTRIES)
def test_an_example_is_there(reason: Reason) -> None:
    folder = files("cleanset.review.page") / EXAMPLES
    for kind in ("clean", "flawed"):
        assert (folder / f"{reason}_{kind}.webp").is_file() == REASON_ENTRIES[reason].has_example
