"""Result files of `cleanset evaluate` and `cleanset robustness evaluate`: cards and headline measures, checked."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from cleanset.errors import CleansetError
from cleanset.files import read_bytes
from cleanset.measure.comparability import CLEAN, ComparabilityCard
from cleanset.parsing import parse_json
from cleanset.validation import first_problem, shown

RESULTS = "results.json"
"""File of results in a folder that `--out` names."""
ECE = "ece"
"""The expected calibration error, which a file has under `calibration`."""
MAX_BYTES = 200_000_000
MAX_TEXT = 1000
"""Characters of a text in a result file; a notice has some 300."""
EXPECTED = "the JSON that cleanset evaluate or cleanset robustness evaluate wrote"


@dataclass(frozen=True, slots=True)
class Headline:
    """A measure that results are compared by: its name in the file and its title.

    `is_share`: shown in percent. `higher_is_better`: the order of a ranking. `is_bounded`: from 0 to 1; not so for
    measures relative to a reference model, which exceed 1 where a model is worse than it.
    """

    name: str
    title: str
    is_share: bool = True
    higher_is_better: bool = False
    is_bounded: bool = True


HEADLINES: Mapping[str, tuple[Headline, ...]] = {
    CLEAN: (
        Headline("accuracy", "accuracy", higher_is_better=True),
        Headline("top5", "top-5", higher_is_better=True),
        Headline(ECE, "ECE", is_share=False),
    ),
    "corruptions": (Headline("mean_error", "mean error"), Headline("mce", "mCE", is_bounded=False)),
    "perturbations": (Headline("mean_fp", "mean FP"), Headline("mfr", "mFR", is_bounded=False)),
    "scenarios": (
        Headline("mean_accuracy", "mean accuracy", higher_is_better=True),
        Headline("score_as_published", "Score", is_share=False, higher_is_better=True, is_bounded=False),
    ),
}
"""The measures that a table of results has, by what is measured."""
COUNTS_TOLERANCE = 1e-6
"""Largest difference between an accuracy and the share of its counts: a file may hold rounded numbers."""


class MeasuredValue(NamedTuple):
    """A measure with the ends of its interval, if it has one; a missing value is None."""

    value: float | None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class MeasuredModels:
    """The card of one kind of measurement in a result file, and the headline measures of each model by name."""

    card: ComparabilityCard
    models: Mapping[str, Mapping[str, MeasuredValue]]


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file: its name as given, name and notes of its set, and by what is measured the card and the models."""

    name: str
    set_name: str
    notes: Sequence[str]
    measured: Mapping[str, MeasuredModels]


def is_result(path: Path) -> bool:
    """Whether a path names a result file: JSON, or a folder that holds one and no finished set."""
    return path.suffix == ".json" or (path.is_dir() and (path / RESULTS).is_file())


def result_file(path: Path) -> Path:
    """The result file that a path names: itself, or the one in a folder."""
    return path / RESULTS if path.is_dir() else path


def read_results(path: Path) -> ResultFile:
    """Read a result file, or that in a folder.

    Raises CleansetError, one line, for a missing, damaged or edited file, and for one without a card.
    """
    file = result_file(path)
    try:
        data = read_bytes(file)
    except FileNotFoundError:
        raise CleansetError(
            f"{file}: missing; expected {EXPECTED}: name its file, or the folder of its --out"
        ) from None
    if len(data) > MAX_BYTES:
        raise CleansetError(f"{file}: {len(data):,} bytes; expected at most {MAX_BYTES:,}: {EXPECTED}")
    return parse_results(parse_json(data, str(file), EXPECTED), str(path))


def parse_results(content: object, name: str) -> ResultFile:
    """The results in the content of a result file; errors as those of `read_results`."""
    if not isinstance(content, dict):
        raise CleansetError(f"{name}: {shown(content)}; expected {EXPECTED}")
    _check_printable(content, name)
    parts = content.get("families", {"": content})
    if not isinstance(parts, dict) or not parts or not all(isinstance(part, dict) for part in parts.values()):
        raise CleansetError(f"{name}: no results; expected {EXPECTED}")
    measured = {}
    for part in parts.values():
        found = _measured(part, name)
        if found.card.measured in measured:
            raise CleansetError(f"{name}: {shown(found.card.measured)} measured twice; expected it once")
        measured[found.card.measured] = found
    of_set = content.get("set")
    of_set = of_set if isinstance(of_set, dict) else {}
    notes = of_set.get("notes")
    notes = [str(each) for each in notes] if isinstance(notes, list) else []
    return ResultFile(name, str(of_set.get("name", "")), notes, measured)


def _check_printable(value: object, name: str) -> None:
    """Raise CleansetError for a text with control characters: texts of the file are printed on a terminal."""
    if isinstance(value, str) and not (value.isprintable() and len(value) <= MAX_TEXT):
        raise CleansetError(f"{name}: {shown(value)}; expected printable texts of at most {MAX_TEXT:,} characters")
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for each in value:
            _check_printable(each, name)


def _measured(part: Mapping[str, Any], name: str) -> MeasuredModels:
    if "attacks" in part and "search_precision" in part:
        raise CleansetError(f"{name}: results of attacks; expected {EXPECTED}: attacks have no table that ranks models")
    if "comparability" not in part:
        has_models = isinstance(part.get("models"), list)
        found = "no comparability card: written by an earlier version" if has_models else "no results of models"
        raise CleansetError(
            f"{name}: {found}; expected {EXPECTED}: run it again with the same --out, which computes only what changed"
        )
    try:
        card = ComparabilityCard.from_json(part["comparability"])
    except ValidationError as error:
        raise CleansetError(f"{name}: comparability: {first_problem(error)}; expected {EXPECTED}") from None
    except CleansetError as error:
        raise CleansetError(f"{name}: comparability: {error}; run the evaluation again") from None
    if card.measured not in HEADLINES:
        raise CleansetError(f"{name}: unknown measurement {shown(card.measured)}; expected {', '.join(HEADLINES)}")
    models: dict[str, dict[str, MeasuredValue]] = {}
    entries = part.get("models")
    for entry in entries if isinstance(entries, list) else []:
        model = entry.get("model") if isinstance(entry, dict) else None
        if not isinstance(model, str) or model in models:
            raise CleansetError(f"{name}: models: {shown(model)}; expected the name of each model once")
        models[model] = dict(_values(entry, card.measured, f"{name}: {model}"))
    if models.keys() != card.models.keys() or not models:
        raise CleansetError(
            f"{name}: models {shown(sorted(models))}; expected those of the card, {shown(sorted(card.models))}"
        )
    return MeasuredModels(card, models)


def _values(entry: Mapping[str, Any], measured: str, where: str) -> Iterator[tuple[str, MeasuredValue]]:
    """Yield the headline measures that an entry has: numbers of its own, or below `measures`, each with an interval."""
    measures = entry.get("measures", entry)
    if not isinstance(measures, dict):
        raise CleansetError(f"{where}: measures {shown(measures)}; expected numbers by name")
    calibration = measures.get("calibration")
    error = calibration.get("error") if isinstance(calibration, dict) else None
    for headline in HEADLINES[measured]:
        found = measures.get(headline.name, error if headline.name == ECE else None)
        if found is None:
            continue
        # the accuracy's interval stands beside it
        ends = entry.get("interval") if headline.name == CLEAN else None
        value = found if isinstance(found, dict) else {"value": found, "interval": ends}
        yield headline.name, _value(value, headline, f"{where}: {headline.name}")
    _check_counts(entry, where)


def _check_counts(entry: Mapping[str, Any], where: str) -> None:
    """Raise CleansetError for an accuracy that is not the share of the counts beside it."""
    accuracy, correct, images = (entry.get(name) for name in (CLEAN, "correct", "images"))
    if not (_is_finite(accuracy) and isinstance(correct, int) and isinstance(images, int)):
        return
    if not 0 <= correct <= images or abs(accuracy * images - correct) > COUNTS_TOLERANCE * images:  # type: ignore[operator]
        raise CleansetError(
            f"{where}: accuracy {accuracy}, {correct:,} of {images:,} images correct; expected the share of these "
            "images: edited since it was written; run the evaluation again"
        )


def _value(found: Mapping[str, Any], headline: Headline, where: str) -> MeasuredValue:
    number, interval = found.get("value", found.get(CLEAN)), found.get("interval")
    ends = interval if isinstance(interval, list) else [None, None]
    if len(ends) != 2 or not all(each is None or _is_finite(each) for each in (number, *ends)):
        raise CleansetError(f"{where}: {shown(number)}, interval {shown(interval)}; expected finite numbers")
    if headline.is_bounded and not all(each is None or 0 <= each <= 1 for each in (number, *ends)):
        raise CleansetError(f"{where}: {shown(number)}, interval {shown(interval)}; expected shares from 0 to 1")
    if number is None or None in ends:
        return MeasuredValue(None if number is None else float(number))
    low, high = map(float, ends)
    if low > high:
        raise CleansetError(f"{where}: interval {shown(interval)}; expected its lower end first")
    return MeasuredValue(float(number), (low, high))


def _is_finite(value: object) -> bool:
    # bool is an int; an int of 400 digits does not fit a float
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and math.isfinite(value)
    )
