"""A participant: their states, where each end leads, and which ids can be kept.

Only a participant who begins is known by name; until then, and if they are refused, nothing of them is kept.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Literal

from pydantic import Field

State = Literal["looking", "begun", "answered", "complete", "expired", "refused"]
"""looking: has opened the link, and reads. begun: has a list. answered: has answered all of it, and may change answers.
complete: has finished. expired: was away for long, and the list is somebody else's. refused: may not take part."""

PageEvent = Literal["opens", "begins", "declines", "finishes"]
"""What a person does on the page besides answering."""

Event = Literal[PageEvent, "fails_screening", "answers_last", "list_taken", "list_free"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRule:
    """What holds in a state."""

    page: Literal["instructions", "trials", "end"]
    """What a person sees who opens the link, or comes back by reload, Back or another tab."""

    is_complete: bool = False
    """Whether their list counts among those wanted, and stays theirs."""

    text: Literal["done", "expired"] | None = None
    """The name of the text of an end; for a refusal, the reason."""

    address: Literal["completion", "expired"] | None = None
    """The name of the address to which an end leads; for a refusal, by its reason."""


STATES: Mapping[State, StateRule] = {
    "looking": StateRule(page="instructions"),
    "begun": StateRule(page="trials"),
    "answered": StateRule(page="trials", is_complete=True),
    "complete": StateRule(page="end", is_complete=True, text="done", address="completion"),
    "expired": StateRule(page="end", text="expired", address="expired"),
    "refused": StateRule(page="end"),
}

MOVES: Mapping[tuple[State, Event], State] = {
    ("looking", "declines"): "refused",
    ("looking", "begins"): "begun",
    ("begun", "fails_screening"): "refused",
    ("begun", "answers_last"): "answered",
    ("begun", "list_taken"): "expired",
    ("expired", "list_free"): "begun",
    ("answered", "finishes"): "complete",
}
"""The state that follows an event; any other event changes none. Without revision, the last answer finishes at once."""

MAX_ID = 64
"""Characters of a participant's id."""

_ID_SIGNS = " ._-@+"
# as survey tools write what they fill in: {{%ID%}}, ${e://Field/ID}, [ID], <ID>, %ID%
_PLACEHOLDER_SIGNS = "{}[]<>$%"

Address = Annotated[str, Field(pattern=r"^https?://[!-~]+$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAddresses:
    """Addresses to which people return at an end; None: a text informs them, and they may close the page."""

    completion: Address | None = None
    """After the whole list."""

    expired: Address | None = None
    """After an absence for which the list went to somebody else."""

    refused: Address | None = None
    """Address for all who are refused, except for the reasons below that have an address of their own."""

    declined: Address | None = None
    """Address for people who do not agree to take part."""

    full: Address | None = None
    """Address for those who come when all places are taken, or all answers there."""

    screened_out: Address | None = None
    """Address for those who fail a screening, of comprehension or of colour vision, before the main part."""

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

    def move(self, event: Event) -> None:
        """Change the state as MOVES has it."""
        self.state = MOVES.get((self.state, event), self.state)

    @property
    def file(self) -> str:
        """The name of the file of their answers."""
        return f"answers-{self.number}-{self.person}.csv"
