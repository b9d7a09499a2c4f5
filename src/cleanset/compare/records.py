"""What two score tables were computed with, by the records beside them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleanset.errors import CleansetError
from cleanset.scoring.record import ScoreRecord, read_record


@dataclass(frozen=True, slots=True)
class RecordComparison:
    """`different`: by property, its values in both records. `unknown`: by side, why its record cannot be compared."""

    different: dict[str, tuple[str, str]]
    unknown: dict[str, str]

    def lines(self) -> Iterator[str]:
        """A line for each difference, and for each side without a record."""
        for name, values in self.different.items():
            shown = " -> ".join(f"{value[:12]}..." if len(value) == 64 else value for value in values)
            yield f"computed with other {name}: {shown}"
        for side, reason in self.unknown.items():
            yield f"no record of what {side} was computed with: {reason}"

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "computed_with_other": {name: {"a": a, "b": b} for name, (a, b) in self.different.items()},
            "computed_with_unknown": [side.lower() for side in self.unknown],
        }


def compare_records(a: Path, b: Path) -> RecordComparison:
    """Compare the records beside two score tables, such as data/scores/standard.json."""
    found: dict[str, dict[str, str]] = {}
    unknown: dict[str, str] = {}
    for side, table in (("A", a), ("B", b)):
        path = table.with_suffix(".json")
        try:
            found[side] = _properties(read_record(path))
        except CleansetError:
            unknown[side] = f"{path.name} {'unreadable' if path.exists() else 'missing'}"
    if unknown:
        return RecordComparison({}, unknown)
    of_a, of_b = found["A"], found["B"]
    names = [*of_a, *(name for name in of_b if name not in of_a)]
    different = {name: (of_a.get(name, "none"), of_b.get(name, "none")) for name in names}
    return RecordComparison({name: values for name, values in different.items() if values[0] != values[1]}, {})


def _properties(record: ScoreRecord) -> dict[str, str]:
    """What a score depends on, by name."""
    model = (record.source, record.name, record.threat_model)
    preprocessing = record.preprocessing
    return {
        "model": " ".join(filter(None, model)),
        "weights": record.weights_sha256,
        "preprocessing": f"{preprocessing.name} ({preprocessing.resize}, {preprocessing.size}, "
        f"{preprocessing.interpolation})",
        "precision": record.precision,
        "code": record.code,
        **{f"version of {name}": version for name, version in sorted(record.versions.items())},
    }
