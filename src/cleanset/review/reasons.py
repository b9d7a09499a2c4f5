"""The reasons to reject an image, or to crop it: the key, the rule and the example of each, from `reasons.yaml`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from cleanset.plumbing.validation import Section, validate
from cleanset.plumbing.yaml_files import data_beside
from cleanset.vocabulary import REASONS, Reason


class ReasonEntry(Section):
    """What is known of a reason."""

    key: Annotated[str, Field(pattern="^[a-uw-z]$")]
    """On the review page; in a crop, v states that the object stays visible."""

    rule: Annotated[str, Field(min_length=1)]
    """When it applies, in the guidelines."""

    has_example: bool
    """Whether there are drawn images of it."""


def reason_entries(content: Mapping[str, Any]) -> dict[Reason, ReasonEntry]:
    """The entries of a file of reasons. Raises ValueError unless it has each reason, in order, and a key for each."""
    if list(content) != list(REASONS):
        raise ValueError(f"reasons.yaml: {', '.join(content)}; expected {', '.join(REASONS)}")
    found = {name: validate(ReasonEntry, content[name], f"reasons.yaml: {name}") for name in REASONS}
    keys = [entry.key for entry in found.values()]
    twice = [name for name, entry in found.items() if keys.count(entry.key) > 1]
    if twice:
        raise ValueError(f"reasons.yaml: {' and '.join(twice)} with one key; expected a key for each")
    return found


REASON_ENTRIES: Mapping[Reason, ReasonEntry] = MappingProxyType(reason_entries(data_beside(__file__, "reasons.yaml")))
"""The entry of each reason, in the order of the reasons."""

REASON_KEYS: Mapping[str, Reason] = MappingProxyType({entry.key: name for name, entry in REASON_ENTRIES.items()})
"""The reasons by key."""
