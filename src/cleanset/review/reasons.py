"""The reasons to reject an image, or to crop it: the key, the rule and the example of each.

The usual ones are in `reasons.yaml`, those of an edition in `review.reasons` of its params.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Protocol

from pydantic import Field

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import NonEmpty, Section, shown, validate
from cleanset.plumbing.yaml_files import data_beside
from cleanset.review.verdicts import ImageKey, Vote
from cleanset.vocabulary import REASONS


class ReasonEntry(Section):
    """What is known of a reason."""

    key: Annotated[str, Field(pattern="^[a-uw-z]$")]
    """On the review page; in a crop, v states that the object stays visible."""

    rule: NonEmpty
    """When it applies, in the guidelines."""

    has_example: bool
    """Whether there are drawn images of it."""


def reason_entries(content: Mapping[str, Any]) -> dict[str, ReasonEntry]:
    """The entries of a file of reasons. Raises ValueError unless it has each reason, in order, and a key for each."""
    if list(content) != list(REASONS):
        raise ValueError(f"reasons.yaml: {', '.join(content)}; expected {', '.join(REASONS)}")
    found = {name: validate(ReasonEntry, content[name], f"reasons.yaml: {name}") for name in REASONS}
    keys = [entry.key for entry in found.values()]
    twice = [name for name, entry in found.items() if keys.count(entry.key) > 1]
    if twice:
        raise ValueError(f"reasons.yaml: {' and '.join(twice)} with one key; expected a key for each")
    return found


REASON_ENTRIES: Mapping[str, ReasonEntry] = MappingProxyType(reason_entries(data_beside(__file__, "reasons.yaml")))
"""The entry of each usual reason, in the order of the reasons."""


class KeyedRule(Protocol):
    """A reason of `review.reasons`, as this module reads it: rules know no params."""

    @property
    def key(self) -> str:
        """On the review page."""

    @property
    def rule(self) -> str:
        """When it applies."""


def with_further(reasons: Mapping[str, KeyedRule]) -> Mapping[str, ReasonEntry]:
    """The usual reasons, then those of an edition."""
    further = {name: ReasonEntry(key=each.key, rule=each.rule, has_example=False) for name, each in reasons.items()}
    return {**REASON_ENTRIES, **further}


def by_key(entries: Mapping[str, ReasonEntry]) -> dict[str, str]:
    """The names of reasons by key."""
    return {entry.key: name for name, entry in entries.items()}


REASON_KEYS: Mapping[str, str] = MappingProxyType(by_key(REASON_ENTRIES))
"""The usual reasons by key."""


def check_reasons(votes: Mapping[ImageKey, Mapping[str, Vote]], further: Collection[str]) -> None:
    """Raise CleansetError for the first vote with a reason that is neither usual nor in `further`."""
    for vote in (vote for by_reviewer in votes.values() for vote in by_reviewer.values()):
        reason = vote.review.reason
        if reason is not None and reason not in REASONS and reason not in further:
            raise CleansetError(
                f"{vote.where}: reason {shown(reason)}; expected one of {', '.join((*REASONS, *further))}: "
                "correct it, or add it to review.reasons in params.yaml"
            )
