"""The notes of a table of measures: what its readers must know, made in one place and carried in every form.

A number that is in a paper without its set, version and selection cannot be compared, and one without its limits
misleads. Both come from the comparability card and from the set itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from pydantic import JsonValue

from cleanset.evaluation.comparability import CLEAN_ACCURACY, SHOWN_DIGITS, ComparabilityCard
from cleanset.plumbing.json_files import JsonMapping
from cleanset.statistics.formats import counted


class Note(NamedTuple):
    """A note by its name, one of NOTE_NAMES: a column of a CSV file, and the beginning of a sentence elsewhere."""

    name: str
    text: str


NOTE_NAMES = (
    "set", "version", "digest", "number of images", "selection", "settings", "intervals", "tests", "limits", "card",
)  # fmt: skip
"""The names of notes, in their order."""
UNKNOWN_SELECTION = "not known"
NO_RELEASE = "no release"
UNCHECKED = "no manifest: which images these are was not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSet:
    """The facts about a set of images that every table of measures on it carries."""

    name: str
    """The name that it was opened by."""

    version: str | None = None
    """MAJOR.MINOR.PATCH of its release; None: images without one."""

    selection: str = ""
    """How its images were chosen, in a phrase; empty: not known."""

    limits: Sequence[str] = ()
    """Limits of numbers on it, a sentence each."""

    @property
    def notes(self) -> list[str]:
        """The selection, if it is known, and the limits."""
        return [*filter(None, [self.selection]), *self.limits]

    def as_json(self) -> dict[str, JsonValue]:
        """The facts for a result file."""
        return {
            "name": self.name,
            "version": self.version,
            "selection": self.selection,
            "limits": list[JsonValue](self.limits),
        }

    @classmethod
    def from_json(cls, content: object) -> Self | None:
        """The inverse of `as_json`, other keys left aside; None for content of another form."""
        found: JsonMapping = content if isinstance(content, dict) else {}
        version = found.get("version")
        limits = found.get("limits")
        texts = [found.get("name"), found.get("selection"), *(limits if isinstance(limits, list) else [None])]
        if not all(isinstance(text, str) for text in texts) or not isinstance(version, str | None):
            return None
        return cls(name=found["name"], version=version, selection=found["selection"], limits=found["limits"])


def table_notes(
    card: ComparabilityCard,
    images: MeasuredSet,
    *,
    count: str = "",
    intervals: str = "",
    tests: str = "",
    limits: Iterable[str] = (),
) -> list[Note]:
    """The notes of a table of the numbers that a card describes, in the order of NOTE_NAMES.

    `count`: the number of images, where it is another than the card's. `intervals`: a phrase on those of other columns,
    that are of another kind. `tests`: a phrase on the tests in the table. `limits`: limits beyond the set's, such as of
    a benchmark or of a model. A note without a text is left out.
    """
    classes = card.classes.of_images
    manifest = card.images.manifest_sha256
    of_files = f"manifest {manifest[:SHOWN_DIGITS]}, " if manifest else ""
    # without the pixels the digest of changed images is another, though they may be the same
    is_complete = card.measured == CLEAN_ACCURACY or card.pixels_sha256 is not None
    texts = {
        "set": images.name,
        "version": images.version or NO_RELEASE,
        "digest": f"{of_files}images {card.images.sha256[:SHOWN_DIGITS]}",
        "number of images": count or f"{card.images.count:,} of {counted(classes, 'class')}",
        "selection": images.selection or UNKNOWN_SELECTION,
        "settings": _settings_of(card),
        "intervals": "; ".join(filter(None, [card.interval.text, intervals])),
        "tests": tests,
        "limits": " ".join(map(_sentence, dict.fromkeys([*images.limits, *limits]))),
        "card": card.short_digest if is_complete else "",
    }
    return [Note(name, texts[name]) for name in NOTE_NAMES if texts[name]]


def _settings_of(card: ComparabilityCard) -> str:
    """The changes with their steps, the reference and everything else that decides the numbers, in a phrase."""
    by_steps: dict[str, list[str]] = {}
    for name, steps in card.changes.items():
        by_steps.setdefault(steps, []).append(name)
    # changes without steps have the step 0
    parts = [
        f"{card.measured}: {', '.join(names)}" + ("" if steps == "0" else f", at steps {ranges(steps)}")
        for steps, names in by_steps.items()
    ]
    # a text is whole, such as an attack with its steps
    parts += [
        f"{name}: {value}" if isinstance(value, str) and " " in value else f"{name} {card.shown(f'settings.{name}')}"
        for name, value in sorted(card.settings.items())
    ]
    if card.reference is not None:
        parts.append(f"reference {card.reference.name}")
    parts.append(f"predictions among {card.classes.of_predictions:,} classes")
    return "; ".join(parts)


def ranges(steps: str) -> str:
    """Steps with blanks between, such as severities, as ranges: `1 to 3, 5`."""
    found: list[list[int]] = []
    for step in map(int, steps.split()):
        if found and step == found[-1][-1] + 1:
            found[-1].append(step)
        else:
            found.append([step])
    return ", ".join(str(each[0]) if len(each) == 1 else f"{each[0]} to {each[-1]}" for each in found)


def joined_notes(notes: Mapping[str, Sequence[Note]]) -> list[Note]:
    """The notes of a table of several measurements, by measurement: a text that differs begins with each one's name."""
    found = []
    for name in NOTE_NAMES:
        texts = {measured: note.text for measured, of in notes.items() for note in of if note.name == name}
        if len(set(texts.values())) == 1 and len(texts) == len(notes):
            found.append(Note(name, next(iter(texts.values()))))
        elif texts:
            found.append(Note(name, "; ".join(f"{measured}: {text}" for measured, text in texts.items())))
    return found


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
