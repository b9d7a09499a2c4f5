"""A participant: their states, where each end leads, and which ids can be kept.

Only a participant who begins is known by name; until then, and if they are refused, nothing of them is kept.
"""

import unicodedata
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Literal

from pydantic import Field

State = Literal["looking", "begun", "complete", "expired", "refused"]
"""looking: has opened the link, and reads. begun: has a list. complete: has answered all of it. expired: was away for
long, and the list is somebody else's; begun again once nobody else needs it. refused: may not take part."""

Refusal = Literal[
    "no_id",
    "unfilled_id",
    "unusable_id",
    "not_invited",
    "elsewhere",
    "full",
    "taken",
    "declined",
    "screened_out",
    "colour_vision",
]
"""Reasons for which somebody is refused: each the name of a text of the page."""

MAX_ID = 64
"""Characters of a participant's id."""

_ID_SIGNS = " ._-@+"
# as survey tools write what they fill in: {{%ID%}}, ${e://Field/ID}, [ID], <ID>, %ID%
_PLACEHOLDER_SIGNS = "{}[]<>$%"

Address = Annotated[str, Field(pattern=r"^https?://[!-~]+$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAddresses:
    """Addresses to which people return at an end; None: they are told, and may close the page."""

    completion: Address | None = None
    """After the whole list."""

    expired: Address | None = None
    """After an absence for which the list went to somebody else."""

    refused: Address | None = None
    """Of all who are refused, but for the reasons below that have an address of their own."""

    declined: Address | None = None
    """Of those who do not agree to take part."""

    full: Address | None = None
    """Of those who come when all places are taken, or all answers there."""

    screened_out: Address | None = None
    """Of those who fail a screening, of comprehension or of colour vision, before the main part."""

    def of_refusal(self, refusal: Refusal) -> str | None:
        """The address for a reason; none for those who began elsewhere, and may still finish there."""
        if refusal == "elsewhere":
            return None
        own = {
            "declined": self.declined,
            "full": self.full,
            "taken": self.full,
            "screened_out": self.screened_out,
            "colour_vision": self.screened_out,
        }
        return own.get(refusal) or self.refused


def id_refusal(identity: str) -> Refusal | None:
    """Why an id, normalised, cannot be kept; None if it can, and without one."""
    if any(sign in identity for sign in _PLACEHOLDER_SIGNS):
        return "unfilled_id"
    return None if not identity or is_participant_id(identity) else "unusable_id"


def is_participant_id(text: str) -> bool:
    """Whether all are letters and digits of any script, or one of ` ._-@+`, which file names can have, too."""
    return 0 < len(text) <= MAX_ID and all(
        each in _ID_SIGNS or unicodedata.category(each)[0] in ("L", "M", "N") for each in text
    )


@dataclass(slots=True)
class Participant:
    """A person who began. `answers`: stimulus and answer of each trial so far.

    `active`: the time of the last sign, by a clock that never goes back.
    """

    id: str
    key: str
    person: str
    number: int
    active: float
    answers: list[tuple[str, str]] = field(default_factory=list)
    state: State = "begun"
    lock: Lock = field(default_factory=Lock)

    @property
    def file(self) -> str:
        """The name of the file of their answers."""
        return f"answers-{self.number}-{self.person}.csv"
