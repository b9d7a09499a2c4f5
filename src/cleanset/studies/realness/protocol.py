"""The protocol of a study: how people are instructed, screened and asked, and how early they may answer.

There is ours, and that of the published ratings.

Theirs is that of SCOOTER's page (github.com/DrenFazlija/SCOOTER, ui/, at 23a3d87). Each part is a setting, so that the
two can be mixed.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt

from cleanset.errors import CleansetError

Explanation = Literal["text", "examples"]
PairChange = Literal["tiles", "edits"]
ScaleName = Literal["surely", "definitely"]
SCALE_LABELS: Mapping[ScaleName, tuple[str, ...]] = {
    "surely": ("surely modified", "probably modified", "cannot tell", "probably real", "surely real"),
    "definitely": ("definitely modified", "probably modified", "unsure", "probably real", "definitely real"),
}
"""The words of each scale for the ratings -2 to 2."""


SHOWN_MILLISECONDS = 300
"""Time for which all images of a trial have been visible before it can be answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The parts of a protocol."""

    scale: ScaleName = "surely"
    """The words of the scale."""

    revision: bool = False
    """Whether people may go back and change their answers to images and attention checks."""

    attention: NonNegativeInt = 3
    """Attention checks of a list; who fails more than one is left out of the analysis."""

    pairs: NonNegativeInt = 4
    """Comprehension pairs of a list."""

    min_correct_pairs: NonNegativeInt = 0
    """Pairs to be answered correctly before the main part may begin; 0: they are judged in the analysis alone."""

    pair_change: PairChange = "tiles"
    """How one image of a pair is modified: cut into tiles with negatives, or edited as SCOOTER's instructions say."""

    plates: Annotated[int, Field(ge=0, le=12)] = 0
    """Plates of a test of colour vision before all else, each with a digit that has to be read correctly."""

    explanation: Explanation = "text"
    """Whether the first page explains "modified" in words alone, or with examples."""

    @property
    def failed_pairs_allowed(self) -> int:
        """Pairs that a person may fail."""
        return self.pairs - self.min_correct_pairs if self.min_correct_pairs else 0


PROTOCOLS: Mapping[str, Protocol] = {
    "own": Protocol(),
    "as_published": Protocol(
        scale="definitely",
        revision=True,
        attention=6,
        pairs=6,
        min_correct_pairs=5,
        pair_change="edits",
        explanation="examples",
        plates=6,
    ),
}


def check_parts(protocol: Protocol) -> None:
    """Raise CleansetError for parts that do not go together."""
    if protocol.min_correct_pairs > protocol.pairs:
        raise CleansetError(
            f"min_correct_pairs: {protocol.min_correct_pairs}; expected at most the {protocol.pairs} pairs of a list"
        )


def parts_of(settings: Protocol) -> Protocol:
    """The parts of a protocol alone, of settings that have them among others."""
    return Protocol(**{each.name: getattr(settings, each.name) for each in fields(Protocol)})


def protocol_in_words(protocol: Protocol) -> str:
    """The name of a protocol; for a mixed one, the nearer one with the parts that differ."""
    found = {name: _differences(protocol, usual) for name, usual in PROTOCOLS.items()}
    name = min(found, key=lambda each: len(found[each]))
    parts = ", ".join(f"{part}={value}" for part, value in found[name].items())
    return f"{name}, but {parts}" if parts else name


def _differences(protocol: Protocol, usual: Protocol) -> dict[str, object]:
    others = asdict(usual)
    return {name: value for name, value in asdict(protocol).items() if value != others[name]}
